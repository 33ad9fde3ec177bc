"""Several machines, and what is told when something goes wrong."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployer_site import DATA, HERE, Site
from gpufarm import waves
from gpufarm.ansible import complaint, play
from gpufarm.errors import BadInput
from gpufarm.plan import Step
from gpufarm.pool import reason
from gpufarm.recorded import Claim
from gpufarm.run import compile_playbook

EXAMPLE = Path(__file__).resolve().parents[3] / "inventories" / "example"


def test_two_machines(site: Site) -> None:
    """Steps that depend on a failed step do not run, nor on another machine."""
    site.machines(a=HERE, b=HERE)
    arguments = ("deploy", DATA / "pair.yaml", "--pool", site.pool, "--input", f"folder={site.notes}")
    failed = site.gpufarm(*arguments, "--input", "fails=true")
    assert failed.status == 1 and site.journal() == ["configure base"]
    done = site.gpufarm(*arguments, "--input", "fails=false")
    assert done.status == 0, done.error
    assert done.output == f"paths: {site.notes}/base {site.notes}/top\n"
    machines = site.remembered("pair")["machines"]
    assert {machines["left"]["host"], machines["right"]["host"]} == {"a", "b"}
    assert (
        (site.notes / "base").read_text() == (site.notes / "top").read_text() == machines["right"]["address"]
    )


def test_one_play_on_several_machines(site: Site) -> None:
    """Each gets its own values, verbatim, and what each returns is its own."""
    site.machines(a=HERE, bbb=HERE, cc=HERE)
    arguments = ("deploy", DATA / "farm.yaml", "--pool", site.pool, "--input", f"folder={site.notes}")
    done = site.gpufarm(*arguments, "--input", "text={{ 7 * 6 }}")
    assert done.status == 0, done.error
    steps = site.remembered("farm")["steps"]
    assert [steps[name]["attributes"]["length"] for name in ("base.configure", "base[2].configure")] == [3, 2]
    assert (site.notes / "tool").read_text() == "{{ 7 * 6 }}"
    assert (site.notes / "list").read_text() == "workers ['bbb', 'cc']"


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        ({"msg": "The flavor is wrong.\nUse another."}, "The flavor is wrong. Use another"),
        ({"msg": "non-zero return code", "stderr": "a\nno such unit"}, "non-zero return code: no such unit"),
        (
            {"msg": "MODULE FAILURE", "module_stderr": "sh: python: not found"},
            "MODULE FAILURE: sh: python: not found",
        ),
        (
            {"censored": "the output has been hidden", "msg": "x"},
            "the output is hidden because it carries secrets",
        ),
        ({"msg": "All items", "results": [{"msg": "ok"}, {"failed": True, "msg": "b is busy"}]}, "b is busy"),
        (
            {"msg": "Task failed: Failed to connect to the host via ssh: ssh: connect to host x: late"},
            "connect to host x: late",
        ),
        (
            {
                "msg": "Finalization of task args for 'a.b.c' failed: Error while resolving value for 'ca': "
                "The lookup plugin 'ansible.builtin.file' failed: Unable to access the file '/x': Not found. "
                "Use -vvvvv to see paths searched."
            },
            "Unable to access the file '/x': Not found",
        ),
        ({}, "no reason given"),
    ],
)
def test_reasons(result: dict[str, object], sentence: str) -> None:
    assert reason(result) == sentence


def test_complaints() -> None:
    assert (
        complaint("x\n\x1b[31m[ERROR]: couldn't resolve module\x1b[0m\nOrigin: y\n")
        == "couldn't resolve module"
    )
    assert complaint("something\nelse\n\n") == "else"


def test_a_change_with_a_large_result_is_a_change(tmp_path: Path) -> None:
    pool, playbook = tmp_path / "pool.yml", tmp_path / "play.yml"
    pool.write_text(yaml.safe_dump({"all": {"hosts": {"here": HERE}}}))
    argv = ["python3", "-c", "print('a' * 1000000)"]
    tasks = [{"name": "Print much", "ansible.builtin.command": {"argv": argv}}]
    playbook.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    events: list[dict[str, Any]] = []
    assert play(playbook, [pool], tmp_path, events.append, threading.Event()) == "successful"
    (result,) = (one["event_data"]["res"] for one in events if one["event"] == "runner_on_ok")
    assert result["changed"] and len(result["stdout"]) == 1000000


def test_an_operation_is_one_play(tmp_path: Path) -> None:
    playbook = tmp_path / "two.yml"
    playbook.write_text("- hosts: all\n- hosts: all\n")
    step = Step("n", "configure", "h", playbook, {}, frozenset(), {})
    with pytest.raises(BadInput, match="has to be exactly one play"):
        compile_playbook(waves.plays([step]), Claim("me"))


def test_the_example_inventory_is_valid_and_sets_variables_that_roles_have() -> None:
    subprocess.run(["ansible-inventory", "-i", EXAMPLE, "--list"], check=True, capture_output=True)
    roles = EXAMPLE.parents[1] / "roles"
    known = {name for path in roles.glob("*/defaults/main.yml") for name in yaml.safe_load(path.read_text())}
    for path in EXAMPLE.rglob("group_vars/*/*.yml"):
        assert set(yaml.safe_load(path.read_text()) or {}) <= known, path
