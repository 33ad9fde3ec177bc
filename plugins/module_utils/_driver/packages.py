# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the driver's packages and repositories, by distribution.

Sources: the package lists of Debian 12 and 13; the server flavours of Ubuntu's package
`nvidia-graphics-drivers-<branch>`; for NVIDIA's repositories the "NVIDIA Driver Installation Guide",
"Compute-only (Headless) Installation", and for their keys
https://github.com/NVIDIA/cuda-repo-management, "GPG keys".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .version import DriverError

NVIDIA_REPOSITORIES = "https://developer.download.nvidia.com/compute/cuda/repos"
KEY_OF_2022 = ("3bf863cc.pub", "EB693B3035CD5710E231E123A4B469963BF863CC")
KEY_OF_DEBIAN_13 = ("8793F200.pub", "02182E60104FCDC26EAE1B8597A5D4CB8793F200")
KEY_OF_RPM = ("D42D0685.pub", "610C7B14E068A878070DA4E99CD0A493D42D0685")
RED_HAT = ("RedHat", "CentOS", "Rocky", "AlmaLinux", "OracleLinux")
FABRIC_MANAGER_WITHOUT_BRANCH_FROM = 580
# Every name that `packages` and its companions give, on any distribution and for any branch.
NAME = re.compile(
    r"libcuda1|libnvidia-ml1|libnvidia-compute-\d+(-server)?|kmod-nvidia-(open|latest)-dkms"
    r"|nvidia-(driver-cuda|smi|modprobe|persistenced|kernel-dkms|kernel-open-dkms|open-kernel-dkms"
    r"|(compute-)?utils-\d+(-server)?|dkms-\d+(-server)?(-open)?|fabric-?manager(-\d+)?)"
)


@dataclass(frozen=True)
class Distribution:
    """A release of a distribution.

    `manager` is its package manager, `repository` the name of its folder in NVIDIA's repository, `key` the
    file with the key that signs it and the key's fingerprint.
    """

    name: str
    manager: str
    repository: str
    key: tuple[str, str]


@dataclass(frozen=True)
class Packages:
    """Packages to install.

    `library` is the package whose presence and version tell that of the driver, from whatever source.
    `driver` are the packages that carry the driver's version, with the one that tells what a source offers
    first and the kernel modules last. `companions` have versions of their own. `pinned` are patterns of all
    that must stay at the driver's version, empty where dnf locks them. `dkms` is the name under which DKMS
    knows the kernel modules, `stream` the module stream of dnf, or empty.
    """

    library: str
    driver: tuple[str, ...]
    companions: tuple[str, ...]
    pinned: str
    dkms: str
    stream: str = ""


DISTRIBUTIONS = {
    ("Debian", "12"): Distribution("Debian 12", "apt", "debian12", KEY_OF_2022),
    ("Debian", "13"): Distribution("Debian 13", "apt", "debian13", KEY_OF_DEBIAN_13),
    ("Ubuntu", "22.04"): Distribution("Ubuntu 22.04", "apt", "ubuntu2204", KEY_OF_2022),
    ("Ubuntu", "24.04"): Distribution("Ubuntu 24.04", "apt", "ubuntu2404", KEY_OF_2022),
    ("RedHat", "8"): Distribution("Enterprise Linux 8", "dnf", "rhel8", KEY_OF_RPM),
    ("RedHat", "9"): Distribution("Enterprise Linux 9", "dnf", "rhel9", KEY_OF_RPM),
}
# Signer of the distribution's own packages: origin as apt reports it, and file with the keys.
ARCHIVES = {
    "Debian": {"origin": "Debian", "keyring": "/usr/share/keyrings/debian-archive-keyring.gpg"},
    "Ubuntu": {"origin": "Ubuntu", "keyring": "/usr/share/keyrings/ubuntu-archive-keyring.gpg"},
}
REPOSITORY_ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "sbsa"}


def distribution(name: str, version: str) -> Distribution:
    """Return the distribution of a machine.

    Args:
        name: as Ansible's fact `distribution`, such as `Debian` or `Rocky`.
        version: as Ansible's fact `distribution_version`, such as `12.11`, `24.04` or `9.4`.

    Raises:
        DriverError: the role knows no packages for it.
    """
    family = "RedHat" if name in RED_HAT else name
    found = DISTRIBUTIONS.get((family, version)) or DISTRIBUTIONS.get((family, version.split(".", 1)[0]))
    if not found:
        known = ", ".join(one.name for one in DISTRIBUTIONS.values())
        raise DriverError(
            f"This machine runs {name} {version}, and the driver can be installed on {known}: install it by"
            " other"
            " means and set nvidia_driver_source to preinstalled."
        )
    return found


def packages(where: Distribution, source: str, flavor: str, branch: str) -> Packages:
    """Return the packages of the driver, without persistence daemon and fabric manager where those are apart.

    Args:
        source: `distribution` or `nvidia`.
        flavor: `open` or `proprietary` kernel modules.
        branch: the driver's branch, such as `570`; may be empty where names do not have it.

    Raises:
        DriverError: the distribution has no such packages, or needs the branch to tell.
    """
    is_open = flavor == "open"
    if where.manager == "dnf":
        if source == "distribution":
            raise DriverError(
                f"{where.name} has no packages of the NVIDIA driver: set nvidia_driver_source to nvidia or"
                " runfile."
            )
        _need_branch(where, branch)
        return Packages(
            library="nvidia-driver-cuda",
            driver=("nvidia-driver-cuda", "kmod-nvidia-open-dkms" if is_open else "kmod-nvidia-latest-dkms"),
            companions=(),
            pinned="",
            dkms="nvidia",
            stream=f"nvidia-driver:{branch}-{'open' if is_open else 'dkms'}",
        )
    if where.name.startswith("Ubuntu"):
        _need_branch(where, branch)
        suffix = f"{branch}-server" if source == "distribution" else branch
        return Packages(
            library=f"libnvidia-compute-{suffix}",
            driver=(
                f"libnvidia-compute-{suffix}",
                f"nvidia-utils-{suffix}",
                f"nvidia-compute-utils-{suffix}",
                f"nvidia-dkms-{suffix}{'-open' if is_open else ''}",
            ),
            companions=("nvidia-modprobe",),
            pinned=f"*nvidia*-{branch} *nvidia*-{branch}-*",
            dkms="nvidia",
        )
    if source == "distribution":
        return Packages(
            library="libnvidia-ml1",
            driver=(
                "libnvidia-ml1",
                "libcuda1",
                "nvidia-smi",
                "nvidia-open-kernel-dkms" if is_open else "nvidia-kernel-dkms",
            ),
            companions=("nvidia-modprobe",),
            pinned="src:nvidia-graphics-drivers* src:nvidia-open-gpu-kernel-modules*",
            dkms="nvidia-current-open" if is_open else "nvidia-current",
        )
    return Packages(
        library="libnvidia-ml1",
        driver=("nvidia-driver-cuda", "nvidia-kernel-open-dkms" if is_open else "nvidia-kernel-dkms"),
        companions=(),
        # Not libnvidia*: the container toolkit's libraries are called so too, and have versions of their own.
        pinned=(
            "nvidia-driver* nvidia-kernel* nvidia-open* nvidia-modprobe nvidia-persistenced"
            " nvidia-fabricmanager* libcuda1 libcudadebugger1 libnvidia-ml1 libnvidia-ptxjitcompiler1"
            " libnvidia-nvvm4 firmware-nvidia-gsp cuda-drivers*"
        ),
        dkms="nvidia",
    )


def signing_certificate(where: Distribution) -> str:
    """Return the path of the certificate that DKMS signs modules with, as the distribution configures it."""
    return "/var/lib/shim-signed/mok/MOK.der" if where.name.startswith("Ubuntu") else "/var/lib/dkms/mok.pub"


def persistence_packages(where: Distribution) -> tuple[str, ...]:
    """Return the packages of the persistence daemon; Ubuntu has it in `nvidia-compute-utils`."""
    return () if where.name.startswith("Ubuntu") else ("nvidia-persistenced",)


def fabric_manager_package(where: Distribution, source: str, branch: str) -> str:
    """Return the package of the fabric manager.

    Raises:
        DriverError: the distribution has none, or needs the branch to tell.
    """
    if source != "nvidia" and not where.name.startswith("Ubuntu"):
        raise DriverError(
            f"The fabric manager, which the NVSwitches of this machine need, is not among the packages of"
            f" {where.name}:"
            " set nvidia_driver_source to nvidia, or nvidia_driver_fabric_manager to absent."
        )
    if where.manager == "dnf":
        return "nvidia-fabric-manager"
    _need_branch(where, branch)
    if source == "nvidia" and int(branch) >= FABRIC_MANAGER_WITHOUT_BRANCH_FROM:
        return "nvidia-fabricmanager"
    return f"nvidia-fabricmanager-{branch}"


def _need_branch(where: Distribution, branch: str) -> None:
    if not branch:
        raise DriverError(
            f"The packages of the NVIDIA driver carry its branch in their names on {where.name}: name one in"
            " nvidia_driver_version, such as 570."
        )
