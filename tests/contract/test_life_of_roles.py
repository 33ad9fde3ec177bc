"""Contracts of every role on a fake host: it runs again without change, turns back, and can go."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.session import GPU_PYTHON
from harness import CASES, Call, Run
from harness.host import Host, Unit
from harness.life import OTHERWISE, THERE, WAYS, new, on, run, set_up, values
from harness.specs import options

EVERY_ROLE = pytest.mark.parametrize("role", sorted(CASES))
OTHER_WAYS = [pytest.param(role, way, id=f"{role}-{way}") for role in sorted(WAYS) for way in WAYS[role]]
EVERY_WAY = pytest.mark.parametrize(
    ("role", "way"), [*(pytest.param(role, "", id=role) for role in sorted(CASES)), *OTHER_WAYS]
)
# Steps that change something again on an imagined host, which does not know what they have made.
AGAIN = {"jupyterhub": {"Install | Install the proxy's packages"}}
# Units that are started anew where what they make is not there.
LOOKED_AT = {"gpufarm-soft-roce.service"}
# Files that stay when a role is removed, and why.
KEPT = {
    "gpu_health": {"/var/lib/prometheus/node-exporter": "the folder of the exporter's package"},
    "jupyterhub": {"/var/backups/jupyterhub": "backups", "group jupyterhub-users": "homes belong to it"},
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
    "paas_service": {
        "/var/lib/gpufarm-serve": "the database",
        "/var/lib/gpufarm-serve-worker": "the state of the deployments",
        "/var/lib/gpufarm-serve-worker/state": "the state of the deployments",
        "/var/lib/gpufarm-serve-worker/ansible": "programs of a run that is interrupted are there",
        "/var/lib/gpufarm-serve-worker/ssh": "machines of the pool let the workers in by it",
        "/var/lib/gpufarm-serve-worker/ssh/id_ed25519": "machines of the pool let the workers in by it",
        **{
            f"{kind} gpufarm-serve{ending}": "the data belong to it"
            for kind in ("user", "group")
            for ending in ("", "-worker")
        },
    },
    "scratch": {
        f"/scratch/areas{name}": "files of users and jobs" for name in ("", "/users", "/jobs", "/warnings")
    },
    "zookeeper": {
        "/var/lib/zookeeper": "the data",
        "/var/lib/zookeeper/myid": "the data",
        "user zookeeper": "the data belong to it",
    },
}
# Files that stay when a role is set otherwise and back.
LEFT = {
    "chronos": {"/opt/chronos/chronos-3.0.3.jar": "a version that was fetched"},
    "environment_modules": {
        "/srv/other-folder/other/1.lua": "other machines may use that folder",
    },
    "jupyterhub": {
        "/etc/jupyterhub/firewall.nft": "only the unit reads it, which is gone",
        "/etc/jupyterhub/iam-ca.crt": "no setting names it any more",
        "/etc/jupyterhub/podman": "Podman stays until the role is absent",
    },
    "lustre_client": {"/lib/modules/6.1.0-40-amd64/updates/dkms/lustre.ko": "the packages stay"},
    "marathon": {"/opt/marathon/marathon-1.11.25.tgz": "a version that was fetched"},
    "mesos_agent": {"/var/cache/gpufarm-mesos-1.11.1.deb": "a version that was fetched"},
    "mesos_master": {"/var/cache/gpufarm-mesos-1.11.1.deb": "a version that was fetched"},
    "monitoring": {
        "/etc/gpufarm/monitoring/dashboards/gpufarm.json": "Grafana keeps it until the role is absent",
        "/etc/grafana/provisioning/dashboards/gpufarm.yml": "Grafana keeps it until the role is absent",
        "/etc/grafana/provisioning/datasources/gpufarm.yml": "Grafana keeps it until the role is absent",
        "grafana-server.service": "somebody else's",
    },
    "nvidia_driver": {
        "/etc/modprobe.d/gpufarm-nouveau.conf": "the driver stays",
        "/run/gpufarm-nvidia-driver-is-new": "the driver stays",
    },
    "paas_service": {
        "gpufarm-serve-worker@3.service": "a worker that is stopped",
    },
    "shared_home": dict.fromkeys(
        ("srv-other\\x2dpath.mount", "/etc/systemd/system/srv-other\\x2dpath.mount"), "homes may be in use"
    ),
}
# Files that stay as the other settings gave them, as new ones would cut machines off.
GIVEN = {"/var/lib/gpufarm-serve-worker/ssh/id_ed25519"}
# Ways that a role does not turn back from, and what it says.
NO_WAY_BACK = {("cvmfs_client", "mounts"): "Repositories are mounted by units of systemd"}
# Roles with modules for GPUs share their Python.
SHARED = {"/opt/gpufarm/gpu", GPU_PYTHON}
# Modules that fail on a host without that Python.
WITH_NVML = {
    f"gpufarm.cluster.{path.stem}"
    for path in (Path(__file__).parents[2] / "plugins" / "modules").glob("*.py")
    if "use_gpu_python" in path.read_text()
}
# Modules that give files to accounts.
WITH_OWNER = {f"ansible.builtin.{name}" for name in ("copy", "file", "template")} | {
    "gpufarm.cluster.text_files"
}
# Packages that only the steps of roles need, and that a check does not name.
HELPERS = {"openssl", "python3-yaml"}
# Roles that keep a record of what they made.
RECORDED = {
    path.parts[-3]
    for path in (Path(__file__).parents[2] / "roles").glob("[a-z]*/tasks/main.yml")
    if re.search("role_record|cluster._framework", path.read_text())
}
# Roles that depend on other machines, and look at these alone where nothing else has changed.
ROLES_THAT_LEAVE_STEPS_OUT = {
    path.parts[-3]
    for path in (Path(__file__).parents[2] / "roles").glob("[a-z]*/tasks/main.yml")
    if "record.unchanged" in path.read_text()
}
# Files that change by themselves, and units that end by themselves.
UNRECORDED = {"lustre_client": {"/lib/modules/6.1.0-40-amd64/updates/dkms/lustre.ko"}}
PASSING = {"jupyterhub-gate.service"}
# Ways that need a reboot, before which nothing is recorded.
UNFINISHED = {("nvidia_driver", "distribution")}
# Units of packages that stay with their package.
OF_PACKAGES = {"autofs.service", "docker.service", "lnet.service", "mariadb.service"}


def changes(one: Run) -> set[str]:
    return {step.name.rpartition(" : ")[2] for step in one.steps if step.result.get("changed")}


@EVERY_WAY
def test_a_role_that_runs_again_changes_nothing(role: str, way: str) -> None:
    host, _ = set_up(role, way)
    before = copy.deepcopy(host.files)
    again = run(role, host, values(role, way))
    assert not again.failed, again.refusal
    assert changes(again) <= AGAIN.get(role, set())
    assert host.files == before


@pytest.mark.parametrize("role", sorted(ROLES_THAT_LEAVE_STEPS_OUT))
def test_a_role_whose_host_is_as_recorded_leaves_steps_out_and_misses_nothing(role: str) -> None:
    host, first = set_up(role)
    whole = run(role, host)
    before = copy.deepcopy((host.files, host.made))
    host.unchanged = True
    again = run(role, host)
    assert not again.failed, again.refusal
    assert changes(again) <= AGAIN.get(role, set())
    assert (host.files, host.made) == before
    assert returned(role, again) == returned(role, first)
    assert len(again.calls) * 2 < len(whole.calls)


@EVERY_ROLE
def test_a_run_after_one_that_failed_at_a_unit_makes_up_for_it(role: str) -> None:
    whole, _ = set_up(role, OTHERWISE)
    host = copy.deepcopy(whole)
    restarted = restarts(run(role, whole))
    failing = {"ansible.builtin.systemd_service": {"failed": True, "msg": "it does not start"}}
    on(host, role).with_answers(failing).run(role)
    again = run(role, host)
    assert not again.failed, again.refusal
    assert not host.unread, "systemd has not read them"
    assert restarted - LOOKED_AT <= restarts(again)


def restarts(one: Run) -> set[str]:
    """Units that are started anew. A timer has a new time once systemd has read it."""
    return {
        call.args["name"]
        for call in one.calls
        if call.args.get("state") in ("restarted", "reloaded") and not call.args["name"].endswith(".timer")
    }


@EVERY_ROLE
def test_nothing_is_left_of_a_role_but_what_is_known(role: str) -> None:
    host, _ = set_up(role)
    gone = run(role, host, {f"{role}_state": "absent"})
    assert not gone.failed, gone.refusal
    assert left_on(host) <= KEPT.get(role, {}).keys()


def left_on(host: Host) -> set[str]:
    """Files that a role has left behind."""
    assert not host.unread, "systemd has not read them"
    active = {name for name, unit in host.units.items() if unit.enabled or unit.running}
    static = {name for name in active if not host.units[name].enabled}
    left = {*host.files, *host.accounts, *(active - OF_PACKAGES - (static & {"gpufarm-mig.service"}))}
    return left - SHARED


@EVERY_ROLE
def test_a_role_that_is_absent_already_changes_nothing(role: str) -> None:
    host = Host(units={name: Unit(enabled=True, running=True) for name in OF_PACKAGES})
    gone = run(role, host, {f"{role}_state": "absent"})
    assert not gone.failed, gone.refusal
    assert not host.files
    assert not host.accounts
    active = {name for name, unit in host.units.items() if unit.running and unit.enabled}
    assert active == OF_PACKAGES, "somebody else uses them"


@pytest.mark.parametrize(
    ("role", "way"),
    [*OTHER_WAYS, *(pytest.param(role, OTHERWISE, id=f"{role}-{OTHERWISE}") for role in sorted(CASES))],
)
def test_a_role_that_is_set_otherwise_and_back_leaves_what_it_makes_on_a_new_host(
    role: str, way: str
) -> None:
    host, _ = set_up(role, way)
    before = copy.deepcopy(host)
    back = run(role, host)
    if (role, way) in NO_WAY_BACK:
        assert NO_WAY_BACK[role, way] in back.refusal
        assert host == before
        return
    assert not back.failed, back.refusal
    assert not host.unread, "systemd has not read them"
    wanted, found = (
        {name: one for name, one in state(that).items() if name not in GIVEN}
        for that in (set_up(role)[0], host)
    )
    assert {name: one for name, one in found.items() if name in wanted} == wanted
    # Folders of users' data have other names with other settings.
    left = {name for name in found.keys() - wanted.keys() - OF_PACKAGES if not name.startswith("/srv")}
    assert left <= LEFT.get(role, {}).keys()


def state(host: Host) -> dict[str, Any]:
    """Files that a role shall make; renewed certificates count as equal."""
    return {
        **{
            path: (one.kind, one.mode, one.owner, "" if one.content.startswith("openssl") else one.content)
            for path, one in host.files.items()
        },
        **{
            name: (one.enabled, one.running) for name, one in host.units.items() if one.enabled or one.running
        },
        **dict.fromkeys(host.accounts, "is there"),
    }


@pytest.mark.parametrize(("role", "way"), OTHER_WAYS)
def test_nothing_is_left_of_a_role_that_was_set_otherwise(role: str, way: str) -> None:
    host, _ = set_up(role, way)
    gone = run(role, host, {**values(role, way), f"{role}_state": "absent"})
    assert not gone.failed, gone.refusal
    assert left_on(host) <= KEPT.get(role, {}).keys()


@pytest.mark.parametrize("role", [role for role in sorted(CASES) if f"{role}_enabled" in options(role)])
def test_a_role_that_is_switched_off_owns_nothing_and_returns_what_it_does_otherwise(role: str) -> None:
    host, first = set_up(role)
    off = run(role, host, {f"{role}_enabled": False})
    assert not off.failed, off.refusal
    if changes(off):
        assert returned(role, off).keys() == returned(role, first).keys()
        assert not any(returned(role, off).values())
        recorded = [call.args.get("owns", True) for call in off.calls if call.args.get("step") == "record"]
        assert recorded and not any(recorded), "what is switched off belongs to nobody"


def returned(role: str, one: Run) -> Mapping[str, Any]:
    """Facts that a role returns to the play."""
    facts = [step.result.get("ansible_facts", {}) for step in one.steps]
    return next((known[f"{role}_result"] for known in facts if f"{role}_result" in known), {})


@EVERY_ROLE
def test_a_check_of_a_set_up_host_changes_nothing_and_finds_no_fault(role: str) -> None:
    host, _ = set_up(role)
    before = copy.deepcopy(host)
    checked = run(role, host, check=True)
    assert not checked.failed, checked.refusal
    assert host == before
    assert_it_asks_only(checked, host)


@EVERY_WAY
def test_a_check_of_a_new_host_changes_nothing_and_finds_no_fault(role: str, way: str) -> None:
    host, checked = set_up(role, way, check=True)
    assert host == new(role)
    assert_it_asks_only(checked, host)
    made, _ = set_up(role, way)
    accounts = {account.partition(" ")[2] for account in made.accounts} - {"root"}
    for call in checked.calls:
        if call.action in WITH_OWNER:
            assert call.args.get("owner") not in accounts, f"{call.name}: the account is not there yet"


def assert_it_asks_only(checked: Run, host: Host) -> None:
    assert not [call.name for call in checked.calls if not call.asks], "they are run all the same"
    for call in checked.calls:
        python = GPU_PYTHON if call.action in WITH_NVML else call.interpreter
        assert not python or python in host.files, f"{call.name}: it is not there yet"


@EVERY_ROLE
def test_a_check_of_a_new_host_tells_which_packages_would_come(role: str) -> None:
    host, _ = set_up(role)
    _, checked = set_up(role, check=True)
    told = [str(step.result) for step in checked.steps if step.action.endswith(".debug")]
    told += [str(call.args) for call in checked.calls if call.action == "ansible.builtin.apt"]
    packages = sorted(host.packages.keys() - HELPERS - THERE.get(role, {}).keys())
    assert not [package for package in packages if package not in " ".join(told)]


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


def in_record(path: str, made: Mapping[str, Any]) -> bool:
    """Whether a record has a path, or a folder that it is in."""
    known = [*made["paths"], *made.get("reads", [])]
    return any(path == one or path.startswith(f"{one}/") for one in known)


@EVERY_WAY
def test_what_a_role_makes_is_in_its_record(role: str, way: str) -> None:
    host, _ = set_up(role, way)
    if role not in RECORDED or (role, way) in UNFINISHED:
        assert not host.made
        return
    made = host.made[role]
    paths = {
        path for path, file in host.files.items() if file.kind != "directory" and not in_record(path, made)
    }
    assert paths <= UNRECORDED.get(role, set())
    assert {name for name, unit in host.units.items() if unit.running} <= {*made.get("units", []), *PASSING}
    packages = [
        name for name in host.packages if not any(fnmatch(name, one) for one in made.get("packages", []))
    ]
    assert {*packages} <= HELPERS
    accounts = {f"user {name}" for name in made.get("users", [])} | {
        f"group {name}" for name in made.get("groups", [])
    }
    assert host.accounts <= accounts
