# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans and refusals for settings of Mesos masters and agents."""

from __future__ import annotations

import json
from typing import Any

import mesos_settings as given
import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos import agent, master, options


def master_problems(**changes: Any) -> str:
    return " ".join(master.plan(given.master(**changes))["problems"])


def agent_problems(machine: dict[str, Any] | None = None, **changes: Any) -> str:
    return " ".join(agent.plan(given.agent(**changes), machine)["problems"])


@pytest.mark.parametrize(("masters", "quorum"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_the_quorum_follows_from_the_number_of_masters(masters: int, quorum: int) -> None:
    plan = master.plan(given.master(masters=["m1", *(f"x{number}" for number in range(masters - 1))]))
    assert plan["options"]["quorum"] == str(quorum)
    assert bool(plan["warning"]) == (masters % 2 == 0)


@pytest.mark.parametrize(
    ("before", "masters", "words"),
    [
        ({}, 3, ""),
        ({"m1": 1, "m2": 0}, 1, ""),
        ({"m1": 1, "m2": 0, "m3": 0}, 3, "m1 was the only master, and the log of one master cannot grow"),
        ({"m1": 1, "m2": 0}, 2, "move /var/lib/mesos/master/replicated_log away, and run again"),
        ({"m1": 2, "m2": 2, "m3": 2, "m4": 0, "m5": 0}, 5, ""),
        ({"m1": 2, "m2": 2, "m3": 2, "m4": 0}, 7, "have 5 masters at most in this run"),
        ({"m1": 2, "m2": 2, "m3": 0}, 3, ""),
        (
            {"m1": 2, "m2": 2},
            5,
            "m1, m2 alone have the log, which are too few for a majority; have 3 masters",
        ),
        ({"m1": 3, "m2": 3, "m3": 3}, 3, ""),
    ],
)
def test_a_log_grows_only_with_a_majority_that_has_it(
    before: dict[str, int], masters: int, words: str
) -> None:
    names = [f"m{number + 1}" for number in range(masters)]
    told = master_problems(masters=names, before=before)
    assert words in told and bool(told) == bool(words)


def test_a_master_is_not_parted_from_its_log() -> None:
    told = master_problems(work_directory="/srv/mesos", log_elsewhere="/var/lib/mesos/master/replicated_log")
    assert "is /srv/mesos, and the log of m1 is /var/lib/mesos/master/replicated_log, without which" in told


def test_nobody_gets_in_without_a_password_by_default() -> None:
    of_master, of_agent = master.plan(given.master())["options"], agent.plan(given.agent())["options"]
    for name in ("agents", "frameworks", "http_frameworks", "http_readonly", "http_readwrite"):
        assert of_master[f"authenticate_{name}"] == "true"
    assert of_agent["authenticate_http_readonly"] == of_agent["authenticate_http_readwrite"] == "true"
    assert of_master["credentials"].startswith("/etc/mesos-master/secrets/")
    assert of_agent["credential"].startswith("/etc/mesos-agent/secrets/")


def test_the_environment_has_no_secret_and_needs_no_quotes() -> None:
    text = master.plan(given.master())["environment"]
    assert "MESOS_ZK=file:///etc/mesos-master/secrets/zk\n" in text
    for line in text.splitlines()[1:]:
        assert not set(line) & set("\"'\\`$"), line


def test_rules_go_to_a_file() -> None:
    rules = {
        "permissive": False,
        "register_frameworks": [{"principals": {"values": ["a"]}, "roles": {"type": "ANY"}}],
    }
    plan = master.plan(given.master(acls=rules))
    assert plan["options"]["acls"] == "/etc/mesos-master/acls.json"
    assert json.loads(plan["files"]["acls.json"]) == rules


def test_what_may_have_logins_goes_to_files_that_nobody_else_reads() -> None:
    logins = {"auths": {"registry.example.org": {"auth": "c2VjcmV0"}}}
    plan = agent.plan(given.agent(flags={"docker_config": logins, "domain": {"fault_domain": {}}}))
    assert plan["options"]["docker_config"] == "/etc/mesos-agent/secrets/docker_config.json"
    assert json.loads(plan["secret_files"]["docker_config.json"]) == logins
    assert plan["options"]["domain"] == "/etc/mesos-agent/domain.json"
    assert set(plan["files"]) == {"domain.json"}


def test_variables_of_every_container_go_where_nobody_else_reads() -> None:
    variables = {"type": "MESOS", "environment": {"variables": [{"name": "TOKEN", "value": "s3cr3t"}]}}
    plan = agent.plan(given.agent(flags={"default_container_info": variables}))
    assert json.loads(plan["secret_files"]["default_container_info.json"]) == variables
    assert plan["files"] == {}


@pytest.mark.parametrize("program", ["master", "agent"])
def test_what_other_settings_needed_is_unwanted_and_nothing_that_is_needed(program: str) -> None:
    folder = f"/etc/mesos-{program}"
    tls = {"tls_certificate": "/a.pem", "tls_key": "/a.key", "tls_ca": "/ca.pem"}
    structured = {"modules": {"libraries": []}, "firewall_rules": {"disabled_endpoints": {}}}
    for flags in ({}, structured):
        for kind in ("none", "provided"):
            settings = {"tls": kind, "flags": flags, **(tls if kind == "provided" else {})}
            plan = {"master": master, "agent": agent}[program].plan(getattr(given, program)(**settings))
            gone = {entry["path"] for entry in plan["unwanted"] if entry["state"] == "absent"}
            for path in (f"{folder}/tls.pem", f"{folder}/secrets/tls.key", f"{folder}/ca.pem"):
                assert (path in gone) == (kind == "none")
            for path in (f"{folder}/secrets/modules.json", f"{folder}/firewall_rules.json"):
                assert (path in gone) == (not flags)
            assert not [path for path in gone if path in plan["environment"]]


def test_tls_is_verified_and_has_no_way_back() -> None:
    paths = {"tls_certificate": "/a.pem", "tls_key": "/a.key", "tls_ca": "/ca.pem"}
    text = agent.plan(given.agent(tls="provided", **paths))["environment"]
    for line in ("ENABLED=true", "VERIFY_SERVER_CERT=true", "SUPPORT_DOWNGRADE=false"):
        assert f"LIBPROCESS_SSL_{line}\n" in text
    assert "RC4" not in text
    assert "mesos_agent_tls_key is ''" in agent_problems(tls="provided")


def test_gpus_come_with_their_number_and_isolators() -> None:
    with_gpus = agent.plan(given.agent(gpu_devices=[0, 2]))["options"]
    assert with_gpus["nvidia_gpu_devices"] == "0,2" and with_gpus["resources"].endswith(";gpus:2")
    isolators = set(with_gpus["isolation"].split(","))
    assert {"filesystem/linux", "cgroups/devices", "gpu/nvidia", "cgroups/cpu", "cgroups/mem"} <= isolators
    without = agent.plan(given.agent())["options"]
    assert "nvidia_gpu_devices" not in without and without["resources"].endswith(";gpus:0")
    assert "gpu/nvidia" not in without["isolation"]


def test_resources_are_the_same_text_whatever_their_order() -> None:
    turned = dict(reversed(given.agent()["resources"].items()))
    assert agent.plan(given.agent(resources=turned)) == agent.plan(given.agent())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"flags": {"quorm": 1}},
            "quorm, which the master of Mesos 1.11 does not know; did you mean quorum?",
        ),
        ({"flags": {"quorum": 1}}, "set mesos_master_masters"),
        ({"flags": {"authenticate_slaves": True}}, "whose name is authenticate_agents now"),
        ({"flags": {"allocation_interval": "5x"}}, "has to be a duration"),
        ({"flags": {"cluster_name": 'a"b'}}, "does not know"),
        ({"flags": {"registry_strict": "maybe"}}, "has to be true or false"),
        ({"flags": {"rate_limits": "limits.json"}}, "is neither a map or list nor an absolute path"),
        ({"flags": {"authenticate_agents": False}}, "lets anybody in"),
        ({"flags": {"cleanup_log_files": 3}, "build": "apache"}, "cleanup_log_files, which the master"),
        ({"flags": {"log_dir": "/var/log\nMESOS_QUORUM=1"}}, "has quotes, backslashes or blanks"),
        ({"masters": ["m1", "m1"]}, "has m1 twice"),
        ({"masters": ["m2"]}, "m1 is not in mesos_master_masters"),
        ({"principals": ["operator"]}, "lacks agent, which agents register as"),
        ({"principals": ["agent", "operator", "../x"]}, "which is no plain name"),
        ({"zookeeper": []}, "mesos_master_zookeeper is empty"),
        ({"zookeeper": ["zk1:2181", "zk2:2181", "zk1:2181"]}, "mesos_master_zookeeper has zk1:2181 twice"),
        ({"zookeeper": ["zk1"]}, "give each server as HOST:PORT"),
        ({"checksum": ""}, "mesos_master_checksum is no checksum"),
        ({"url": ""}, "give the URL of the package at your mirror"),
        ({"work_directory": "/tmp/mesos"}, "which the system empties"),
        ({"acls": {"run_task": []}}, "run_task, which Mesos would ignore; did you mean run_tasks?"),
        ({"acls": {"run_tasks": [{"principals": {"type": "ANY"}}]}}, "needs principals and users"),
        (
            {"acls": {"run_tasks": [{"principals": "ANY", "users": {"type": "ANY"}}]}},
            "has something other than",
        ),
        ({"weights": {"a": 0}}, "give a number above 0"),
        ({"quotas": [{"role": "a/b", "limits": {"cpus": 1}}]}, "is nested"),
        ({"quotas": [{"limits": {"cpus": 1}}]}, "no map with role"),
    ],
)
def test_a_master_that_cannot_work_is_refused(changes: dict[str, Any], words: str) -> None:
    assert words in master_problems(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"resources": {"cpus": 1, "mem": 1}}, "lacks disk"),
        (
            {"resources": {**given.agent()["resources"], "gpus": 1}},
            "list the GPUs in mesos_agent_gpu_devices",
        ),
        ({"resources": {**given.agent()["resources"], "ports": "31000"}}, "give ranges"),
        ({"resources": {**given.agent()["resources"], "mem": "8GB"}}, "has to be a number"),
        ({"gpu_devices": [0, 0]}, "has a GPU twice"),
        ({"gpu_devices": [0], "isolation": ["filesystem/linux", "cgroups/devices"]}, "isolators gpu/nvidia"),
        ({"flags": {"nvidia_gpu_devices": "0"}}, "set mesos_agent_gpu_devices in its place"),
        ({"attributes": {"gpu": ""}}, "which Mesos cannot read"),
        ({"attributes": {"gpu": "a;b"}}, "which Mesos cannot read"),
        ({"masters": []}, "mesos_agent_masters is empty"),
        ({"principal": "../operator"}, "mesos_agent_principal is '../operator', which is no plain name"),
        ({"source": "image", "image": ""}, "mesos_agent_image is ''; give a name with @sha256:"),
        (
            {"source": "image", "image": "mesos:1", "gpu_devices": [0]},
            "an agent in a container does not find",
        ),
        ({"flags": {"recover": "cleanup me"}}, "has to be reconnect or cleanup"),
        ({"flags": {"launcher": "posix"}, "isolation": ["cgroups/cpu"]}, "needs the Linux launcher"),
    ],
)
def test_an_agent_that_cannot_work_is_refused(changes: dict[str, Any], words: str) -> None:
    assert words in agent_problems(**changes)


@pytest.mark.parametrize(
    ("changes", "machine", "words"),
    [
        ({"build": "apache"}, {"cgroup": 2}, "cannot use them; install clusterd"),
        ({"build": "apache", "flags": {"launcher": "posix"}}, {"cgroup": 2}, ""),
        ({"build": "clusterd"}, {"cgroup": 2, "glibc": "2.36", "kernel": "6.1.0"}, ""),
        (
            {"build": "clusterd", "flags": {"cgroups_limit_swap": True}},
            {"cgroup": 2},
            "where cgroups_limit_swap",
        ),
        (
            {"build": "apache", "gpu_devices": [0]},
            {"glibc": "2.32", "gpus": ["0, [N/A], GPU-0"]},
            "library cache",
        ),
        ({"build": "apache", "gpu_devices": [0]}, {"glibc": "2.31", "gpus": ["0, [N/A], GPU-0"]}, ""),
        (
            {"build": "apache", "isolation": ["linux/capabilities"]},
            {"kernel": "5.10.0-8"},
            "linux/capabilities of",
        ),
        ({"gpu_devices": [0]}, {}, "has no NVIDIA driver that answers"),
        ({"gpu_devices": [1]}, {"gpus": ["0, Disabled, GPU-0"]}, "has no GPU 1; it has 0"),
        ({"gpu_devices": [0]}, {"gpus": ["0, Enabled, GPU-0"]}, "is in MIG mode"),
        (
            {"gpu_devices": [1]},
            {"gpus": ["0, Disabled, GPU-0", "1, Disabled, GPU-1"], "cordoned": ["GPU-0"]},
            "",
        ),
        (
            {"gpu_devices": [0, 1]},
            {"gpus": ["0, Disabled, GPU-0", "1, Disabled, GPU-1"], "cordoned": ["GPU-1", "GPU-of-another"]},
            "GPU 1 of a1 is cordoned, so no task may get it: list the other GPUs in mesos_agent_gpu_devices,"
            " or end the cordon with 'gpufarm-health uncordon GPU-1'.",
        ),
        ({"gpu_devices": [0], "mig_gpus": "allow"}, {"gpus": ["0, Enabled, GPU-0"]}, ""),
        ({"gpu_devices": [0]}, {"gpus": ["0, Disabled, GPU-0", "1, Enabled, GPU-1"]}, ""),
        (
            {"gpu_devices": [0]},
            {"gpus": ["0, Disabled, GPU-0"], "folders": ["/dev/nvidia-caps-imex-channels"]},
            "takes it",
        ),
    ],
)
def test_a_machine_that_cannot_have_it_is_refused(
    changes: dict[str, Any], machine: dict[str, Any], words: str
) -> None:
    found = agent_problems(given.machine(**machine), **changes)
    assert words in found if words else found == ""


def test_what_the_settings_and_the_machine_lack_is_told_at_once() -> None:
    found = agent_problems(
        given.machine(cgroup=2), build="apache", masters=[], url="", flags={"isolatio": "x"}, resources={}
    )
    for words in ("is no address", "isolatio", "lacks cpus", "masters is empty", "version 2 only"):
        assert words in found


@pytest.mark.parametrize("image", ["mesos:1.11", "hub.example.org/mesos@sha256:" + 64 * "a"])
def test_an_image_needs_neither_address_nor_checksum(image: str) -> None:
    given_image = {"source": "image", "image": image, "url": "", "checksum": ""}
    assert master_problems(**given_image) == agent_problems(**given_image) == ""


def test_each_build_has_its_own_options() -> None:
    flags = {"flags": {"egress_burst": "1MB", "cleanup_log_files": 7}}
    assert agent_problems(build="clusterd", **flags) == ""
    for name in flags["flags"]:
        assert f"{name}, which the agent of Mesos 1.11 does not know" in agent_problems(
            build="apache", **flags
        )


def test_every_action_of_the_rules_is_known_once() -> None:
    names = " ".join(options.ACL_ACTIONS.values()).split()
    assert len(names) == len(set(names)) == 54


OFFERS = {"cpus": 4, "mem": 8192, "disk": 10000, "ports": "31000-32000"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"resources": {**OFFERS, "cpus": 6, "ports": "31000-33000", "fpgas": 1}}, ""),
        ({"resources": {name: value for name, value in OFFERS.items() if name != "ports"}}, ""),
        ({"attributes": {"rack": "r1", "model": "A100"}}, ""),
        ({"resources": {**OFFERS, "cpus": 3.5}}, "other or less resources.cpus, which Mesos does not allow"),
        ({"resources": {**OFFERS, "ports": "31500-32000"}}, "less resources.ports,"),
        ({"gpu_devices": []}, "less resources.gpus,"),
        ({"attributes": {}}, "less attributes.rack,"),
        ({"attributes": {"rack": "r2"}, "port": 5052}, "less port, attributes.rack, which"),
        ({"hostname": "a2"}, "less hostname,"),
        ({"work_directory": "/srv/mesos"}, "less work_dir, which"),
        ({"work_directory": "/srv/mesos"}, "remove /var/lib/mesos/agent/meta/slaves/latest there"),
        ({"flags": {"reconfiguration_policy": "equal"}}, ""),
        (
            {"flags": {"reconfiguration_policy": "equal"}, "resources": {**OFFERS, "cpus": 6}},
            "remove /var/lib/mesos/agent/meta/slaves/latest there, and run again.",
        ),
    ],
)
def test_an_agent_that_would_not_come_back_is_refused(change: dict[str, Any], words: str) -> None:
    usual = {"gpu_devices": ["0"], "attributes": {"rack": "r1"}, "resources": OFFERS}
    remembered = agent.plan(given.agent(**usual))["environment"]
    seen = given.machine(gpus=["0, Disabled, GPU-0"], remembered=remembered)
    told = agent_problems(seen, **{**usual, **change})
    assert words in told and bool(told) == bool(words)
    assert agent_problems({**seen, "remembered": ""}, **{**usual, **change}) == ""
