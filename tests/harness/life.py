"""The life of roles on imagined hosts: set up in one way or another, checked, run again, removed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

from harness.cases import CASES, Case
from harness.host import Host
from harness.other_values import FOUND, NEEDS, REFUSED, WITH, other
from harness.run import Run
from harness.specs import options

# The way in which all variables have another value at once.
OTHERWISE = "otherwise"
# Variables that keep their value then, as the role refuses another one together with the other values.
SAME = {
    "chronos": ("certificate_file", "certificate_key_file", "tls", "name"),
    "compose_project": ("checksum", "name", "url"),  # another name is another project
    "cvmfs_client": ("alien_cache", "repository_parameters"),
    "jupyterhub": ("use_gpu",),
    "lustre_server": ("file_systems",),
    "marathon": ("certificate_file", "certificate_key_file", "tls"),
    "mesos_agent": ("work_directory",),
    "mesos_master": ("masters", "work_directory"),
    "monitoring": ("interval",),  # the role waits for so long that all is measured
    "shared_home": ("quota", "quota_files", "user_quotas"),
    "zookeeper": ("data_directory", "log_directory", "machines", "servers"),
}
# Packages that somebody else has installed.
THERE = {"monitoring": {"grafana": ""}}
# Settings that lead a role another way, each with a name.
WAYS: dict[str, dict[str, dict[str, Any]]] = {
    "cvmfs_client": {"mounts": {"cvmfs_client_mount": "systemd-automount"}},
    "fabric": {"distribution": {"fabric_source": "distribution"}},
    "gpu_settings": {"nothing": {"gpu_settings_entries": []}},
    "jupyterhub": {"docker": WITH["jupyterhub_spawner"], "slurm": NEEDS["jupyterhub_slurm_partition"]},
    "lustre_client": {"dkms": {"lustre_client_modules": "dkms"}},
    "monitoring": {
        "alerts": NEEDS["monitoring_alert_mail_user"],
        "node": {"monitoring_parts": ["node"]},
        "server": {"monitoring_parts": ["server"]},
    },
    "slurm_accounting": {"tokens": {"slurm_accounting_tokens": True}},
    "slurm_controller": {"tokens": {"slurm_controller_tokens": True}},
    "slurm_node": {"all": {"slurm_node_logins": "all"}},
    "nvidia_driver": {"distribution": {"nvidia_driver_source": "distribution"}},
}


def values(role: str, way: str) -> dict[str, Any]:
    """Return what a way of setting a role up has in place of the values of its case."""
    if way != OTHERWISE:
        return WAYS[role][way] if way else {}
    kept = {f"{role}_{name}" for name in ("state", "enabled", *SAME.get(role, ()))}
    kept |= {*FOUND, *REFUSED, *WITH}
    return {
        name: other(role, name)
        for name, option in options(role).items()
        if name not in kept and "choices" not in option
    }


def new(role: str) -> Host:
    """Return the host that a role finds."""
    return Host(packages=dict(THERE.get(role, {})))


def on(host: Host, role: str) -> Case:
    """Return the case of a role on a host."""
    case = CASES[role]
    answers = host.answers(case.answers)
    if role == "shared_home" and "srv-home.mount" in host.units:
        known = {"problems": [], "file_system": "nfs", "mounted": True, "exists": True, "answers": True}
        unit = {"name": "srv-home.mount", "path": "/srv/home", "what": "nfs.example.org:/export/home"}
        nobody = {"connected": [], "exports_more": False}
        answers["gpufarm.cluster.shared_home_info"] = {**known, **nobody, "units": [unit]}
    return case.with_answers(answers)


def run(role: str, host: Host, changed: Mapping[str, Any] | None = None, check: bool = False) -> Run:
    """Run a role on a host."""
    return on(host, role).run(role, changed, check=check)


@functools.cache
def _set_up(role: str, way: str, check: bool) -> tuple[Host, Run]:
    host = new(role)
    return host, run(role, host, values(role, way), check)


def set_up(role: str, way: str = "", check: bool = False) -> tuple[Host, Run]:
    """Return a host on which a role has run, or was checked, and that run."""
    host, first = _set_up(role, way, check)
    assert not first.failed, first.refusal
    return copy.deepcopy(host), first
