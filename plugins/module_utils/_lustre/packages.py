# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages of Lustre fit the kernels of a machine. No I/O.

Source: source of Lustre, debian/control: names of packages.
"""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Mapping, Sequence


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
                "%s%s is '%s'; write it like %s, or install Lustre by other means and set %ssource to"
                " preinstalled." % (prefix, variable, value, example, prefix)
            )


def problems(
    kind: str,
    settings: Mapping[str, Any],
    available: Mapping[str, Sequence[str]],
    kernels: Sequence[Mapping[str, Any]],
) -> List[str]:
    """Return why packages of a source do not fit a machine, one sentence each.

    Args:
        kind: ``client`` or ``server``.
        settings: the role's variables without its name: ``version``, ``modules``.
        available: versions in the source, the newest first, by package.
        kernels: what the module lustre_info tells of the kernels that will boot.
    """
    prefix, utilities = "lustre_%s_" % kind, "lustre-%s-utils" % kind
    version = _version(kind, settings, available)
    if not version:
        there = ", ".join(available.get(utilities, [])) or "none"
        return [
            f"The package source has no {utilities} {settings['version'] or 'at all'}; it has {there};"
            f" correct {prefix}version."
        ]
    if settings["modules"] == "dkms":
        dkms = "lustre-%s-modules-dkms" % kind
        if version not in available.get(dkms, []):
            return [
                "The package source has no %s %s, as its %s; choose another %sversion, or set"
                " %smodules to kernel." % (dkms, version, utilities, prefix, prefix)
            ]
        bare = [str(one["release"]) for one in kernels if not one["headers"]]
        if bare:
            return [
                "There are no headers of the kernel %s, which modules are built with; install"
                " linux-headers-%s, or name the kernels that will boot in %skernels."
                % (" and ".join(bare), bare[0], prefix)
            ]
        return []
    start = "lustre-%s-modules-" % kind
    missing = [one["release"] for one in kernels if version not in available.get(start + one["release"], [])]
    if missing:
        known = [
            name[len(start) :]
            for name, versions in sorted(available.items())
            if name.startswith(start) and version in versions and not name.endswith("-dkms")
        ]
        return [
            "The package source has no modules of Lustre %s for the kernel %s; it has them for %s; boot such"
            " a kernel, add the package to the source, or set %smodules to dkms."
            % (version, " and ".join(missing), ", ".join(known) or "none", prefix)
        ]
    return []


def choose(
    kind: str,
    settings: Mapping[str, Any],
    available: Mapping[str, Sequence[str]],
    kernels: Sequence[Mapping[str, Any]],
) -> List[str]:
    """Return the packages to install, with their versions, where problems() has nothing against them."""
    names = ["lustre-%s-utils" % kind]
    if settings["modules"] == "dkms":
        names.append("lustre-%s-modules-dkms" % kind)
    else:
        names += ["lustre-%s-modules-%s" % (kind, one["release"]) for one in kernels]
    version = _version(kind, settings, available)
    return ["%s=%s" % (name, version) for name in names]


def _version(kind: str, settings: Mapping[str, Any], available: Mapping[str, Sequence[str]]) -> str:
    versions = available.get("lustre-%s-utils" % kind, [])
    return next((one for one in versions if one.startswith(str(settings["version"]))), "")
