"""A stub of Ansible that plays in this process: the same events in the same order, in no time.

Like Ansible it drops a machine after a failure, ends when a play has lost all its machines, and tells at its
very end which were lost. A journal records its actions.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployer_site import Answer, Site
from gpufarm import ansible, pool
from gpufarm.pool import Gpu, Machine, Pool


class _Loader(yaml.SafeLoader):
    """Reads compiled playbooks."""


_Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_mapping(node, deep=True))


@dataclass
class Stub:
    """The stub.

    Attributes:
        root: folder of the site; `broken` there lists the labels of notes that fail (also `operation:label`),
            `broken-late` and `broken-changed` those that fail after a change or with one, `rescued` those
            that are mended, `there` those that find nothing to change, `dead` the hosts that cannot be
            reached, `dead-late` the labels whose host goes away halfway, and `foreign` the notes that were
            made for others, which are left alone unless the run may take over.
        records: of each host, as the module machine_record_info tells them.
        point: called at every moment at which a kill could matter.
    """

    root: Path
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    point: Callable[[], None] = lambda: None
    processes: int = 0

    def journal(self) -> list[str]:
        path = self.root / "journal"
        return path.read_text().splitlines() if path.exists() else []

    def _write(self, line: str) -> None:
        with (self.root / "journal").open("a") as file:
            file.write(line + "\n")

    def _listed(self, name: str) -> list[str]:
        path = self.root / name
        return path.read_text().split() if path.exists() else []

    def inventory(self, _path: Path) -> dict[str, dict[str, Any]]:
        return self.hosts

    def look(self, path: Path, hosts: dict[str, Any]) -> Pool:
        machines = {
            host: Machine(host, host, 8, 10**11, 10**11, "debian", "12", (Gpu("A100", 80, True),))
            for host in hosts
        }
        return Pool(path, machines, {})

    def play(
        self,
        playbook: Path,
        _pool: Path,
        _directory: Path,
        on_event: Callable[[dict[str, Any]], None],
        _stop: threading.Event,
        *,
        check: bool = False,
    ) -> str:
        self.processes += 1
        lost: dict[str, int] = {}
        plays = yaml.load(playbook.read_text(), Loader=_Loader)
        on_event({"event": "playbook_on_start", "event_data": {}})
        assert not playbook.exists(), "it has secrets in it, and has been read"
        first = plays.pop(0) if plays[0].get("name") == "Records" else {}
        if first:
            on_event({"event": "playbook_on_play_start", "event_data": {}})
        if len(first.get("tasks", [])) > 1:  # it reads the records too
            for host in first["hosts"]:
                told = {"host": host, "res": {"records": self.records.get(host, [])}}
                on_event({"event": "runner_on_ok", "event_data": told})
        for play in plays:
            hosts = [host for host in play["vars"]["gpufarm_hosts"] if host not in lost]
            on_event({"event": "playbook_on_play_start", "event_data": {}})
            on_event(
                {
                    "event": "playbook_on_task_start",
                    "event_data": {"name": "Write"},
                    "stdout": f"TASK [Write] on {' '.join(hosts)}",
                }
            )
            operation = Path(play["import_playbook"]).stem
            for host in hosts:
                self.point()
                if not self.note(host, operation, play["vars"], on_event, check=check):
                    lost[host] = 1
                self.point()
            if hosts and all(host in lost for host in hosts):
                break
        on_event({"event": "playbook_on_stats", "event_data": {"failures": lost, "dark": {}}})
        return "failed" if lost else "successful"

    def note(
        self,
        host: str,
        operation: str,
        variables: dict[str, Any],
        on_event: Callable[[dict[str, Any]], None],
        *,
        check: bool,
    ) -> bool:
        """One play on one machine."""
        own = variables["gpufarm_values"][host]
        label = own["label"]

        def tell(event: str, **result: Any) -> None:
            on_event({"event": event, "event_data": {"host": host, "task": "Write", "res": result}})

        if host in self._listed("dead"):
            tell("runner_on_unreachable", msg="timed out")
            return False
        if label in self._listed("foreign") and not variables.get("gpufarm_take_over"):
            tell("runner_on_failed", msg=f"{label} was made for others")
            return False
        broken = {label, f"{operation}:{label}"} & {*self._listed("broken")}
        if broken or label in self._listed("rescued"):
            tell("runner_on_failed", msg=f"{label} is broken")
            if broken:
                return False
        if label in self._listed("broken-late"):
            tell("runner_on_ok", changed=True)
            tell("runner_on_failed", msg=f"{label} is broken")
            return False
        if label in self._listed("broken-changed"):
            tell("runner_on_failed", msg=f"{label} is broken", changed=True)
            return False
        if label in self._listed("dead-late"):
            tell("runner_on_ok")
            tell("runner_on_unreachable", msg="timed out")
            return False
        if not check:
            self._write(f"{operation} {label} {host} {own.get('text', '')}".rstrip())
        tell("runner_on_ok", changed=label not in self._listed("there"))
        if operation == "configure" and not check:
            text = str(own.get("text", "hello"))
            tell("runner_on_ok", ansible_stats={"data": {"path": f"/{host}/{label}", "length": len(text)}})
        return True


@dataclass(frozen=True)
class StubSite:
    """A site of many machines that are none."""

    site: Site
    stub: Stub

    def gpufarm(self, *arguments: str | Path) -> Answer:
        return self.site.gpufarm(*arguments)

    def deploy(self, template: Path, *arguments: str | Path) -> Answer:
        return self.gpufarm("deploy", template, "--pool", self.site.pool, "--input", "folder=/x", *arguments)

    def mark(self, name: str, *words: str) -> None:
        (self.stub.root / name).write_text(" ".join(words))


def install(monkeypatch: pytest.MonkeyPatch, site: Site, hosts: int = 6) -> StubSite:
    """Put the stub in Ansible's place."""
    stub = Stub(site.root, {f"m{number}": {} for number in range(1, hosts + 1)})
    monkeypatch.setattr(ansible, "play", stub.play)
    monkeypatch.setattr(ansible, "inventory", stub.inventory)
    monkeypatch.setattr(ansible, "end_leftovers", lambda _directory: False)
    monkeypatch.setattr(pool, "look", stub.look)
    return StubSite(site, stub)


def exit_now() -> None:
    """End this process as SIGKILL does: no handler runs, nothing is flushed."""
    os.kill(os.getpid(), 9)
