# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the role dcgm. No I/O."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._nvml.kernel_module import parse_version
from .engine import HOST, SOCKET

MAJOR = 4
# NVIDIA DCGM, cmake/packaging.cmake: names, and `core` conflicts with DCGM 3, which is one package. The
# exporter of that was no package.
CORE = f"datacenter-gpu-manager-{MAJOR}-core"
CUDA = f"datacenter-gpu-manager-{MAJOR}-cuda"
EXPORTER = "datacenter-gpu-manager-exporter"
_OTHER_MAJOR = re.compile(r"datacenter-gpu-manager(?:-(?P<major>\d+)-core)?")
# NVIDIA, "CUDA Toolkit Release Notes", CUDA minor version compatibility: the oldest branch of the driver for
# each major version of CUDA. The diagnostics of DCGM are packages for each of these.
_CUDA_OF_BRANCH = ((580, 13), (525, 12), (450, 11))
OLDEST_BRANCH = 450
# The list of NVIDIA's package (dcgm-exporter, packaging/config-files/systemd and Makefile).
CHOICE_OF_NVIDIA = "/etc/dcgm-exporter/default-counters.csv"
OWN_CHOICE = "/etc/gpufarm/dcgm/counters.csv"
# dcgm-exporter, internal/pkg/counters: fields of DCGM, and what the exporter counts itself. It ends at a name
# that it does not know.
_FIELD = re.compile(r"DCGM_(?:FI|EXP)_[A-Z0-9_]+")
# deb-version(7), without what nobody needs here.
_VERSION = re.compile(r"(?:\d+:)?[0-9][0-9A-Za-z.+~-]*")
_FINGERPRINT = re.compile(r"[0-9A-Fa-f]{40}")
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"


def plan(
    settings: Mapping[str, Any],
    name: str,
    machine: Mapping[str, str | None] | None = None,
    offered: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return what the settings result in on a machine.

    Args:
        settings: the variables of the role without its name.
        name: of the machine in the inventory, for sentences.
        machine: `packages`, a line for each package of DCGM that dpkg knows, with status, name and version
            between tabs; `driver`, the content of /proc/driver/nvidia/version, empty without a driver, and
            None where another role has still to install one.
        offered: the versions of packages in the package source, the newest first.

    Returns:
        `problems`; if there are none, also `engine`, the address of the host engine for programs of DCGM;
        `socket`, its path; `collectors`, the file that lists the metrics, and `counters`, its content if the
        role writes it; and, if the machine and the source are given, `packages` to install, with versions.
        The diagnostics are among them only if the driver is known.
    """
    problems = list(_problems(settings))
    packages: dict[str, str] = {}
    if machine is not None and not problems:
        branch = None if machine["driver"] is None else _branch(machine["driver"])
        installed = _installed(machine["packages"] or "")
        problems = [*_problems_of_driver(name, branch), *_problems_of_packages(name, installed)]
        if not problems and settings["source"] == "preinstalled":
            problems = list(_problems_of_preinstalled(settings, name, installed))
        elif not problems and offered is not None:
            packages = _chosen(settings, branch, installed, offered)
            problems = list(_problems_of_source(settings, packages, installed, offered))
    return {
        "problems": problems,
        "engine": HOST,
        "socket": SOCKET,
        "collectors": OWN_CHOICE if settings["metrics"] else CHOICE_OF_NVIDIA,
        "counters": {OWN_CHOICE.rpartition("/")[2]: _counters(settings["metrics"])}
        if settings["metrics"]
        else {},
        "packages": [f"{package}={version}" for package, version in packages.items()],
    }


def _problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the settings by themselves."""
    for key in ("version", "exporter_version"):
        if settings[key] and not _VERSION.fullmatch(settings[key]):
            yield (
                f"dcgm_{key} is '{settings[key]}', which is no version; give one in full, such as 1:4.5.3-1."
            )
    if settings["source"] == "repository":
        needed = ("apt_url", "apt_suite", "apt_key_url", "apt_key_fingerprint")
        missing = [f"dcgm_{key}" for key in needed if not settings[key]]
        if missing:
            yield (
                f"dcgm_source is repository, which needs {' and '.join(missing)}; set what is missing,"
                " or take preinstalled."
            )
        elif not _FINGERPRINT.fullmatch(settings["apt_key_fingerprint"]):
            yield (
                f"dcgm_apt_key_fingerprint is '{settings['apt_key_fingerprint']}', and a fingerprint has 40"
                " hexadecimal digits without spaces; correct it."
            )
        elif any(re.search(r"\s", settings[key]) for key in needed):
            yield "dcgm_apt_url, dcgm_apt_suite or dcgm_apt_key_url has a space; write an address without."
    if not 0 < settings["port"] < 65536:
        yield f"dcgm_port is {settings['port']}, which is no port; give a number from 1 to 65535."
    if not all(_CERTIFICATE in one for one in settings["readers"]):
        yield "An entry of dcgm_readers is no certificate; give the text of a PEM file."
    fields = [one["field"] for one in settings["metrics"]]
    for one in settings["metrics"]:
        if not _FIELD.fullmatch(one["field"]):
            yield (
                f"dcgm_metrics has the field '{one['field']}', which is none of DCGM; give a name such as"
                " DCGM_FI_DEV_FB_USED."
            )
        elif fields.count(one["field"]) > 1:
            yield f"dcgm_metrics has {one['field']} more than once; leave one of them."
        if not one["help"].strip() or not one["help"].isprintable():
            yield f"The help of {one['field']} in dcgm_metrics is no line of text; write one."


def _problems_of_driver(name: str, branch: int | None) -> Iterator[str]:
    """Yield a sentence if DCGM does not run with the driver; its branch is 0 without one, None if unknown."""
    if branch == 0:
        yield (
            f"{name} has no NVIDIA driver that is loaded, which DCGM needs; run the role nvidia_driver first."
        )
    elif branch is not None and branch < OLDEST_BRANCH:
        yield (
            f"{name} has the NVIDIA driver of branch {branch}, and DCGM {MAJOR} needs {OLDEST_BRANCH} or"
            " later; upgrade it with the role nvidia_driver."
        )


def _problems_of_packages(name: str, installed: Mapping[str, str]) -> Iterator[str]:
    """Yield packages of another major version, which apt would remove or which would share the unit."""
    for package, version in installed.items():
        other = _OTHER_MAJOR.fullmatch(package)
        if other and other["major"] != str(MAJOR):
            yield (
                f"{name} has {package} {version}, beside which DCGM {MAJOR} cannot be; see what uses it,"
                " remove it, and run again."
            )


def _problems_of_preinstalled(
    settings: Mapping[str, Any], name: str, installed: Mapping[str, str]
) -> Iterator[str]:
    """Yield what packages lack that somebody else has installed."""
    for package, key in ((CORE, "version"), (EXPORTER, "exporter_version")):
        version = installed.get(package)
        if version is None:
            yield (
                f"dcgm_source is preinstalled, and {name} has no {package}; install it, or set dcgm_source to"
                " repository."
            )
        elif settings[key] not in ("", version):
            yield (
                f"dcgm_{key} is {settings[key]}, and {name} has {package} {version}; correct the variable, or"
                " install that version."
            )


def _chosen(
    settings: Mapping[str, Any],
    branch: int | None,
    installed: Mapping[str, str],
    offered: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """Return packages with their versions; empty for a package that neither source nor machine has."""

    def version(package: str, key: str) -> str:
        newest = next(iter(offered.get(package, [])), "")
        return str(settings[key] or installed.get(package) or newest)

    packages = {CORE: version(CORE, "version"), EXPORTER: version(EXPORTER, "exporter_version")}
    if branch is not None:
        major = next(major for least, major in _CUDA_OF_BRANCH if branch >= least)
        packages[f"{CUDA}{major}"] = packages[CORE]
    return packages


def _problems_of_source(
    settings: Mapping[str, Any],
    packages: Mapping[str, str],
    installed: Mapping[str, str],
    offered: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """Yield packages that the package source lacks and that are not installed."""
    for package, version in packages.items():
        versions = offered.get(package, [])
        if version not in versions and installed.get(package) != version:
            key = "exporter_version" if package == EXPORTER else "version"
            yield (
                f"The package source {settings['apt_url']} has no {package} {version}".rstrip()
                + f"; it has {', '.join(versions) or 'none'}; correct dcgm_{key} or dcgm_apt_url."
            )


def _installed(listed: str) -> dict[str, str]:
    """Return the versions of installed packages by name."""
    lines = (line.split("\t") for line in listed.splitlines())
    return {line[1]: line[2] for line in lines if line[0] == "installed"}


def _branch(told: str) -> int:
    """Return the branch of the driver that the kernel tells of, such as 570; 0 if it tells of none."""
    return int(parse_version(told).version.partition(".")[0] or 0)


def _counters(metrics: Sequence[Mapping[str, str]]) -> str:
    """Return the list of metrics for the exporter (dcgm-exporter, internal/pkg/counters/counter_config.go).

    It takes lines of CSV with three fields, and `#` at the beginning of a line for a comment.
    """
    text = io.StringIO()
    rows = ([one["field"], one.get("type", "gauge"), one["help"].strip()] for one in metrics)
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
