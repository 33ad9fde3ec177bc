"""Refusals of the roles of the cluster for containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils import _zookeeper
from harness.cases import cluster
from harness.certificates import KEY, NAMELESS_CERTIFICATE
from harness.recording import Answer, Call
from harness.stubs import PUBLIC_KEY, encoded, has
from refused import Refused

NO_GPU = {
    "Validate | Inspect the GPUs": {"rc": 127, "stdout": "", "stdout_lines": [], "stderr": "", "msg": ""}
}
IMAGE = "127.0.0.1:5000/fake:1"
# Results of the module command and of Docker without Docker, and without an image.
NO_DOCKER: dict[str, Answer] = {
    "ansible.builtin.command": {"rc": 2, "stdout": "", "stderr": "", "msg": "Error executing command."}
}


def no_image(name: str) -> dict[str, Answer]:
    return {
        "ansible.builtin.command": {
            "rc": 1,
            "stdout": "[]",
            "stderr": f"Error response from daemon: No such image: {name}",
            "msg": "non-zero return code",
        }
    }


def _no_zookeeper(call: Call) -> Mapping[str, Any]:
    """Servers that are stopped, and such whose names are unknown, as they end with ``.invalid``."""
    states = [
        {"address": address, "mode": "unreachable", "reason": _zookeeper.UNRESOLVED}
        if ".invalid" in address
        else {"address": address, "mode": "stopped", "reason": ""}
        for address in call.args["servers"]
    ]
    return {
        "serving": False,
        "problem": _zookeeper.client_problem(states),
        "leader": "",
        "servers": states,
    }


NO_ZOOKEEPER: dict[str, Answer] = {"gpufarm.cluster.zookeeper_info": _no_zookeeper}


def in_use(**allocated: float) -> dict[str, Answer]:
    """A cluster of one machine with two GPUs, where this is in use of it."""
    agent = {
        **cluster()["agents"][0],
        "resources": {"cpus": 8.0, "mem": 16384.0, "disk": 100000.0, "gpus": 2.0},
        "allocated": allocated,
    }
    return {"gpufarm.cluster.mesos_info": {**cluster(), "agents": [agent]}}


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
        ),
        Refused(
            "host1 finds no ZooKeeper: host1:1 is stopped; check the addresses, and that the ensemble has a"
            " quorum. chronos_mesos_masters names gone, and the inventory has only others of them; give"
            " names or addresses that it has.",
            {
                "chronos_zookeeper": "host1:1",
                "chronos_mesos_masters": ["gone"],
                "chronos_mesos_secret": "",
            },
            NO_ZOOKEEPER,
        ),
        Refused(
            "nameless.pem does not name host1.example.org",
            {
                "chronos_certificate_type": "provided",
                "chronos_certificate_file": NAMELESS_CERTIFICATE,
                "chronos_certificate_key_file": KEY,
            },
        ),
    ],
    "chronos_job": [
        Refused("chronos_job_urls must name the servers of Chronos", {"chronos_job_urls": []}),
        Refused("chronos_job_definition needs name", {"chronos_job_definition": {"command": "train"}}),
    ],
    "slurm_job": [
        Refused(
            "slurm_job_owner is root, and jobs never run as root; name the user's account."
            " slurm_job_name is 'a\\nb'; give letters",
            {"slurm_job_owner": "root", "slurm_job_name": "a\nb"},
        ),
        Refused("slurm_job_command is empty", {"slurm_job_command": " \n"}),
        Refused("slurm_job_folder is '../bob'; give a folder below the home", {"slurm_job_folder": "../bob"}),
        Refused(
            "slurm_job_machine is gone, which is no machine of the inventory", {"slurm_job_machine": "gone"}
        ),
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
        Refused(
            "No machine of the cluster has 2 GPUs free; the most is 1",
            {"container_request_owner": "carl", "container_request_gpus": 2},
            in_use(gpus=1),
        ),
        Refused(
            "MiB of memory free; the most is 16384",
            {"container_request_gpus": 1, "container_request_memory": "64 GB"},
            in_use(),
        ),
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
        Refused(
            "host1 has no Docker, which marathon_source image needs",
            {"marathon_source": "image", "marathon_image": IMAGE},
            NO_DOCKER,
        ),
        Refused(
            f"host1 has no image {IMAGE}, and one without a digest is not pulled",
            {"marathon_source": "image", "marathon_image": IMAGE},
            no_image(IMAGE),
        ),
        Refused(
            "nameless.pem does not name host1.example.org",
            {
                "marathon_certificate_type": "provided",
                "marathon_certificate_file": NAMELESS_CERTIFICATE,
                "marathon_certificate_key_file": KEY,
            },
        ),
    ],
    "marathon_app": [
        Refused("marathon_app_urls must name the servers of Marathon", {"marathon_app_urls": []}),
        Refused("marathon_app_definition needs id", {"marathon_app_definition": {"cmd": "serve"}}),
    ],
    "mesos_agent": [
        Refused(
            "The agent of host1 would come back with other or less work_dir, resources.cpus, attributes.rack,"
            " which Mesos does not allow",
            {"mesos_agent_work_directory": "/srv/mesos"},
            {
                "gpufarm.cluster.path_info": has("/var/lib/mesos/agent/meta/slaves/latest"),
                "Validate | Read the current options": encoded(
                    "MESOS_ATTRIBUTES=rack:r1\nMESOS_RESOURCES=cpus:8;mem:8192;disk:10000\n"
                    "MESOS_WORK_DIR=/var/lib/mesos/agent\n"
                ),
            },
        ),
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
        Refused(
            "has glibc 2.36, whose library cache Apache Mesos 1.11.0 cannot read",
            {"mesos_agent_build": "apache", "mesos_agent_gpu_devices": [0]},
            NO_GPU,
        ),
        Refused(
            "an agent in a container does not find the driver that tasks need",
            {
                "mesos_agent_source": "image",
                "mesos_agent_image": "127.0.0.1:5000/fake@sha256:" + "0" * 64,
                "mesos_agent_gpu_devices": [0],
            },
            NO_GPU,
        ),
    ],
    "mesos_master": [
        Refused(
            "mesos_master_work_directory is /srv/mesos, and the log of host1 is"
            " /var/lib/mesos/master/replicated_log, without which it begins anew; stop mesos-master, move the"
            " log there, and run again.",
            {"mesos_master_work_directory": "/srv/mesos"},
            {
                "gpufarm.cluster.path_info": has("/var/lib/mesos/master/replicated_log"),
                "Validate | Read the current options": encoded(
                    "MESOS_QUORUM=1\nMESOS_WORK_DIR=/var/lib/mesos/master\n"
                ),
            },
        ),
        Refused(
            "host1 finds no ZooKeeper: the name of gone.invalid:2181 cannot be resolved; correct it.",
            {"mesos_master_zookeeper": ["gone.invalid:2181"]},
            NO_ZOOKEEPER,
        ),
        Refused(
            "/srv/tls/gone.pem is not on host1; put it there, or correct mesos_master_tls_certificate, _key"
            " and _ca. host1 finds no ZooKeeper: host1:1 is stopped, host1:2 is stopped; check the"
            " addresses, and that the ensemble has a quorum.",
            {
                "mesos_master_zookeeper": ["host1:1", "host1:2"],
                "mesos_master_tls": "provided",
                "mesos_master_tls_certificate": "/srv/tls/master1.pem",
                "mesos_master_tls_key": "/srv/tls/master1.key",
                "mesos_master_tls_ca": "/srv/tls/gone.pem",
            },
            {
                **NO_ZOOKEEPER,
                "gpufarm.cluster.path_info": has("/srv/tls/master1.pem", "/srv/tls/master1.key"),
            },
        ),
        Refused(
            "host1 has no Docker",
            {"mesos_master_source": "image", "mesos_master_image": "mesos:1.11.1"},
            NO_DOCKER,
        ),
        Refused(
            "has no image mesos:1.11.1, and one without a digest is not pulled",
            {"mesos_master_source": "image", "mesos_master_image": "mesos:1.11.1"},
            no_image("mesos:1.11.1"),
        ),
    ],
    "zookeeper": [
        Refused(
            "zookeeper_data_directory would be /srv/zk, and the data are in /var/lib/zookeeper, without which"
            " the server loses what its clients keep there; stop zookeeper, move /var/lib/zookeeper/version-2"
            " to /srv/zk, and run again.",
            {"zookeeper_data_directory": "/srv/zk"},
            {
                "ansible.builtin.slurp": encoded("dataDir=/var/lib/zookeeper\nserver.1=host1:2888:3888\n"),
            },
        ),
        Refused(
            "host1 cannot reach gone.invalid (its name cannot be resolved)",
            {
                "zookeeper_client_port": 2281,
                "zookeeper_servers": [
                    {"id": 1, "name": "host1"},
                    {"id": 2, "name": "gone", "address": "gone.invalid"},
                ],
            },
            NO_ZOOKEEPER,
        ),
    ],
}
