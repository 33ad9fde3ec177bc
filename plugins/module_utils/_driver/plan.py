# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a machine is and what is requested to what must be done about the NVIDIA driver."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .._apt.sources import missing_components
from . import gpu, packages
from .version import DriverError, branch, kernel_order, matches, newest, upstream

PIN_FILE = "/etc/apt/preferences.d/gpufarm-nvidia"
COMPONENTS_FILE = "/etc/apt/sources.list.d/gpufarm-nvidia-components.sources"
APT_SOURCE_FILE = "/etc/apt/sources.list.d/gpufarm-nvidia.sources"
APT_KEY_FILE = "/etc/apt/keyrings/gpufarm-nvidia.asc"
DNF_SOURCE_FILE = "/etc/yum.repos.d/gpufarm-nvidia.repo"
DNF_KEY_FILE = "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpufarm-nvidia"
RUNFILE = "/var/cache/gpufarm/nvidia-driver.run"
# The first version of the runfile that has a choice of kernel modules by name (its README,
# "--kernel-module-type").
RUNFILE_KIND_FROM = 560
PERSISTENCE = "nvidia-persistenced.service"


@dataclass(frozen=True)
class Machine:
    """A machine as it is found.

    `kernels` are the releases of the installed kernels from old to new, `running` that of the one that runs,
    `with_headers` those whose headers are installed or can be. `images` are the installed packages of
    kernels. `installed` has the versions of the installed packages by name, `offered` those that the package
    sources offer; `sources` are the lines that `missing_components` takes. `runfile_version` is the version
    that a runfile installed, or empty. `secure_boot` says whether unsigned modules are refused,
    `key_enrolled` whether those signed by DKMS are not.
    """

    distribution: str
    version: str
    architecture: str
    running: str
    kernels: tuple[str, ...] = ()
    with_headers: frozenset[str] = frozenset()
    images: tuple[str, ...] = ()
    devices: tuple[gpu.PciDevice, ...] = ()
    installed: dict[str, str] = field(default_factory=dict)
    offered: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    runfile_version: str = ""
    secure_boot: bool = False
    key_enrolled: bool = False


@dataclass(frozen=True)
class Request:
    """The variables of the role, without its prefix."""

    source: str
    version: str = ""
    upgrade: bool = False
    kernels: tuple[str, ...] = ()
    kernel_modules: str = "auto"
    persistence: bool = True
    fabric_manager: str = "auto"
    repository_url: str = packages.NVIDIA_REPOSITORIES
    repository_key_fingerprint: str = ""
    signing_certificate: str = ""


@dataclass(frozen=True)
class Plan:
    """The planned changes.

    `version` is the one to install, empty while the package sources do not tell it. `install` is what the
    package manager is asked for, `prerequisites` what must be there to build, `files` the files to write with
    their contents, `commands` what is run where no module of Ansible does. `services` are units to enable,
    `disabled` units that are there and must not run. `kernels` are those to build for,
    `left_out` those that nothing can be built for. `trial` names the package whose modules are built first
    for a try, or is empty.
    """

    manager: str
    kernel_modules: str
    dkms: str
    version: str
    installed_version: str
    kernels: tuple[str, ...]
    left_out: tuple[str, ...]
    change: bool
    repository: dict[str, str] = field(default_factory=dict)
    components: dict[str, str] = field(default_factory=dict)
    prerequisites: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    commands: tuple[tuple[str, ...], ...] = ()
    services: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    trial: str = ""


def kernels_to_build(machine: Machine, wanted: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the kernels to build for, and installed ones that nothing can be built for.

    Without a request these are all installed kernels, as any may boot, or the running one where none is
    installed. An old kernel whose headers are gone from the package sources is left out; the newest, which
    boots next, and the running one are not.

    Raises:
        DriverError: a kernel that must not be left out has no headers.
    """
    chosen = tuple(wanted)
    candidates = chosen or machine.kernels or (machine.running,)
    without = tuple(one for one in candidates if one not in machine.with_headers)
    needed = set(chosen) or {max(candidates, key=kernel_order), machine.running}
    headless = [one for one in without if one in needed]
    if headless:
        raise DriverError(
            f"There are no headers of the kernel {', '.join(headless)} in the package sources of this"
            " machine, so no"
            " driver can be built for it: boot a kernel of the distribution, or name the kernels to build"
            " for in"
            " nvidia_driver_kernels."
        )
    return tuple(one for one in candidates if one not in without), without


def header_packages(manager: str, kernels: Iterable[str], images: Iterable[str]) -> list[str]:
    """Return the packages with the headers of kernels, and those that bring the headers of kernels to come.

    Args:
        images: installed packages of kernels; `linux-image-amd64`, which follows the newest kernel, has a
            companion with the headers.
    """
    if manager == "dnf":
        return [f"kernel-devel-{one}" for one in kernels]
    following = [
        one.replace("image", "headers", 1) for one in images if re.match(r"linux-image-[a-z][a-z0-9-]*$", one)
    ]
    return [f"linux-headers-{one}" for one in kernels] + sorted(following)


def certificate(machine: Machine, request: Request) -> str:
    """Return the path of the certificate of the key that modules are signed with."""
    where = packages.distribution(machine.distribution, machine.version)
    return request.signing_certificate or packages.signing_certificate(where)


def check_secure_boot(machine: Machine, request: Request) -> None:
    """Refuse to build modules that the machine would refuse to load.

    Raises:
        DriverError: tells how the key that DKMS signs with is enrolled.
    """
    if machine.secure_boot and not machine.key_enrolled:
        key = certificate(machine, request)
        raise DriverError(
            "Secure Boot is on, and the kernel would refuse the driver's modules, as the key that DKMS"
            " signs them with"
            f" is not enrolled: install dkms and mokutil, run 'dkms generate_mok' if there is no {key}, run"
            f" 'mokutil --import {key}' and choose a password, reboot, choose 'Enroll MOK' on the console"
            " and give the"
            " password, then run again; or switch Secure Boot off in the firmware."
        )


def resolve(request: Request, installed: str, offered: Iterable[str]) -> str:
    """Return the version to have: the installed one as long as it is wanted, else the newest offered one.

    Empty when it cannot be known yet, as nothing is offered.

    Args:
        installed: the version of the driver's package, empty when there is none.
        offered: versions that the package sources offer.

    Raises:
        DriverError: another version is installed and may not be replaced, or none that is wanted is.
    offered
    """
    versions = list(offered)
    if installed and not matches(request.version, installed) and not request.upgrade:
        raise DriverError(
            f"Version {upstream(installed)} of the NVIDIA driver is installed, and nvidia_driver_version"
            f" asks for {request.version}: set nvidia_driver_upgrade to true to replace it, or ask for the"
            " version that is there."
        )
    if installed and matches(request.version, installed) and not request.upgrade:
        return installed
    wanted = [one for one in versions if matches(request.version, one)]
    if versions and not wanted:
        raise DriverError(
            f"The package sources of this machine offer the NVIDIA driver in"
            f" {', '.join(sorted(set(versions), key=versions.index))}, and nvidia_driver_version asks for"
            f" {request.version}: ask for one of these, or set nvidia_driver_source to another."
        )
    return newest(wanted)


def wants_fabric_manager(machine: Machine, request: Request) -> bool:
    """Whether the fabric manager is to be installed."""
    if request.fabric_manager == "auto":
        return gpu.has_nvswitch(machine.devices)
    return request.fabric_manager == "present"


def driver_plan(machine: Machine, request: Request) -> Plan:
    """Return what must be done so that the machine has the driver that is requested.

    Raises:
        DriverError: it cannot be had; nothing should be changed then.
    """
    check_secure_boot(machine, request)
    found = gpu.gpus(machine.devices)
    gpu.check_version(request.version, found)
    if request.source == "runfile":
        return _runfile_plan(machine, request, found)
    return _package_plan(machine, request, found)


def _package_plan(machine: Machine, request: Request, found: list[gpu.PciDevice]) -> Plan:
    where = packages.distribution(machine.distribution, machine.version)
    if machine.runfile_version:
        raise DriverError(
            f"Version {machine.runfile_version} of the NVIDIA driver is installed from a runfile, which"
            " packages would"
            " collide with: run 'nvidia-uninstall' and run again, or set nvidia_driver_source to runfile."
        )
    # The packages that tell versions have the same names for both kinds of kernel modules.
    telling = packages.packages(where, request.source, "proprietary", branch(request.version))
    same = re.compile(re.sub(r"\d{3}", r"\\d{3}", telling.library))
    installed = newest(version for name, version in machine.installed.items() if same.fullmatch(name))
    version = resolve(request, installed, machine.offered.get(telling.driver[0], ()))
    gpu.check_version(upstream(version) or request.version, found)
    number = branch(version) or branch(request.version)
    kind = gpu.kernel_modules(request.kernel_modules, found, number)
    names = packages.packages(where, request.source, kind, number)
    other = packages.packages(
        where, request.source, "proprietary" if kind == "open" else "open", number
    ).driver
    former = [re.sub(r"\b\d{3}\b", branch(installed) or number, one) for one in (*names.driver, *other)]
    kernels, left_out = kernels_to_build(machine, request.kernels)
    driver, companions, services = list(names.driver), list(names.companions), []
    persistence = packages.persistence_packages(where)
    if request.persistence:
        (driver if request.source == "nvidia" else companions).extend(persistence)
        services.append(PERSISTENCE)
    disabled = (
        (PERSISTENCE,) if not request.persistence and set(persistence) <= set(machine.installed) else ()
    )
    if wants_fabric_manager(machine, request):
        driver.append(packages.fabric_manager_package(where, request.source, number))
        services.append("nvidia-fabricmanager.service")
    versioned = [f"{one}{'=' if where.manager == 'apt' else '-'}{_plain(where, version)}" for one in driver]
    install = tuple((versioned if version else driver) + companions)
    prerequisites = ("dkms", *header_packages(where.manager, kernels, machine.images))
    replaced = tuple(
        one
        for one in dict.fromkeys((*other, *former))
        if one not in names.driver and one in machine.installed
    )
    change = bool(replaced) or any(
        one not in machine.installed or (version and machine.installed[one] != version) for one in driver
    )
    return Plan(
        manager=where.manager,
        kernel_modules=kind,
        dkms=names.dkms,
        version=version,
        installed_version=installed,
        kernels=kernels,
        left_out=left_out,
        change=change or any(one not in machine.installed for one in companions),
        repository=_repository(machine, where, request) if request.source == "nvidia" else {},
        components=_components(machine, where, request),
        prerequisites=prerequisites,
        install=install,
        replaced=replaced,
        files={PIN_FILE: pin(names.pinned, version)} if where.manager == "apt" and version else {},
        commands=_dnf_commands(names, prerequisites, install, driver) if where.manager == "dnf" else (),
        services=tuple(services),
        disabled=disabled if installed else (),
        # A driver that works must not be lost to one that does not build.
        trial=f"{names.driver[-1]}={version}"
        if where.manager == "apt" and installed and version and version != installed
        else "",
    )


def _plain(where: packages.Distribution, version: str) -> str:
    """The version as the package manager takes it behind a package's name; dnf takes it without the epoch."""
    return version if where.manager == "apt" else version.split(":", 1)[-1]


def _components(machine: Machine, where: packages.Distribution, request: Request) -> dict[str, str]:
    """The sources of the distribution's components that the driver, or what it depends on, is in."""
    if where.manager != "apt":
        return {}
    distribution = where.name.split()[0]
    wanted: tuple[str, ...] = ("restricted",) if distribution == "Ubuntu" else ("contrib",)
    if distribution == "Debian" and request.source == "distribution":
        wanted += ("non-free", "non-free-firmware")
    keyring = packages.ARCHIVES[distribution]["keyring"]
    content = missing_components(machine.sources, wanted, COMPONENTS_FILE, keyring)
    return {"file": COMPONENTS_FILE, "content": content}


def pin(patterns: str, version: str) -> str:
    """Return preferences of apt that keep packages at one version, through installations and upgrades."""
    return (
        f"Package: {patterns}\nPin: version {version}\nPin-Priority: 1001\n\n"
        f"Package: {patterns}\nPin: release *\nPin-Priority: -1\n"
    )


def _repository(machine: Machine, where: packages.Distribution, request: Request) -> dict[str, str]:
    """NVIDIA's repository for the machine: the file that declares it, and the key that signs it."""
    cpu = packages.REPOSITORY_ARCHITECTURE.get(machine.architecture)
    if not cpu:
        raise DriverError(
            f"NVIDIA has no packages of the driver for the processor {machine.architecture}: set"
            " nvidia_driver_source to another source."
        )
    url = f"{request.repository_url.rstrip('/')}/{where.repository}/{cpu}/"
    name, fingerprint = where.key
    if where.manager == "apt":
        file, key_file = APT_SOURCE_FILE, APT_KEY_FILE
        content = f"Types: deb\nURIs: {url}\nSuites: /\nSigned-By: {key_file}\n"
    else:
        file, key_file = DNF_SOURCE_FILE, DNF_KEY_FILE
        content = (
            f"[gpufarm-nvidia]\nname=NVIDIA driver\nbaseurl={url}\nenabled=1\ngpgcheck=1\n"
            f"gpgkey=file://{key_file}\n"
        )
    return {
        "file": file,
        "content": content,
        "key_url": url + name,
        "key_file": key_file,
        "key_fingerprint": request.repository_key_fingerprint.replace(" ", "").upper() or fingerprint,
    }


def _dnf_commands(
    names: packages.Packages,
    prerequisites: Iterable[str],
    install: Iterable[str],
    driver: Iterable[str],
) -> tuple[tuple[str, ...], ...]:
    """The commands for dnf, whose module of Ansible needs a Python that Enterprise Linux 8 does not have."""
    return (
        ("dnf", "-y", "install", "python3-dnf-plugin-versionlock", *prerequisites),
        ("dnf", "-y", "module", "reset", "nvidia-driver"),
        ("dnf", "-y", "module", "enable", names.stream),
        ("dnf", "versionlock", "delete", *driver),
        ("dnf", "-y", "install", "--setopt=install_weak_deps=False", *install),
        ("dnf", "versionlock", "add", *driver),
    )


def _runfile_plan(machine: Machine, request: Request, found: list[gpu.PciDevice]) -> Plan:
    if len(request.version.split(".")) < 2:
        raise DriverError(
            "A runfile has one version, and nvidia_driver_version must name it in full, such as 570.133.20,"
            " so that a"
            " second run knows whether it is installed."
        )
    packaged = [f"{name} {version}" for name, version in sorted(machine.installed.items())]
    if packaged:
        raise DriverError(
            f"The NVIDIA driver is installed from packages ({packaged[0]}), which a runfile would"
            " overwrite: remove them"
            " with nvidia_driver_state absent and run again, or install from packages."
        )
    installed = machine.runfile_version
    if installed and installed != request.version and not request.upgrade:
        resolve(request, installed, ())
    where = packages.distribution(machine.distribution, machine.version)
    number = branch(request.version)
    kind = gpu.kernel_modules(request.kernel_modules, found, number)
    kernels, left_out = kernels_to_build(machine, request.kernels)
    if wants_fabric_manager(machine, request):
        raise DriverError(
            "The fabric manager, which the NVSwitches of this machine need, is in no runfile: set"
            " nvidia_driver_source to"
            " nvidia, or nvidia_driver_fabric_manager to absent."
        )
    kind_option = (
        (f"--kernel-module-type={kind}",)
        if int(number) >= RUNFILE_KIND_FROM
        else (("-m=kernel-open",) if kind == "open" else ())
    )
    options = (
        "--silent",
        "--dkms",
        "--no-x-check",
        "--no-nouveau-check",
        "--no-install-compat32-libs",
        *kind_option,
    )
    return Plan(
        manager=where.manager,
        kernel_modules=kind,
        dkms="nvidia",
        version=request.version,
        installed_version=installed,
        kernels=kernels,
        left_out=left_out,
        change=installed != request.version,
        prerequisites=("dkms", *header_packages(where.manager, kernels, machine.images)),
        commands=(("sh", RUNFILE, *options, f"--kernel-name={kernels[-1]}"),),
        services=(PERSISTENCE,) if request.persistence else (),
    )
