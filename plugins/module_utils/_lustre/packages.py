# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages of Lustre fit the kernels of a machine. No I/O.

Source: source of Lustre, debian/control: names of packages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import drivers


def source_problems(prefix: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with where packages come from.

    Args:
        prefix: what the names of the variables begin with.
        settings: ``source``, ``version`` and those that begin with ``apt_``.
    """
    if settings["source"] != "repository":
        return
    for variable, pattern, example in (
        ("version", r"([0-9][0-9A-Za-z.+~-]*)?", "2.15"),
        ("apt_url", r"(https?|file)://\S+|file:/\S+", "https://mirror.example.org/lustre"),
        ("apt_suite", r"[A-Za-z0-9./-]*", "bookworm, or ./ for a source without suites"),
        ("apt_key_url", r"https?://\S+", "https://mirror.example.org/lustre.asc"),
        ("apt_key_fingerprint", "[0-9A-Fa-f]{40}", "40 hexadecimal digits without spaces"),
    ):
        value = str(settings[variable])
        if not re.fullmatch(pattern, value):
            yield (
                f"{prefix}{variable} is '{value}'; write it like {example}, or install Lustre by other means"
                f" and set {prefix}source to preinstalled."
            )


def choose(
    kind: str,
    settings: Mapping[str, Any],
    available: Mapping[str, Sequence[str]],
    kernels: Sequence[Mapping[str, Any]],
) -> tuple[list[str], dict[str, Any]]:
    """Choose packages of a source for a machine.

    Args:
        kind: ``client`` or ``server``.
        settings: the role's variables without its name: ``version``, ``modules``, ``networks``.
        available: versions in the source, the newest first, by package.
        kernels: what the module lustre_info tells of the kernels that will boot.

    Returns:
        why none fit, one sentence each; if there are none, ``packages`` with their versions, and ``version``.
    """
    wrong = _problems(kind, settings, available, kernels)
    if wrong:
        return wrong, {}
    version = _version(kind, settings, available)
    names = [f"lustre-{kind}-utils"]
    if settings["modules"] == "dkms":
        names.append(f"lustre-{kind}-modules-dkms")
    else:
        names += [f"lustre-{kind}-modules-{one['release']}" for one in kernels]
        names += drivers.packages(settings["networks"], version, available, kernels)
    return [], {"packages": [f"{name}={version}" for name in names], "version": version}


def _problems(
    kind: str,
    settings: Mapping[str, Any],
    available: Mapping[str, Sequence[str]],
    kernels: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Return why packages of a source do not fit a machine, one sentence each."""
    prefix, utilities = f"lustre_{kind}_", f"lustre-{kind}-utils"
    version = _version(kind, settings, available)
    if not version:
        there = ", ".join(available.get(utilities, [])) or "none"
        return [
            f"The package source has no {utilities} {settings['version'] or 'at all'}; it has {there};"
            f" correct {prefix}version."
        ]
    if settings["modules"] == "dkms":
        dkms = f"lustre-{kind}-modules-dkms"
        if version not in available.get(dkms, []):
            return [
                f"The package source has no {dkms} {version}, as its {utilities}; choose another"
                f" {prefix}version, or set {prefix}modules to kernel."
            ]
        bare = [str(one["release"]) for one in kernels if not one["headers"]]
        if bare:
            return [
                f"There are no headers of the kernel {' and '.join(bare)}, which modules are built with;"
                f" install linux-headers-{bare[0]}, or name the kernels that will boot in {prefix}kernels."
            ]
        return []
    start = f"lustre-{kind}-modules-"
    missing = [one["release"] for one in kernels if version not in available.get(start + one["release"], [])]
    if missing:
        known = [
            name[len(start) :]
            for name, versions in sorted(available.items())
            if name.startswith(start) and version in versions and not name.endswith("-dkms")
        ]
        return [
            f"The package source has no modules of Lustre {version} for the kernel {' and '.join(missing)};"
            f" it has them for {', '.join(known) or 'none'}; boot such a kernel, add the package to the"
            f" source, or set {prefix}modules to dkms."
        ]
    return []


def _version(kind: str, settings: Mapping[str, Any], available: Mapping[str, Sequence[str]]) -> str:
    versions = available.get(f"lustre-{kind}-utils", [])
    return next((one for one in versions if one.startswith(str(settings["version"]))), "")
