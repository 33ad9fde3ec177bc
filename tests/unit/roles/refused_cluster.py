"""What the roles of the cluster for containers refuse."""

from __future__ import annotations

from harness.stubs import PUBLIC_KEY
from refused import Refused

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
}
