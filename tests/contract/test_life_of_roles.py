"""What holds for every role on an imagined host: it runs again without change, and it can go."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import functools
import re
from collections.abc import Mapping
from typing import Any

import pytest
from harness import CASES, Call, Run
from harness.cases import Case
from harness.host import Host, Unit

EVERY_ROLE = pytest.mark.parametrize("role", sorted(CASES))
# Steps that change something again on an imagined host, which does not know what they have made.
AGAIN = {
    "jupyterhub": {"Install | Install the proxy's packages"},
}
# What stays when a role is removed, and why.
KEPT = {
    "gpu_health": {"/var/lib/prometheus/node-exporter": "the folder of the exporter's package"},
    "jupyterhub": {"/var/backups/jupyterhub": "backups", "group jupyterhub-users": "homes belong to it"},
    "lustre_client": {
        "/etc/apt/keyrings/gpufarm-lustre.asc": "the packages stay",
        "/etc/apt/sources.list.d/gpufarm-lustre.sources": "the packages stay",
        "/etc/lnet.conf": "LNet is not stopped where it does not answer",
        "lnet.service": "LNet is not stopped where it does not answer",
    },
    "mesos_agent": {
        "/etc/mesos-master/secrets/principals/agent": "of the masters, which make them",
        "/etc/mesos-master/secrets/principals/operator": "of the masters, which make them",
        "/var/cache/gpufarm-mesos-1.11.0.deb": "Mesos stays, as the other role uses it",
        "/var/lib/mesos/agent": "the tasks' files",
    },
    "mesos_master": {
        "/var/cache/gpufarm-mesos-1.11.0.deb": "Mesos stays, as the other role uses it",
        "/var/lib/mesos": "the state of the cluster",
        "/var/lib/mesos/master": "the state of the cluster",
        "/var/lib/mesos-master": "the login that the state belongs to",
        "/var/lib/mesos-master/zookeeper": "the login that the state belongs to",
        "user mesos": "the state belongs to it",
    },
    "monitoring": {"/var/lib/prometheus/node-exporter": "the folder of the exporter's package"},
    "zookeeper": {
        "/var/lib/zookeeper": "the data",
        "/var/lib/zookeeper/myid": "the data",
        "user zookeeper": "the data belong to it",
    },
}
# A service that is asked itself whether it runs, before it is restarted.
ASKED = {"mesos-agent.service"}
# Roles with modules for GPUs share their Python.
SHARED = {"/opt/gpufarm/gpu", "/opt/gpufarm/gpu/bin/python"}
# Packages that only the steps of roles need, and that a check does not name.
HELPERS = {"openssl", "python3-yaml"}
# Units of packages that stay with their package.
OF_PACKAGES = {"autofs.service", "lnet.service"}


@functools.cache
def _set_up(role: str) -> tuple[Host, Run]:
    host = Host()
    return host, run(role, host)


def set_up(role: str) -> tuple[Host, Run]:
    """A host on which a role has run, and that run."""
    host, first = _set_up(role)
    assert not first.failed, first.refusal
    return copy.deepcopy(host), first


def on(host: Host, role: str) -> Case:
    case = CASES[role]
    answers = host.answers(case.answers)
    if role == "shared_home" and "srv-home.mount" in host.units:
        known = {"problems": [], "file_system": "nfs", "mounted": True, "exists": True, "answers": True}
        unit = {"name": "srv-home.mount", "path": "/srv/home"}
        answers["gpufarm.cluster.shared_home_info"] = {**known, "units": [unit], "limited": False}
    return case.with_answers(answers)


def run(role: str, host: Host, changed: Mapping[str, Any] | None = None, check: bool = False) -> Run:
    return on(host, role).run(role, changed, check=check)


def changes(one: Run) -> set[str]:
    return {step.name.rpartition(" : ")[2] for step in one.steps if step.result.get("changed")}


@EVERY_ROLE
def test_a_role_that_runs_again_changes_nothing(role: str) -> None:
    host, _ = set_up(role)
    before = copy.deepcopy(host.files)
    again = run(role, host)
    assert not again.failed, again.refusal
    assert changes(again) <= AGAIN.get(role, set())
    assert host.files == before


@EVERY_ROLE
def test_units_that_can_start_with_the_machine_do(role: str) -> None:
    host, _ = set_up(role)
    texts = dict(host.units_written())
    for name, text in texts.items():
        known = host.units.get(name, Unit())
        assert known.enabled == ("[Install]" in text), name
        if known.enabled and "Type=oneshot" in text:
            assert "RemainAfterExit=yes" in text, f"{name} would start anew with each run of the role"
    assert not host.unread, "systemd has not read them"


@EVERY_ROLE
def test_units_have_the_folders_and_programs_that_they_use(role: str) -> None:
    host, _ = set_up(role)
    texts = dict(host.units_written())
    made = {
        word
        for text in texts.values()
        for line in re.findall(r"RuntimeDirectory=(.*)", text)
        for word in line.split()
    }
    for name, text in texts.items():
        for line in re.findall(r"^Exec\w+=(.*)", text, re.MULTILINE):
            for folder in re.findall(r"(?:%t|/run)/([\w.-]+)/", line):
                assert folder in made, f"{name}: nothing makes /run/{folder}"
            for path in re.findall(r"(?<![\w/])/opt/[\w./-]+|(?<![\w/])/etc/[\w./-]+", line):
                there = any(
                    f"{path}/".startswith(f"{one}/") or one.startswith(f"{path}/") for one in host.files
                )
                assert there, f"{name}: nothing makes {path}"


@EVERY_ROLE
def test_a_service_starts_anew_when_its_unit_has_changed(role: str) -> None:
    host, _ = set_up(role)
    before = {name: unit.time for name, unit in host.units.items()}
    own = [
        name
        for name, text in host.units_written()
        if "RuntimeDirectory=" in text and "Type=oneshot" not in text and name not in ASKED
    ]
    for name in own:
        host.alter(f"/etc/systemd/system/{name}")
    run(role, host)
    late = [name for name in own if name in before and host.units[name].time <= before[name]]
    assert not late
    assert not host.unread, "systemd has not read them"


@EVERY_ROLE
def test_nothing_is_left_of_a_role_but_what_is_known(role: str) -> None:
    host, _ = set_up(role)
    gone = run(role, host, {f"{role}_state": "absent"})
    assert not gone.failed, gone.refusal
    active = {name for name, unit in host.units.items() if unit.enabled or unit.running}
    static = {name for name in active if not host.units[name].enabled}
    left = {*host.files, *host.accounts, *(active - OF_PACKAGES - (static & {"gpufarm-mig.service"}))}
    assert left - SHARED <= KEPT.get(role, {}).keys()
    assert not host.unread, "systemd has not read them"


@EVERY_ROLE
def test_a_role_that_is_absent_already_changes_nothing(role: str) -> None:
    host = Host(units={name: Unit(enabled=True, running=True) for name in OF_PACKAGES})
    gone = run(role, host, {f"{role}_state": "absent"})
    assert not gone.failed, gone.refusal
    assert not host.files
    assert not host.accounts
    active = {name for name, unit in host.units.items() if unit.running and unit.enabled}
    assert active == OF_PACKAGES, "somebody else uses them"


@EVERY_ROLE
@pytest.mark.parametrize("new", [True, False], ids=["-new", "-set_up"])
def test_a_check_changes_nothing_and_finds_no_fault(role: str, new: bool) -> None:
    host = Host() if new else set_up(role)[0]
    before = copy.deepcopy(host)
    checked = run(role, host, check=True)
    assert not checked.failed, checked.refusal
    assert host == before
    assert not [call.name for call in checked.calls if not call.asks], "they are run all the same"
    for call in checked.calls:
        assert not call.interpreter or call.interpreter in host.files, f"{call.name}: it is not there yet"
    if new:
        accounts = {account.partition(" ")[2] for account in set_up(role)[0].accounts} - {"root"}
        for call in checked.calls:
            if call.action in ("ansible.builtin.copy", "ansible.builtin.template", "ansible.builtin.file"):
                assert call.args.get("owner") not in accounts, f"{call.name}: the account is not there yet"


@EVERY_ROLE
def test_a_check_of_a_new_host_tells_which_packages_would_come(role: str) -> None:
    host, _ = set_up(role)
    checked = run(role, Host(), check=True)
    told = [str(step.result) for step in checked.steps if step.action.endswith(".debug")]
    told += [str(call.args) for call in checked.calls if call.action == "ansible.builtin.apt"]
    assert not [
        package for package in sorted(host.packages.keys() - HELPERS) if package not in " ".join(told)
    ]


@EVERY_ROLE
def test_folders_of_secrets_are_closed(role: str) -> None:
    host, _ = set_up(role)
    secrets = [path for path in host.files if path.endswith("/secrets")]
    assert not [path for path in secrets if int(host.files[path].mode, 8) & 0o077]


@EVERY_ROLE
def test_a_port_that_something_else_has_is_refused(role: str) -> None:
    host = Host()

    def taken(call: Call) -> Mapping[str, Any]:
        asked = [int(port) for port in call.args["ports"]]
        known = {"address": "0.0.0.0", "process": "other", "unit": "other.service", "pid": 1}
        return {"listeners": [{"port": port, **known} for port in asked[:1]]}

    case = on(host, role).with_answers({"gpufarm.cluster.listening_ports_info": taken})
    if any(call.action.endswith("listening_ports_info") for call in set_up(role)[1].calls):
        refused = case.run(role)
        assert refused.failed
        assert "other" in refused.refusal
        assert not host.files
