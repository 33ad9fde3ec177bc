# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of slurm.conf, cgroup.conf and job_container.conf. No I/O.

Sources: slurm.conf(5), cgroup.conf(5), gres.conf(5) and job_container.conf(5) of Slurm 24.11.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import tokens

# Programs that the role slurm_node installs on each node.
PROGRAMS = "/opt/gpufarm/slurm"
# The option of slurm.conf by which each job has folders and processes of its own.
CONTAINER_TYPE = "JobContainerType"
# The folders of jobs are in the folder that slurmd has systemd make on each node (slurmd.conf.j2).
CONTAINER = {
    "BasePath": "/var/lib/gpufarm/slurm-jobs",
    "AutoBasePath": "true",
    "CloneNSScript": f"{PROGRAMS}/namespace",
    # Its default of 10 seconds is short for a machine that is busy.
    "CloneNSScript_Wait": "60",
    "Dirs": "/tmp,/var/tmp,/dev/shm",  # noqa: S108  # names for Slurm
    # The daemon of a step makes folders for MPI in /tmp.
    "EntireStepInNS": "true",
    # Jobs see file systems that are mounted later, as by autofs.
    "Shared": "true",
}
# Defaults of the role, which its variable `settings` may replace.
DEFAULTS: dict[str, str] = {
    # A job that no partition ever starts is refused; by Slurm's own default it would wait for good.
    "EnforcePartLimits": "ANY",
    "HealthCheckInterval": "60",
    "JobAcctGatherType": "jobacct_gather/linux",
    # A user sees jobs, hours and limits of no one else; operators and coordinators of accounts do.
    "PrivateData": "accounts,jobs,usage,users",
    # A node that was restarted comes back by itself.
    "ReturnToService": "2",
    # That of the package, which goes with it.
    "SlurmdSpoolDir": "/var/lib/slurm/slurmd",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core_Memory",
    "TaskPlugin": "task/cgroup,task/affinity",
}
# Options that the role sets and its variable `settings` may not, with the variable for them, if there is one.
OWN: dict[str, str] = {
    "AccountingStorageEnforce": "accounting_host",
    "AccountingStorageHost": "accounting_host",
    "AccountingStorageTRES": "accounting_host",
    "AccountingStorageType": "accounting_host",
    "AuthType": "",
    "ClusterName": "cluster_name",
    "Epilog": "",
    "GresTypes": "",
    "HealthCheckProgram": "",
    CONTAINER_TYPE: "",
    "NodeName": "nodes",
    "PartitionName": "partitions",
    "ProctrackType": "",
    "Prolog": "",
    "PrologFlags": "",
    "SlurmUser": "",
    "SlurmctldHost": "hosts",
    "SlurmctldParameters": "",
    "SlurmctldPort": "port",
    "StateSaveLocation": "state_directory",
}
# Resources of jobs that control groups limit, and the option of cgroup.conf.
CONSTRAIN = {
    "cores": "ConstrainCores",
    "devices": "ConstrainDevices",
    "memory": "ConstrainRAMSpace",
}


def line(values: Mapping[str, Any]) -> str:
    """Return one line of several options, such as that of a node; empty values are left out."""
    return " ".join(f"{name}={value}" for name, value in values.items() if value != "")


def gres(text: str) -> dict[str, str]:
    """Return the value of `Gres` of each node in a slurm.conf that this role wrote."""
    found = {}
    for words in (each.split() for each in text.splitlines() if each.startswith("NodeName=")):
        known = dict(word.partition("=")[::2] for word in words)
        found[known["NodeName"]] = known.get("Gres", "")
    return found


def regrouped(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the nodes that stay and whose GPUs or slices are others than before.

    Slurm ends the jobs with GPUs of such a node, or gives their slices to others, as it knows slices by their
    place in a list only ("gres/gpu count mismatch on node" in src/interfaces/gres.c).
    """
    return [name for name, types in before.items() if types and after.get(name, types) != types]


def removed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the nodes that go; Slurm gives up all jobs there, while their processes run on."""
    return [name for name in before if name not in after]


def needs_empty_nodes(before: str) -> bool:
    """Return whether jobs of a slurm.conf that this role wrote could not go on with that of today.

    A job that began without folders of its own starts no more steps, as these look for the folders
    (container_p_join in src/plugins/job_container/tmpfs/job_container_tmpfs.c).
    """
    return bool(before) and not re.search(rf"^{CONTAINER_TYPE}=", before, re.MULTILINE)


def options(settings: Mapping[str, Any], types: Iterable[str], memory_per_cpu: int) -> dict[str, str]:
    """Return the options of slurm.conf that are about the whole cluster, in the order of their names.

    Args:
        settings: the variables of the role without its name.
        types: types of GPUs and slices in the cluster.
        memory_per_cpu: MiB that a job has for each processor if it does not say how much it needs.
    """
    found = {
        **DEFAULTS,
        "AuthType": "auth/munge",
        "ClusterName": settings["cluster_name"],
        "DefMemPerCPU": str(memory_per_cpu),
        "Epilog": f"{PROGRAMS}/epilog",
        "GresTypes": "gpu",
        "HealthCheckProgram": f"{PROGRAMS}/health",
        CONTAINER_TYPE: "job_container/tmpfs",
        "ProctrackType": "proctrack/cgroup",
        "Prolog": f"{PROGRAMS}/prolog",
        # A job's processes have a group of their own from its start to its end, also between steps.
        "PrologFlags": "Alloc,Contain",
        "SlurmUser": "slurm",
        "SlurmctldParameters": "enable_configless",
        "SlurmctldPort": str(settings["port"]),
        "StateSaveLocation": settings["state_directory"],
        "TaskProlog": f"{PROGRAMS}/task_prolog",
        **(tokens.options(settings["token_hours"]) if settings["tokens"] else {}),
        **_accounting(settings["accounting_host"], types),
    }
    known = {name.lower(): name for name in found}
    for name, value in settings["settings"].items():
        found[known.get(name.lower(), name)] = str(value)
    return dict(sorted(found.items()))


def _accounting(host: str, types: Iterable[str]) -> dict[str, str]:
    if not host:
        return {}
    return {
        "AccountingStorageEnforce": "associations,limits,qos,safe",
        "AccountingStorageHost": host,
        # Only types that are named here are counted by themselves; without slurmdbd none may be.
        "AccountingStorageTRES": ",".join(["gres/gpu", *(f"gres/gpu:{one}" for one in sorted({*types}))]),
        "AccountingStorageType": "accounting_storage/slurmdbd",
    }


def node(machine: Mapping[str, Any], address: str, types: str) -> str:
    """Return the line of a node.

    Args:
        machine: as the module slurm_machine_info describes it.
        address: under which controllers reach it.
        types: its value of `Gres`.
    """
    return line(
        {
            "NodeName": machine["hostname"],
            "NodeAddr": address,
            "CPUs": machine["cpus"],
            "Sockets": machine["sockets"],
            "CoresPerSocket": machine["cores_per_socket"],
            "ThreadsPerCore": machine["threads_per_core"],
            "RealMemory": usable_memory(machine),
            "Gres": types,
            "Features": ",".join(machine["features"]),
            "State": "UNKNOWN",
        }
    )


def usable_memory(machine: Mapping[str, Any]) -> int:
    """Return MiB for jobs: 98 %, as Slurm refuses a node with less than told, and kernels differ a little."""
    return int(machine["memory_mib"]) * 98 // 100


def partition(wanted: Mapping[str, Any], nodes: Sequence[str]) -> str:
    """Return the line of a partition.

    Args:
        wanted: an entry of the role's variable.
        nodes: the nodes in it; empty for all.
    """
    return line(
        {
            "PartitionName": wanted["name"],
            "Nodes": ",".join(nodes) or "ALL",
            "Default": "YES" if wanted.get("default") else "",
            "DefaultTime": wanted.get("default_time") or "",
            "MaxTime": wanted.get("max_time") or "",
            **(wanted.get("options") or {}),
        }
    )


def is_time(text: str) -> bool:
    """Whether it is a time limit: minutes, [days-]hours:minutes:seconds and other forms, or without limit."""
    return bool(re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}|UNLIMITED|INFINITE", text))
