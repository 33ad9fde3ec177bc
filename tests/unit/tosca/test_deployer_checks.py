# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of settings and machines before the first step is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from deployer_site import DATA, Site
from deployer_stub import install
from gpufarm import ansible, checks
from gpufarm.errors import BadInput, GpufarmError
from gpufarm.plan import Step
from gpufarm.recorded import Claim

PLAYBOOKS = Path(__file__).parents[3] / "tosca" / "playbooks"


class _Loader(yaml.SafeLoader):
    """Reads compiled playbooks."""


_Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_mapping(node, deep=True))


def step(kind: str, host: str = "a", secrets: tuple[str, ...] = (), **variables: Any) -> Step:
    playbook = PLAYBOOKS / kind / "configure.yml"
    return Step(f"{kind}_{host}", "configure", host, playbook, variables, frozenset(secrets), {})


def given(*steps: Step) -> dict[tuple[str, str], dict[str, Any]]:
    """Variables of each check, by role and host."""
    plays = yaml.load(checks.compile_checks(steps, Claim("me")), Loader=_Loader)
    assert plays[-1]["import_playbook"].endswith("playbooks/validate_refuse.yml")
    assert plays[-1]["vars"]["gpufarm_hosts"] == sorted({one.host for one in steps})
    return {
        (own["validate_role"], host): own
        for play in plays[:-1]
        for host, own in play["vars"]["gpufarm_values"].items()
    }


def test_steps_are_checked_with_their_variables() -> None:
    found = given(step("mig_partition", mig_partition_flavor="7x 1g"), step("gpu_health", "b"))
    assert found.keys() == {("mig", "a"), ("gpu_health", "b")}
    assert found["mig", "a"]["mig_partition_flavor"] == "7x 1g"


def test_steps_on_the_controller_check_nothing_before() -> None:
    assert not checks.compile_checks([step("marathon_app", "localhost")], Claim("me"))


def test_playbooks_that_give_variables_of_their_own_are_not_checked_before() -> None:
    for kind in ("mesos_load_balancer", "mesos_master", "single_node_jupyterhub"):
        assert not checks.role(step(f"indigo/{kind}")), kind
    assert checks.role(step("mig_partition")) == "mig", "the owner is no variable of a role"


def test_every_type_of_the_collection_with_checks_is_checked() -> None:
    unchecked = {"chronos_job", "container_request", "marathon_app", "nvidia_container", "slurm_job"}
    kinds = {path.parent.name for path in PLAYBOOKS.glob("*/configure.yml")}
    assert {kind for kind in kinds if not checks.role(step(kind))} == unchecked


def test_what_the_same_run_sets_up_is_not_missed() -> None:
    found = given(step("zookeeper"), step("mesos_master"), step("marathon"), step("cvmfs_client"))
    assert {tuple(own["validate_later"]) for own in found.values()} == {
        ("folders", "marathon", "masters", "zookeeper")
    }
    assert given(step("marathon"))["marathon", "a"]["validate_later"] == ["marathon"]
    for part in ("slurm_accounts", "slurm_controller", "slurm_login", "slurm_node"):
        assert given(step(part, "b"), step("jupyterhub"))["jupyterhub", "a"]["validate_later"] == ["slurm"]
    directory = given(step("directory_users"), step("jupyterhub"))
    assert directory["jupyterhub", "a"]["validate_later"] == ["users"]


def test_file_systems_of_others_are_checked_too() -> None:
    alone = given(step("lustre_client"), step("shared_home", "b"))
    assert alone["lustre_client", "a"]["validate_more"] == "validate_servers"
    assert alone["shared_home", "b"]["validate_more"] == "validate_machine"
    together = given(step("lustre_client"), step("shared_home"), step("lustre_server", "b"))
    assert {own["validate_more"] for own in together.values()} == {""}


def events(monkeypatch: pytest.MonkeyPatch, status: str, *told: dict[str, Any]) -> list[Path]:
    """Have Ansible tell events; the playbooks that it was started with."""
    started = []

    def play(playbook: Path, _pool: Path, _directory: Path, on_event: Any, _stop: Any) -> str:
        started.append(playbook)
        assert playbook.stat().st_mode & 0o077 == 0
        on_event({"event": "playbook_on_start"})
        assert not playbook.exists(), "it has secrets in it, and has been read"
        for one in told:
            on_event(one)
        return status

    monkeypatch.setattr(ansible, "play", play)
    return started


def test_the_table_is_the_message_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"task": "Report all problems of all hosts", "res": {"msg": "1 problem: tellnobody is wrong"}}
    events(monkeypatch, "failed", {"event": "runner_on_failed", "event_data": data})
    with pytest.raises(BadInput, match=r"1 problem: \*\*\* is wrong"):
        checks.check([step("gpu_health", secrets=("word",), word="tellnobody")], Claim("me"), Path("pool"))


def test_what_can_only_be_checked_later_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"host": "a", "task": "Validate", "res": {"unchecked": "no driver yet"}}
    events(monkeypatch, "successful", {"event": "runner_on_ok", "event_data": data})
    assert checks.check([step("mig_partition")], Claim("me"), Path("pool")) == ["a: no driver yet"]


def test_an_ansible_that_breaks_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    events(monkeypatch, "failed", {"event": "verbose", "stdout": "ERROR! no such role"})
    with pytest.raises(GpufarmError, match="cannot be checked: no such role; nothing was changed"):
        checks.check([step("gpu_health")], Claim("me"), Path("pool"))


def test_without_checks_ansible_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started = events(monkeypatch, "successful")
    assert checks.check([step("chronos_job", "localhost")], Claim("me"), Path("pool")) == []
    assert not started


def test_what_is_refused_leaves_the_deployment_as_it_was(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    stubbed = install(monkeypatch, site)
    first = stubbed.deploy(DATA / "service.yaml", "--name", "it")
    assert first.status == 0 and "it: deployed; next: " in first.error
    before = site.remembered("it")

    def refuse(_steps: Any, _claim: Claim, _pool: Path) -> list[str]:
        raise BadInput("1 problem; nothing was changed:")

    monkeypatch.setattr(checks, "check", refuse)
    for command in ("deploy", "update"):
        words = (DATA / "service.yaml", "--name", "it") if command == "deploy" else ("it",)
        answer = stubbed.gpufarm(command, *words, "--input", "text=other")
        assert answer.status == 2 and answer.error.endswith("1 problem; nothing was changed:\n")
        assert site.remembered("it") == before
    new = stubbed.deploy(DATA / "service.yaml", "--name", "new")
    assert new.status == 2 and not (site.state / "new.json").exists()
