"""Refusals of the roles of Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.cases import slurm_machine
from harness.recording import Answer, Call
from harness.stubs import encoded, has, said
from refused import Refused

BEFORE = (
    "JobContainerType=job_container/tmpfs\n"
    "NodeName=host1 NodeAddr=host1 CPUs=64 Gres=gpu:2g.20gb:3 State=UNKNOWN\n"
)


def other(**changes: Any) -> dict[str, Answer]:
    """All machines, which differ in this from those of the case."""
    return {"gpufarm.cluster.slurm_machine_info": lambda call: {**slurm_machine(call), **changes}}


def _keys(call: Call) -> Mapping[str, Any]:
    """Keys of munge on this machine and of the cluster, which differ."""
    return {"stat": {"exists": True, "checksum": call.args["path"]}}


def _releases(call: Call) -> Mapping[str, Any]:
    return {**slurm_machine(call), "installed_release": {"host1": "24.11"}.get(call.host, "22.05")}


def _key_of_nodes(call: Call) -> Mapping[str, Any]:
    """The controller has no key."""
    return _keys(call) if call.args["path"].startswith("/etc/munge") else {"stat": {"exists": False}}


OTHER_KEY: dict[str, Answer] = {"Munge | Compare the key of this machine with that of the cluster": _keys}
LOST_KEY: dict[str, Answer] = {
    "Munge | Compare the key of this machine with that of the cluster": _key_of_nodes
}
OTHER_RELEASES: dict[str, Answer] = {"gpufarm.cluster.slurm_machine_info": _releases}
# The controller is as recorded, so the role looks at the nodes alone.
UNCHANGED: dict[str, Answer] = {
    "gpufarm.cluster.role_record": {
        "run": "present",
        "unchanged": True,
        "made": True,
        "before": {},
        "done": {},
    }
}
JOBS: dict[str, Answer] = {
    "Read | Read the configuration of an earlier run": encoded(BEFORE),
    "Validate Jobs | List the jobs on nodes that go or have other GPUs than before": said(
        "JobId=18 JobName=a NodeList=host1 Nodes=host1 CPU_IDs=0 Mem=100 GRES=gpu:2g.20gb:1(IDX:0)\n"
        "JobId=19 JobName=b NodeList=host1 Nodes=host1 CPU_IDs=1 Mem=100 GRES="
    ),
}

LOST_JOBS: dict[str, Answer] = {
    "Read | Read the configuration of an earlier run": encoded(BEFORE.replace("host1", "host9")),
    "Validate Jobs | List the jobs on nodes that go or have other GPUs than before": said(
        "JobId=18 JobName=a UserId=a(1) JobState=COMPLETING Reason=None NodeList=host9\n"
        "JobId=19 JobName=b UserId=b(2) JobState=RUNNING Reason=None NodeList=host9"
    ),
}
UNKNOWN_JOBS: dict[str, Answer] = {
    **LOST_JOBS,
    "Validate Jobs | List the jobs on nodes that go or have other GPUs than before": {
        **said(""),
        "rc": 1,
        "stderr": "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
    },
}
CONTROLLER = "Validate | Read the configuration of the first controller"
STATES = "Validate Jobs | List the nodes that can have jobs"


def of_before(answer: Answer) -> dict[str, Answer]:
    """The configuration of a version in which jobs shared /tmp, and what sinfo says of the nodes."""
    return {
        "Read | Read the configuration of an earlier run": encoded("ClusterName=gpufarm\n"),
        STATES: answer,
    }


REFUSED = {
    "slurm_controller": [
        Refused("slurm_controller_nodes names no machine", {"slurm_controller_nodes": []}),
        Refused("slurm_controller_nods is no variable of the role", {"slurm_controller_nods": ["host1"]}),
        Refused(
            "and host1 is none of them; run the role on the controllers",
            {"slurm_controller_hosts": ["host2"]},
        ),
        Refused(
            "slurm_controller_gres expects gpu:1g.12gb:7 of host1, which has gpu:1g.10gb:7",
            {"slurm_controller_gres": {"host1": {"1g.12gb": 7}}},
        ),
        Refused(
            "expects gpu:1g.10gb:7 of host1, which has no GPU",
            {"slurm_controller_gres": {"host1": {"1g.10gb": 7}}},
            other(devices=[]),
        ),
        Refused("calls itself 'n[1-2]', which cannot be a name in Slurm", {}, other(hostname="n[1-2]")),
        Refused(
            "host2 has Slurm 22.05 and the controller host1 has 24.11",
            {"slurm_controller_nodes": ["host1", "host2"]},
            OTHER_RELEASES,
        ),
        Refused(
            "host1 of the cluster cannot be read: The driver hangs. Mend it",
            {},
            {"gpufarm.cluster.slurm_machine_info": {"failed": True, "msg": "The driver hangs."}},
        ),
        Refused("host1 has a key of munge, /etc/munge/munge.key, which is not", {}, OTHER_KEY),
        Refused(
            "Nodes that can have jobs: host2, host3; drain all nodes",
            {},
            of_before(said("host1 drained*\nhost2 draining\nhost2 draining\nhost3 idle\nhost4 down*")),
        ),
        Refused(
            "Nodes that can have jobs: unknown, as sinfo says no controller; drain",
            {},
            of_before({"rc": 1, "stdout": "", "stdout_lines": [], "stderr": "no controller"}),
        ),
        Refused(
            "has JobContainerType, which the role sets itself; leave it out",
            {"slurm_controller_settings": {"JobContainerType": "none"}},
        ),
        Refused(
            "slurm_controller_token_hours is 0; give hours from 1 to 8760",
            {"slurm_controller_token_hours": 0},
        ),
        Refused(
            "has authalttypes, which the role sets itself; set slurm_controller_tokens",
            {
                "slurm_controller_tokens": True,
                "slurm_controller_settings": {"authalttypes": "auth/none"},
            },
        ),
        Refused(
            "host1 has no plugin auth_jwt.so of Slurm, without which slurmctld would not start; install",
            {"slurm_controller_source": "preinstalled", "slurm_controller_tokens": True},
            {"Validate | Find the plugin for tokens": said("")},
        ),
        Refused("Slurm would end the jobs with GPUs there: JobId=18; drain the nodes", {}, JOBS),
        Refused(
            "host9 would no longer be in the cluster, and Slurm would give up the jobs there: JobId=19;",
            {},
            LOST_JOBS,
        ),
        Refused(
            "host9 would no longer be in the cluster, and the controller does not answer,", {}, UNKNOWN_JOBS
        ),
        Refused(
            "Slurm would end the jobs with GPUs there: JobId=18; drain the nodes", {}, {**JOBS, **UNCHANGED}
        ),
        Refused(
            "expects gpu:1g.10gb:7 of host1, which has no GPU",
            {"slurm_controller_gres": {"host1": {"1g.10gb": 7}}},
            {**other(devices=[]), **UNCHANGED},
        ),
        Refused(
            "has jobs (18, 19), which would be lost, so nothing is removed",
            {"slurm_controller_state": "absent"},
            {
                "gpufarm.cluster.path_info": {"found": {"/etc/slurm/slurm.conf": {}}},
                "Remove | List the jobs": said("18\n19"),
            },
        ),
    ],
    "slurm_accounting": [
        Refused(
            "slurm_accounting_controllers names host4, and the inventory has only others of them",
            {"slurm_accounting_controllers": ["host4"]},
        ),
    ],
    "slurm_login": [
        Refused(
            "slurm_login_controllers names host4, and the inventory has only others of them",
            {"slurm_login_controllers": ["host4"]},
        ),
        Refused("slurm_login_controller_port is 0, which is no port", {"slurm_login_controller_port": 0}),
        Refused(
            "host1 runs slurmd, so its users can submit jobs already",
            {},
            {"Validate | Look for other roles of Slurm": has("/etc/systemd/system/slurmd.service.d")},
        ),
        Refused("which is not that of the cluster", {}, OTHER_KEY),
        Refused("host2 has no key yet; if it is a controller that was installed anew", {}, LOST_KEY),
    ],
    "slurm_rest": [
        Refused(
            "slurm_rest_controllers names host4, and the inventory has only others of them",
            {"slurm_rest_controllers": ["host4"]},
        ),
        Refused("slurm_rest_port is 0, which is no port", {"slurm_rest_port": 0}),
        Refused("slurm_rest_public_host is 'Rest', no name of a machine", {"slurm_rest_public_host": "Rest"}),
        Refused(
            "slurm_rest_certificate_type is provided, so slurm_rest_certificate_file and",
            {"slurm_rest_certificate_type": "provided"},
        ),
        Refused("host1 has Slurm 24.11 and the controller host2 has 22.05", {}, OTHER_RELEASES),
        Refused(
            "host2 cannot be read: no answer. Mend it first",
            {},
            {
                "gpufarm.cluster.slurm_machine_info": lambda call: (
                    slurm_machine(call) if call.host == "host1" else {}
                )
            },
        ),
        Refused(
            "host2 gives users no tokens, without which nobody could use the service; set",
            {},
            {CONTROLLER: encoded("ClusterName=gpufarm\nAuthType=auth/munge\n")},
        ),
        Refused(
            "host2 has no /etc/slurm/slurm.conf; run the role slurm_controller there first",
            {},
            {CONTROLLER: {"failed": True, "msg": "file not found"}},
        ),
        Refused(
            "slurmrestd.service of host1 is there without this role (ActiveState=active",
            {},
            {
                "Units | Query the units": said(
                    2 * "ActiveState=inactive\nUnitFileState=\n\n"
                    + "ActiveState=active\nUnitFileState=enabled"
                )
            },
        ),
        Refused(
            "Port 6820 of host1 is taken by apache2; stop it",
            {},
            {
                "gpufarm.cluster.listening_ports_info": {
                    "listeners": [{"port": 6820, "process": "apache2", "pid": 7, "unit": "apache2.service"}]
                }
            },
        ),
    ],
    "slurm_node": [
        Refused(
            "slurm_node_controllers names host3, and the inventory has only others of them",
            {"slurm_node_controllers": ["host3"]},
        ),
        Refused("slurm_node_controller_port is 0, which is no port", {"slurm_node_controller_port": 0}),
        Refused(
            "host1 has Slurm 24.11 and the controller host2 has 22.05",
            {"slurm_node_controllers": ["host2"]},
            OTHER_RELEASES,
        ),
        Refused("apt offers no slurm-wlm-nvml-plugin", {}, other(nvml_plugin=False)),
        Refused("host1 has a key of munge, /etc/munge/munge.key, which is not", {}, OTHER_KEY),
        Refused(
            "has logged in to host1 as deploy and would be kept out, as deploy is in no group",
            {},
            {"Validate | Find the account that the run logged in with": said("1000\ndeploy\ndeploy users")},
        ),
        Refused(
            "host1 cannot hide the processes of others from a job (mount: wrong fs type); use Linux",
            {},
            {
                "Validate | Try to hide the processes of others": {
                    "rc": 32,
                    "stderr": "mount: wrong fs type",
                }
            },
        ),
        Refused(
            "sshd of host1 has usepam no and would let in users without a job",
            {},
            {"Validate | Read the settings of sshd": said("port 22\nusepam no")},
        ),
        Refused(
            "host1 has no /etc/pam.d/common-account",
            {},
            {"Rules | Read the rules of PAM": {"failed": True, "msg": "no"}},
        ),
        Refused("'domain admins', which is no name", {"slurm_node_administrators": ["domain admins"]}),
        Refused(
            "host1 runs jobs of Slurm (18), which would be ended, so nothing is removed",
            {"slurm_node_state": "absent"},
            {"Remove | List the jobs on the machine": said("18")},
        ),
    ],
}
