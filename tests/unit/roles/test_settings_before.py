"""Settings that a machine had before a role are there again when the role is removed."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from harness import Call
from harness.host import File, Host, Unit
from harness.life import on as life_on
from harness.life import run
from harness.stubs import PARTITIONED

USERADD = "/etc/default/useradd"


# Settings with which a role runs a service of a package.
WITH_SERVICE = {"fabric": {"subnet_manager": True}}


def done(role: str, host: Host, **changed: Any) -> None:
    given = {**WITH_SERVICE.get(role, {}), **changed}
    one = run(role, host, {f"{role}_{name}": value for name, value in given.items()})
    assert not one.failed, one.refusal


def absent(role: str, host: Host, **changed: Any) -> None:
    done(role, host, state="absent", **changed)


def with_useradd(text: str) -> Host:
    return Host(files={USERADD: File("file", text, "0644")})


@pytest.mark.parametrize(
    "text",
    [
        "# GROUP=100\n# HOME=/home\n# INACTIVE=-1\n",
        "GROUP=100\nHOME=/export/home\nSHELL=/bin/bash\n",
        "GROUP=100\n#HOME=/elsewhere\n",
        "HOME=/export/home\n# HOME=/home\n",
        "HOME=/with\\1backslash \"quotes\" {{ braces }} 'more'\n",
        "SHELL=/bin/bash\n",
        "",
    ],
)
def test_new_accounts_have_their_homes_where_they_had_them(text: str) -> None:
    host = with_useradd(text)
    done("shared_home", host)
    assert "HOME=/srv/home\n" in host.files[USERADD].content
    done("shared_home", host)
    absent("shared_home", host)
    assert host.files[USERADD].content == text


def test_a_second_place_of_homes_is_not_taken_for_that_before() -> None:
    host = with_useradd("HOME=/export/home\n")
    done("shared_home", host)
    done("shared_home", host, path="/srv/other")
    assert host.files[USERADD].content == "HOME=/srv/other\n"
    absent("shared_home", host, path="/srv/other")
    assert host.files[USERADD].content == "HOME=/export/home\n"


def test_a_place_of_homes_without_a_record_is_not_taken_for_that_before() -> None:
    host = with_useradd("HOME=/export/home\n")
    done("shared_home", host)
    host.before.clear()
    done("shared_home", host)
    absent("shared_home", host)
    assert host.files[USERADD].content == "# HOME=/home\n"


def test_homes_elsewhere_are_left_alone() -> None:
    host = with_useradd("HOME=/export/home\n")
    done("shared_home", host)
    host.files[USERADD].content = "HOME=/srv/home/more\n"
    absent("shared_home", host)
    assert host.files[USERADD].content == "HOME=/srv/home/more\n"


PACKAGED = pytest.mark.parametrize(
    ("role", "package", "unit"),
    [("app_gateway", "haproxy", "haproxy.service"), ("paas_service", "nginx-light", "nginx.service")],
)


@PACKAGED
@pytest.mark.parametrize(("enabled", "running"), [(True, True), (False, False)])
def test_a_proxy_of_the_site_goes_on(
    role: str, package: str, unit: str, enabled: bool, running: bool
) -> None:
    host = Host(packages={package: ""}, units={unit: Unit(enabled, running)})
    for step in (done, done, absent):
        step(role, host)
        assert (host.units[unit].enabled, host.units[unit].running) == (enabled, running)


@PACKAGED
def test_the_service_of_a_new_package_does_not_start_at_boot(role: str, package: str, unit: str) -> None:
    host = Host()
    done(role, host)
    assert not host.units[unit].enabled
    host.units[unit].enabled = True
    done(role, host)
    assert host.units[unit].enabled, "the site uses it now"
    absent(role, host)
    assert host.units[unit].enabled


@PACKAGED
def test_a_run_that_was_killed_after_the_package_came_is_made_up_for(
    role: str, package: str, unit: str
) -> None:
    host = Host()
    done(role, host)
    host.units[unit].enabled = True
    host.made.clear()
    done(role, host)
    assert not host.units[unit].enabled


SERVICES = [
    ("dcgm", ["datacenter-gpu-manager-4-core", "datacenter-gpu-manager-exporter"], "nvidia-dcgm.service"),
    ("fabric", ["opensm"], "opensm.service"),
    ("monitoring", ["grafana", "prometheus"], "prometheus.service"),
    ("monitoring", ["grafana", "prometheus-node-exporter"], "prometheus-node-exporter.service"),
    ("sssd", ["sssd-ldap", "libpam-sss"], "sssd.service"),
]


@pytest.mark.parametrize(("role", "packages", "unit"), SERVICES)
@pytest.mark.parametrize("state", [Unit(True, True), Unit(True, False)])
def test_a_service_of_the_site_runs_as_before(role: str, packages: list[str], unit: str, state: Unit) -> None:
    host = Host(packages=dict.fromkeys(packages, ""), units={unit: state})
    done(role, host)
    assert host.units[unit].running
    assert host.units[unit].enabled
    done(role, host)
    absent(role, host)
    assert (host.units[unit].enabled, host.units[unit].running) == (state.enabled, state.running)
    assert packages[-1] in host.packages
    assert not host.unread
    assert not [path for path in host.files if path.startswith("/etc/systemd/system/")]


@pytest.mark.parametrize(("role", "packages", "unit"), SERVICES)
def test_a_service_of_the_role_stops(role: str, packages: list[str], unit: str) -> None:
    host = Host(packages={"grafana": ""})
    done(role, host)
    absent(role, host)
    assert not host.units[unit].running
    assert not host.units[unit].enabled


def test_packages_that_a_site_holds_stay_held() -> None:
    packages = ["datacenter-gpu-manager-4-core", "datacenter-gpu-manager-exporter"]
    host = Host(packages=dict.fromkeys(packages, ""), held={packages[0]})
    done("dcgm", host)
    assert host.held >= {*packages}
    absent("dcgm", host)
    assert host.held == {packages[0]}


# Roles with packages that they bring, hold and remove, and a unit of the packages that they run or stop.
BROUGHT = [
    ("nvidia_container", "nvidia-container-toolkit-base", "nvidia-cdi-refresh.path"),
    ("cvmfs_client", "cvmfs", "autofs.service"),
    ("lustre_client", "lustre-client-utils", "lnet.service"),
]


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(("role", "package", "unit"), BROUGHT)
def test_a_package_of_the_site_stays_and_is_held_as_before(
    role: str, package: str, unit: str, held: bool
) -> None:
    host = Host(packages={package: ""}, held={package} if held else set())
    done(role, host)
    assert package in host.held
    done(role, host)
    absent(role, host)
    assert package in host.packages
    assert host.held == ({package} if held else set())


# Roles with a variable that may be empty, so that they have nothing to do.
WITHOUT_WISHES = [
    ("cvmfs_client", "cvmfs", "repositories", ""),
    ("lustre_client", "lustre-client-utils", "file_systems", []),
]


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(("role", "package", "wishes", "none"), WITHOUT_WISHES)
def test_a_package_of_the_site_stays_also_if_nothing_was_wanted_at_first(
    role: str, package: str, wishes: str, none: Any, held: bool
) -> None:
    host = Host()
    done(role, host, **{wishes: none})
    host.packages[package] = ""
    host.held |= {package} if held else set()
    done(role, host)
    assert package in host.held
    done(role, host, **{wishes: none})
    absent(role, host)
    assert package in host.packages
    assert host.held == ({package} if held else set())


@pytest.mark.parametrize(("role", "package", "wishes", "none"), WITHOUT_WISHES)
def test_a_role_owns_nothing_until_something_is_wanted(
    role: str, package: str, wishes: str, none: Any
) -> None:
    host = Host()
    for given, owns in (({wishes: none}, False), ({}, True), ({wishes: none}, True)):
        calls = run(role, host, {f"{role}_{name}": value for name, value in given.items()}).calls
        owned = [
            call.args.get("owns", True) for call in calls if call.args.get("step") in ("claim", "record")
        ]
        assert owned == [owns, owns]


@pytest.mark.parametrize(("role", "package", "unit"), BROUGHT)
def test_a_package_that_the_role_has_brought_goes(role: str, package: str, unit: str) -> None:
    host = Host()
    done(role, host)
    assert package in host.packages
    absent(role, host)
    assert package not in host.packages
    assert not host.held


@pytest.mark.parametrize("state", [Unit(True, True), Unit(False, False)])
@pytest.mark.parametrize(("role", "package", "unit"), BROUGHT)
def test_a_unit_of_such_a_package_runs_as_before(role: str, package: str, unit: str, state: Unit) -> None:
    host = Host(packages={package: ""}, units={unit: state})
    done(role, host)
    absent(role, host)
    after = host.units[unit]
    assert (after.enabled, after.running) == (state.enabled, state.running)


MASKS = [f"/etc/systemd/system/nvidia-cdi-refresh.{kind}" for kind in ("path", "service")]


def test_units_that_a_site_has_masked_stay_masked() -> None:
    host = Host(files={MASKS[0]: File("link")}, packages={"nvidia-container-toolkit-base": ""})
    for step in (done, done):
        step("nvidia_container", host)
        assert {*MASKS} <= host.files.keys()
    absent("nvidia_container", host)
    assert MASKS[0] in host.files
    assert MASKS[1] not in host.files
    assert not host.unread


AUTOFS_MAP = "/etc/auto.master.d/cvmfs.autofs"


@pytest.mark.parametrize("there", [True, False])
def test_repositories_that_a_site_mounts_by_autofs_stay_so(there: bool) -> None:
    host = Host(
        files={AUTOFS_MAP: File("file", "/cvmfs program:/etc/auto.cvmfs\n")} if there else {},
        packages={"cvmfs": ""},
        units={"autofs.service": Unit(True, True)},
    )
    done("cvmfs_client", host)
    assert AUTOFS_MAP in host.files
    absent("cvmfs_client", host)
    assert (AUTOFS_MAP in host.files) == there
    assert host.units["autofs.service"].running


@pytest.mark.parametrize("used", [True, False])
def test_a_profile_of_pam_that_a_site_has_disabled_stays_so(used: bool) -> None:
    rules = "auth sufficient pam_sss.so\n" if used else "auth required pam_unix.so\n"
    host = Host(
        files={"/usr/share/pam-configs/sss": File("file"), "/etc/pam.d/common-auth": File("file", rules)}
    )
    done("sssd", host)
    gone = run("sssd", host, {"sssd_state": "absent"})
    [call] = [call for call in gone.calls if call.args.get("argv", [""])[0] == "pam-auth-update"]
    assert ("--enable" in call.args["argv"]) == used


KEY = "/etc/munge/munge.key"
SECRET_KEY = "secret-of-the-test-munge.key"
# Roles of Slurm with the packages that they install and remove.
OF_SLURM = {
    "slurm_accounting": ["munge", "slurm-client", "slurm-wlm-jwt-plugin", "slurmdbd"],
    "slurm_controller": ["munge", "slurm-client", "slurm-wlm-jwt-plugin", "slurmctld"],
    "slurm_login": ["munge", "slurm-client", "sackd"],
    "slurm_node": ["munge", "slurm-client", "slurmd", "slurm-wlm-nvml-plugin", "libpam-slurm-adopt"],
}
WITH_TOKENS = {"slurm_accounting": {"tokens": True}, "slurm_controller": {"tokens": True}}
EACH_OF_SLURM = pytest.mark.parametrize("role", OF_SLURM)


def with_munge(state: Unit) -> Host:
    files = {
        "/etc/munge": File("directory", "", "0700", "munge"),
        KEY: File("file", SECRET_KEY, "0600", "munge"),
    }
    return Host(files=files, packages={"munge": ""}, units={"munge.service": state})


@pytest.mark.parametrize("state", [Unit(True, True), Unit(False, False)])
@EACH_OF_SLURM
def test_munge_of_a_site_and_its_key_stay_as_they_were(role: str, state: Unit) -> None:
    host = with_munge(state)
    done(role, host)
    assert host.files[KEY].mode == "0400"
    assert host.units["munge.service"].running
    done(role, host)
    absent(role, host)
    after = host.units["munge.service"]
    assert (after.enabled, after.running) == (state.enabled, state.running)
    assert (host.files[KEY].content, host.files[KEY].mode) == (SECRET_KEY, "0600")
    assert "munge" in host.packages
    assert "slurm-client" not in host.packages
    assert {*host.files} == {"/etc/munge", KEY}
    assert not host.unread


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("slurm_accounting", "slurm_controller"),
        ("slurm_controller", "slurm_node"),
        ("slurm_node", "slurm_accounting"),
        ("slurm_accounting", "slurm_login"),
    ],
)
def test_the_last_role_of_slurm_leaves_munge_as_the_first_found_it(
    first: str, last: str, there: bool
) -> None:
    host = with_munge(Unit(True, True)) if there else Host()
    for role in (first, last):
        done(role, host)
    absent(first, host)
    assert {"munge", "slurm-client"} <= host.packages.keys()
    assert host.units["munge.service"].running
    absent(last, host)
    assert ("munge" in host.packages) == host.units["munge.service"].running == (KEY in host.files) == there
    assert "slurm-client" not in host.packages


@EACH_OF_SLURM
def test_packages_of_slurm_that_a_site_has_stay(role: str) -> None:
    host = Host(packages=dict.fromkeys(OF_SLURM[role], ""))
    done(role, host, **WITH_TOKENS.get(role, {}))
    absent(role, host, **WITH_TOKENS.get(role, {}))
    assert {*OF_SLURM[role]} <= host.packages.keys()


@EACH_OF_SLURM
def test_packages_that_a_role_of_slurm_has_brought_go(role: str) -> None:
    host = Host()
    done(role, host, **WITH_TOKENS.get(role, {}))
    assert {*OF_SLURM[role]} <= host.packages.keys()
    absent(role, host, **WITH_TOKENS.get(role, {}))
    assert {*OF_SLURM[role]}.isdisjoint(host.packages)


def test_the_plugin_for_tokens_of_a_site_stays_behind_the_last_role_that_uses_it() -> None:
    host = Host(packages={"slurm-wlm-jwt-plugin": "", "slurmrestd": ""})
    host.units["slurmrestd.service"] = Unit()
    for step in (done, absent):
        for role in ("slurm_controller", "slurm_rest"):
            step(role, host, **WITH_TOKENS.get(role, {}))
    assert {"slurm-wlm-jwt-plugin", "slurmrestd"} <= host.packages.keys()


@pytest.mark.parametrize(("other", "munge"), [("slurm_rest", True), ("slurm_login", False)])
@pytest.mark.parametrize("role", ["slurm_node"])
def test_packages_of_a_site_that_came_after_a_role_without_them_stay(
    role: str, other: str, munge: bool
) -> None:
    host = Host()
    done(other, host)
    host.packages |= {"slurmd": "", "munge": ""}
    done(role, host)
    absent(role, host)
    absent(other, host)
    assert "slurmd" in host.packages
    assert ("munge" in host.packages) == munge, "the login brings it, and takes it along"


@EACH_OF_SLURM
def test_munge_of_a_machine_where_the_role_was_never_stays(role: str) -> None:
    host = with_munge(Unit(True, True))
    absent(role, host)
    assert KEY in host.files
    assert "munge" in host.packages
    assert host.units["munge.service"].running


@EACH_OF_SLURM
def test_without_a_record_of_it_munge_goes_with_the_role(role: str) -> None:
    host = with_munge(Unit(True, True))
    done(role, host)
    host.before.clear()
    absent(role, host)
    assert KEY not in host.files
    assert "munge" not in host.packages


@pytest.mark.parametrize(
    ("state", "task"),
    [
        ("present", "Munge | Make the folders of the key"),
        ("present", "Secrets | Write the files with secrets"),
        ("present", "Install | Install the packages"),
        ("present", "Munge | Extend the unit of the package"),
        ("present", "Munge | Enable and start munge"),
        ("absent", "Munge | Remove the packages"),
        ("absent", "Munge | Restore the mode of the key"),
        ("absent", "Munge | Remove the files"),
        ("absent", "Units | Run the units as before"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("role", ["slurm_login"])
def test_munge_is_as_before_after_a_run_that_was_killed(
    role: str, state: str, task: str, there: bool
) -> None:
    host = with_munge(Unit(True, True)) if there else Host()
    if state == "absent":
        done(role, host)
    killed = life_on(host, role).with_answers({task: {"failed": True, "msg": "killed"}})
    one = killed.run(role, {f"{role}_state": state})
    never = not there and task in ("Munge | Restore the mode of the key", "Units | Run the units as before")
    assert bool(one.failed) != never
    absent(role, host)
    assert ("munge" in host.packages) == host.unit("munge.service").running == (KEY in host.files) == there
    assert not there or host.files[KEY].mode == "0600"


SITE_UNITS = [
    ("slurm_accounting", "mariadb.service", "mariadb-server"),
    ("slurm_controller", "slurmctld.service", "slurmctld"),
    ("slurm_login", "sackd.service", "sackd"),
    ("slurm_node", "slurmd.service", "slurmd"),
]


@pytest.mark.parametrize("state", [Unit(True, True), Unit(False, False)])
@pytest.mark.parametrize(("role", "unit", "package"), SITE_UNITS)
def test_a_daemon_of_the_site_runs_as_before_a_role_of_slurm(
    role: str, unit: str, package: str, state: Unit
) -> None:
    host = Host(packages={package: ""}, units={unit: state})
    done(role, host)
    assert (host.units[unit].enabled, host.units[unit].running) == (True, True)
    started = host.units[unit].time
    absent(role, host)
    after = host.units[unit]
    assert (after.enabled, after.running) == (state.enabled, state.running)
    assert not after.running or after.time > started, "it has the settings of the role no longer"


def test_a_database_server_that_came_with_the_accounting_goes_on() -> None:
    host = Host()
    done("slurm_accounting", host)
    absent("slurm_accounting", host)
    assert (host.units["mariadb.service"].enabled, host.units["mariadb.service"].running) == (True, True)


GPUS = {"GPU-1": True, "GPU-2": False}


def mig(host: Host, on: dict[str, bool], **changed: Any) -> Any:
    """Run the role on a machine with two GPUs, some with MIG mode on."""
    known = [{"uuid": uuid, "mig_enabled": mode, "mig_pending": mode} for uuid, mode in on.items()]
    enabled = changed.get("mig_partition_flavor") != "disabled"
    asked = changed.get("mig_gpus", [*on])
    layout = [{"gpu": uuid, "mig_enabled": enabled, "partitions": []} for uuid in asked]

    def told(call: Call) -> dict[str, Any]:
        some = call.args.get("gpus", [])
        return {"gpus": [one for one in known if not some or some == ["all"] or one["uuid"] in some]}

    case = life_on(host, "mig").with_answers(
        {
            "gpufarm.cluster.gpu_info": told,
            "gpufarm.cluster.mig_partition": {**PARTITIONED, "layout": layout, "machine": [*on]},
        }
    )
    one = case.run("mig", changed)
    assert not one.failed, one.refusal
    return one


def switched(one: Any) -> list[tuple[str, list[str]]]:
    """Return the MIG modes that a removal asks for, with the GPUs."""
    calls = [call.args for call in one.calls if call.action == "gpufarm.cluster.mig_partition"]
    return [("off" if "flavor" in args else "on", args["gpus"]) for args in calls]


def test_mig_mode_stays_on_where_it_was() -> None:
    host = Host()
    mig(host, GPUS)
    mig(host, {"GPU-1": True, "GPU-2": True})  # as the role has made it
    assert host.before["mig"] == {"GPU-1": "on", "GPU-2": "off"}
    gone = mig(host, {"GPU-1": True, "GPU-2": True}, mig_state="absent")
    assert switched(gone) == [("on", ["GPU-1"]), ("off", ["GPU-2"])]
    assert "mig" not in host.before


def test_mig_mode_of_a_machine_without_a_record_goes_off() -> None:
    host = Host()
    mig(host, GPUS)
    host.before.clear()
    mig(host, {"GPU-1": True, "GPU-2": True})
    assert host.before["mig"] == {}
    assert switched(mig(host, GPUS, mig_state="absent")) == [("off", ["GPU-1", "GPU-2"])]


def test_mig_mode_is_not_asked_for_where_partitions_stay_as_they_are() -> None:
    one = mig(Host(), GPUS, mig_partition_flavor="None")
    assert not [call for call in one.calls if call.action == "gpufarm.cluster.gpu_info"]


def test_mig_mode_that_the_role_has_switched_off_is_on_again_where_it_was() -> None:
    host = Host()
    mig(host, GPUS, mig_partition_flavor="disabled")
    off = dict.fromkeys(GPUS, False)
    mig(host, off, mig_partition_flavor="disabled")
    assert switched(mig(host, off, mig_state="absent")) == [("on", ["GPU-1"])]


def test_mig_mode_of_a_gpu_that_the_role_was_never_asked_for_is_not_remembered() -> None:
    host = Host()
    mig(host, GPUS, mig_gpus=["GPU-2"])
    assert host.before["mig"] == {"GPU-2": "off"}
    by_hand = {"GPU-1": False, "GPU-2": True}
    assert switched(mig(host, by_hand, mig_gpus=["GPU-2"], mig_state="absent")) == [("off", ["GPU-2"])]


def test_mig_mode_of_gpus_with_partitions_of_another_owner_stays() -> None:
    host = Host()
    mig(host, GPUS, mig_partition_flavor="disabled")
    stored = {"layout": [{"gpu": "GPU-1", "mig_enabled": True, "partitions": [], "owner": "bob"}]}
    host.files["/etc/gpufarm/mig.json"] = File("file", json.dumps(stored), "0644")
    assert switched(mig(host, dict.fromkeys(GPUS, False), mig_state="absent")) == []


def test_without_the_python_of_gpus_a_removal_leaves_mig_mode_as_it_is() -> None:
    host = Host()
    mig(host, GPUS, mig_partition_flavor="disabled")
    for path in [path for path in host.files if path.startswith("/opt/gpufarm/gpu")]:
        del host.files[path]
    assert switched(mig(host, dict.fromkeys(GPUS, False), mig_state="absent")) == []
