# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Distributions on which roles install packages. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Oldest release of each distribution; later ones are accepted too. `make docs` writes it to the READMEs.
_PACKAGES = {"Debian": "12", "Ubuntu": "22.04"}
# Slurm's plugin for NVML cannot be installed beside the packages of Debian 12.
_SLURM = {"Debian": "13"}
SUPPORTED: dict[str, dict[str, str]] = {
    "app_gateway": _PACKAGES,
    "benchmarks": _PACKAGES,
    "chronos": _PACKAGES,
    # Ubuntu has Compose in packages of other names.
    "compose_project": {"Debian": "12"},
    "cvmfs_client": _PACKAGES,
    "dcgm": _PACKAGES,
    # Lmod 8: modules that load others, and files that name a default.
    "environment_modules": {"Debian": "12", "Ubuntu": "24.04"},
    # Its rails are for the role mpi.
    "fabric": _SLURM,
    # Its lock of Python packages is for Python 3.11 and later, as those of others below are.
    "jupyterhub": {"Debian": "12", "Ubuntu": "24.04"},
    "paas_service": {"Debian": "12", "Ubuntu": "24.04"},
    "lustre_client": _PACKAGES,
    "lustre_server": _PACKAGES,
    "marathon": _PACKAGES,
    "mesos_agent": _PACKAGES,
    "mesos_master": _PACKAGES,
    "monitoring": _PACKAGES,
    # PMIx of the version that Slurm is built for.
    "mpi": _SLURM,
    # Where systemd-networkd has the interfaces of a machine without netplan.
    "network": {"Debian": "12"},
    "notebook_environments": {"Debian": "12", "Ubuntu": "24.04"},
    "notebook_node": {"Debian": "13", "Ubuntu": "24.04"},
    "nvidia_container": _PACKAGES,
    "shared_home": _PACKAGES,
    "slurm_accounting": {"Debian": "12", "Ubuntu": "24.04"},
    "slurm_controller": _SLURM,
    "slurm_login": _SLURM,
    "slurm_node": _SLURM,
    "slurm_rest": _SLURM,
    # A PAM profile, which pam-auth-update puts in place of that of the package.
    "sssd": {"Debian": "12", "Ubuntu": "24.04"},
    "staging": _PACKAGES,
    "zookeeper": _PACKAGES,
}
# Roles that need no packages where their variable `source` has this value.
WITHOUT_PACKAGES = {
    "cvmfs_client": "preinstalled",
    "lustre_client": "preinstalled",
    "lustre_server": "preinstalled",
    "mesos_agent": "image",
    "mesos_master": "image",
    "nvidia_container": "preinstalled",
    "slurm_controller": "preinstalled",
    "slurm_login": "preinstalled",
    "slurm_node": "preinstalled",
}


def releases(role: str) -> str:
    """Return the releases that a role supports, in words."""
    return " and ".join(f"{name} {oldest} or later" for name, oldest in SUPPORTED[role].items())


def problems(role: str, host: str, facts: Mapping[str, str]) -> list[str]:
    """Return a sentence if a role cannot install its packages on a host.

    Args:
        facts: `distribution` and `distribution_version` as Ansible gathers them. A version without a number,
            as of Debian's next release, counts as the latest.
    """
    name, version = facts["distribution"], facts["distribution_version"]
    oldest = SUPPORTED[role].get(name)
    if oldest and (not re.match(r"\d", version) or _numbers(version) >= _numbers(oldest)):
        return []
    otherwise = WITHOUT_PACKAGES.get(role)
    choice = f", or set {role}_source to {otherwise}" if otherwise else ""
    return [
        f"{host} has {name} {version}, and the role {role} installs packages on {releases(role)}; "
        f"choose another machine{choice}."
    ]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
