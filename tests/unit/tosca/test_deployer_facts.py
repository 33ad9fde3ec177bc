"""Facts of machines: asked once, remembered for some minutes, never trusted when in doubt."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufarm import ansible, facts, pool
from gpufarm.pool import Gpu, Machine, Pool
from gpufarm.state import Store


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The hosts that were asked, a list for each time."""
    found: list[list[str]] = []

    def look(path: Path, hosts: dict[str, Any]) -> Pool:
        found.append(sorted(hosts))
        machines = {
            host: Machine(host, host, 8, 10**9, 10**10, "debian", "12", (Gpu("A100", 80, True),))
            for host in hosts
            if host != "dead"
        }
        return Pool(path, machines, {"dead": "timed out"} if "dead" in hosts else {})

    monkeypatch.setattr(pool, "look", look)
    monkeypatch.setattr(ansible, "inventory", lambda _path: HOSTS)
    return found


HOSTS: dict[str, dict[str, Any]] = {"a": {}, "b": {"ansible_host": "10.0.0.2"}, "dead": {}}


def test_asked_once(tmp_path: Path, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    store, site = Store(tmp_path / "state"), tmp_path / "site"
    first = facts.survey(store, site)
    assert (
        not first.remembered and set(first.machines) == {"a", "b"} and first.silent == {"dead": "timed out"}
    )
    facts.remember(store, first)
    again = facts.survey(store, site)
    assert again.machines == first.machines and again.silent == first.silent and again.remembered
    assert asked == [["a", "b", "dead"]]
    facts.remember(store, again, changed=["a"])
    assert set(facts.survey(store, site).machines) == {"a", "b"} and asked[1:] == [["a"]]
    assert set(facts.survey(store, site, only=["b"]).machines) == {"b"} and len(asked) == 2
    facts.survey(store, site, refresh=True)
    assert asked[2:] == [["a", "b", "dead"]]
    monkeypatch.setitem(HOSTS, "b", {"ansible_host": "10.0.0.3"})
    facts.survey(store, site, only=["b"])
    assert asked[3:] == [["b"]], "behind another address there may be another machine"


def test_too_old_or_damaged(tmp_path: Path, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    store, site = Store(tmp_path / "state"), tmp_path / "site"
    facts.remember(store, facts.survey(store, site))
    (path,) = (tmp_path / "state" / "facts").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    later = json.loads(path.read_text())["a"]["seen"] + facts.SILENT + 1
    monkeypatch.setattr("time.time", lambda: later)
    facts.survey(store, site)
    assert asked[1:] == [["dead"]]
    monkeypatch.setattr("time.time", lambda: later + facts.FRESH)
    facts.survey(store, site)
    assert asked[2:] == [["a", "b", "dead"]]
    for damage in ("", "[]", "{", '{"a": 1, "b": {}, "dead": {"key": null}}'):
        path.write_text(damage)
        assert set(facts.survey(store, site).machines) == {"a", "b"}


def test_a_machine_tells_what_it_has_after_any_greeting() -> None:
    told = {"cpus": 8, "memory": 1, "disk": 2, "distribution": "debian", "version": "12"}
    gpu = {"model": None, "memory": None, "mig_capable": None}
    answer = f"Welcome to {{ the }} farm\r\n{{x}}\r\n{json.dumps({**told, 'gpus': [gpu]})}\r\n"
    assert pool.machine("a", "10.0.0.1", answer) == Machine(
        "a", "10.0.0.1", 8, 1, 2, "debian", "12", (Gpu(None, None, None),)
    )


@pytest.mark.parametrize("answer", ["", "hello", "{", "{}", "[]", '{"gpus": []}', '{"gpus": [1], "cpus": 2}'])
def test_a_machine_that_answers_something_else(answer: str) -> None:
    with pytest.raises(ValueError):
        pool.machine("a", "a", answer)


@pytest.mark.parametrize("interpreter", [sys.executable, "auto_silent", "/usr/bin/python9", None])
def test_the_machine_is_asked_with_whatever_python_it_has(tmp_path: Path, interpreter: str | None) -> None:
    here: dict[str, Any] = {"ansible_connection": "local", "ansible_host": "127.0.0.9"}
    here |= {"ansible_python_interpreter": interpreter} if interpreter else {}
    path = tmp_path / "hosts.yml"
    path.write_text(yaml.safe_dump({"all": {"hosts": {"here": here}}}))
    found = pool.look(path, {"here": here})
    assert not found.silent, found.silent
    machine = found.machines["here"]
    assert machine.address == "127.0.0.9" and machine.cpus == len(os.sched_getaffinity(0))
    assert machine.memory > 0 and machine.disk > 0 and machine.distribution
