"""Roles refuse settings that cannot work, in one sentence, before anything changes on a host.

Refusals for the state of a host, such as a port that is taken, are tested in the scenarios of the roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from harness import CASES
from harness.certificates import CERTIFICATE, EXPIRED, EXPIRED_KEY, OTHER_KEY
from harness.recording import Answer
from harness.stubs import PUBLIC_KEY

# What roles ask hosts before they change them.
ASKING = {
    "ansible.builtin.command",
    "ansible.builtin.find",
    "ansible.builtin.getent",
    "ansible.builtin.setup",
    "ansible.builtin.slurp",
    "ansible.builtin.stat",
    "ansible.builtin.uri",
    "gpufarm.cluster.mount_validate",
}


@dataclass(frozen=True)
class Refused:
    """What a role is given, and words of its refusal."""

    words: str
    variables: Mapping[str, Any]
    answers: Mapping[str, Answer] = field(default_factory=dict)


def hub(words: str, **variables: Any) -> Refused:
    return Refused(words, {f"jupyterhub_{name}": value for name, value in variables.items()})


ACME = {
    "certificate_type": "letsencrypt-prod",
    "contact_email": "admin@example.org",
    "public_host": "hub.example.org",
}
NO_GPU = {
    "Validate | Look at the GPUs": {"rc": 127, "stdout": "", "stdout_lines": [], "stderr": "", "msg": ""}
}
REFUSED: dict[str, list[Refused]] = {
    "app_gateway": [
        Refused("app_gateway_marathon_urls is empty", {"app_gateway_marathon_urls": []}),
        Refused(
            "choose a port from 1 to 65535. app_gateway_marathon_user is gateway, and there is no",
            {"app_gateway_https_port": 70000, "app_gateway_marathon_password": ""},
        ),
    ],
    "chronos": [
        Refused(
            "chronos_name is 'Ada'; give chronos, or chronos- and a name of lower case letters, digits and"
            " '-' for the instance of a user. chronos_zookeeper is 'zk://c1:2181/mesos'; give HOST:PORT of"
            " each server with commas between them. chronos_flags sets mesos_task_gpu, which only builds"
            " with the patch for GPUs know; set chronos_gpus if yours is one. chronos_flags sets"
            " mesos_checkpoint to False; it can only be switched on. chronos_flags sets task_epsilom, which"
            " this version does not know; did you mean task_epsilon? chronos_flags sets cluster_name to"
            " 'our cluster'; Chronos' file of options cannot carry blanks, leave them out.",
            {
                "chronos_name": "Ada",
                "chronos_zookeeper": "zk://c1:2181/mesos",
                "chronos_flags": {
                    "mesos_checkpoint": False,
                    "cluster_name": "our cluster",
                    "mesos_task_gpu": 1,
                    "task_epsilom": 3,
                },
            },
        )
    ],
    "chronos_job": [
        Refused("chronos_job_urls must name the servers of Chronos", {"chronos_job_urls": []}),
        Refused("chronos_job_definition needs name", {"chronos_job_definition": {"command": "train"}}),
    ],
    "container_request": [
        Refused(
            "container_request_owner is root, and containers never run as root; name the user's account."
            " container_request_image is 'x; y'; name an image",
            {"container_request_owner": "root", "container_request_image": "x; y"},
        ),
        Refused(
            "SSH takes keys only",
            {
                "container_request_kind": "ssh",
                "container_request_ssh_keys": PUBLIC_KEY,
                "container_request_password": "correct horse battery",
            },
        ),
        Refused(
            "container_request_marathon_urls and container_request_mesos_urls must both be given",
            {"container_request_mesos_urls": []},
        ),
    ],
    "jupyterhub": [
        hub("jupyterhub_iam_url is empty", iam_url=""),
        hub(
            "Only one of jupyterhub_iam_client_id and jupyterhub_iam_client_secret is given",
            iam_client_id="made-by-hand",
        ),
        hub("are all empty, so nobody could log in", iam_groups="", iam_admin_groups=""),
        hub('jupyterhub_memory_choices is ["2 GB"]', memory_choices=["2 GB"]),
        hub(
            "An entry of jupyterhub_limits has a number out of range",
            limits=[{"name": "students", "servers": 0}],
        ),
        hub(
            "An entry of jupyterhub_limits has the memory 100M; give a whole number",
            limits=[{"name": "students", "memory": "100M"}],
        ),
        hub(
            "Two entries of jupyterhub_limits have the same name (a, a)",
            limits=[{"name": "a"}, {"name": "a"}],
        ),
        hub("the authority asks for the answer to its challenge at port 80", **ACME, http_port=0),
        hub("set jupyterhub_public_host to its full name", **{**ACME, "public_host": "10.0.0.1"}),
        hub("jupyterhub_queue_patience_minutes is not above 0", queue_patience_minutes=0),
        hub("../theirs in jupyterhub_mounts is not a path", mounts=[{"source": "../theirs"}]),
        hub("must both be given", certificate_type="provided"),
        hub(
            "is not the certificate of the key",
            certificate_type="provided",
            certificate_file=CERTIFICATE,
            certificate_key_file=OTHER_KEY,
        ),
        hub(
            "old.pem expired at",
            certificate_type="provided",
            certificate_file=EXPIRED,
            certificate_key_file=EXPIRED_KEY,
        ),
    ],
    "lustre_client": [
        Refused(
            "'10.99.0.300@tcp' has no valid IPv4 address",
            {"lustre_client_file_systems": [{"source": "10.99.0.300@tcp:/home", "path": "/lustre/home"}]},
        ),
        Refused(
            "did you mean flock",
            {
                "lustre_client_file_systems": [
                    {"source": "10.99.0.300@tcp:/home", "path": "/lustre/home"},
                    {"source": "10.99.0.10@tcp:/scratch", "path": "/scratch", "options": ["flok"]},
                ]
            },
        ),
    ],
    "lustre_server": [
        Refused(
            "which lustre_server_nids does not name",
            {
                "lustre_server_file_systems": [
                    {
                        "name": "toolongname",
                        "targets": [
                            {"kind": "ost", "index": 0, "device": "/srv/targets/new", "servers": ["oss9"]}
                        ],
                    }
                ]
            },
        )
    ],
    "marathon": [
        Refused(
            "marathon_zookeeper is 'm1:2181'; give the address of its state, such as"
            " zk://zk1:2181,zk2:2181,zk3:2181/marathon. marathon_flags sets task_lunch_timeout, which this"
            " version does not know; did you mean task_launch_timeout? marathon_flags sets zk_max_versions"
            " to 'many'; give a whole number. marathon_flags sets max_tasks_per_offer, which is gone from"
            " this version and would stop the start; leave it out. marathon_flags sets http_port, which has"
            " a variable of its own; set marathon_port in its place.",
            {
                "marathon_zookeeper": "m1:2181",
                "marathon_flags": {
                    "task_lunch_timeout": 1,
                    "zk_max_versions": "many",
                    "max_tasks_per_offer": 1,
                    "http_port": 1,
                },
            },
        ),
        Refused(
            "marathon_tls is off, and passwords would go over the network as they are",
            {"marathon_tls": False},
        ),
    ],
    "marathon_app": [
        Refused("marathon_app_urls must name the servers of Marathon", {"marathon_app_urls": []}),
        Refused("marathon_app_definition needs id", {"marathon_app_definition": {"cmd": "serve"}}),
    ],
    "mesos_agent": [
        Refused(
            "mesos_agent_flags has isolatio, which the agent of Mesos 1.11 does not know; did you mean"
            " isolation? mesos_agent_resources has gpus; list the GPUs in mesos_agent_gpu_devices instead."
            " mesos_agent_resources lacks disk; what Mesos finds by itself may differ after a restart,"
            " which then refuses to take its tasks back. mesos_agent_gpu_devices has a GPU twice; name each"
            " once. host1 has no NVIDIA driver that answers, and mesos_agent_gpu_devices names GPUs;"
            " install it first. mesos_agent_masters names gone, and the inventory has only others of them;"
            " give names or addresses that it has.",
            {
                "mesos_agent_flags": {"isolatio": "x"},
                "mesos_agent_resources": {"cpus": 4, "mem": 8192, "gpus": 2},
                "mesos_agent_gpu_devices": [0, 0],
                "mesos_agent_masters": ["gone"],
            },
            NO_GPU,
        ),
    ],
    "mig": [
        Refused("The MIG flavor 'seven slices' is not understood", {"mig_partition_flavor": "seven slices"}),
        Refused(
            "both say what GPUs are partitioned into",
            {"mig_partition_flavor": "7x 1g.10gb", "mig_layout": [{"profile": "3g.40gb"}]},
        ),
    ],
    "nvidia_driver": [
        Refused("which is no version", {"nvidia_driver_version": "newest"}),
        Refused(
            "nvidia_driver_runfile_checksum is no checksum",
            {"nvidia_driver_source": "runfile", "nvidia_driver_runfile": "/srv/standin/driver.run"},
        ),
    ],
    "shared_home": [
        Refused(
            words,
            {
                "shared_home_kind": "local",
                "shared_home_path": "/etc",
                "shared_home_source": "homes",
                "shared_home_options": ["nosuid", "suid"],
                "shared_home_quota": "8 M",
            },
        )
        for words in (
            "shared_home_path is /etc, which is the system's",
            "shared_home_source is 'homes'",
            "'8 M' is no size",
            "suid is not for homes",
        )
    ],
    "user_accounts": [
        Refused(
            "has the option 'command' before the key",
            {
                "user_accounts_users": [
                    {"os_user_name": "cyd", "os_user_ssh_public_key": f'command="/bin/date" {PUBLIC_KEY}'}
                ]
            },
        )
    ],
}
EVERY = [(role, refused) for role, all_of_it in REFUSED.items() for refused in all_of_it]


@pytest.mark.parametrize(("role", "refused"), EVERY, ids=[f"{role}: {one.words[:60]}" for role, one in EVERY])
def test_settings_that_cannot_work_are_refused_before_anything_changes(role: str, refused: Refused) -> None:
    case = CASES[role]
    run = case.with_answers(refused.answers).run(role, refused.variables)
    assert run.failed
    assert refused.words in run.refusal
    assert not [
        call
        for call in run.calls
        if not (call.check_mode or call.action in ASKING or call.action.endswith("_info"))
        and call.args.get("create") is not False
    ]
