# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the output of programs of Lustre, without I/O.

Sources: lfs-df(1), lfs-check(1), lctl-get_param(8), tunefs.lustre(8); source of Lustre, lustre/utils/lfs.c
(showdf) and lustre/utils/mkfs_lustre.c (print_ldd).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

# lfs-df(1): what the letters behind a target mean; `f` says that it is on flash, which is no complaint.
FLAGS = {
    "D": "degraded",
    "N": "takes no new objects",
    "R": "read-only",
    "S": "out of space",
    "I": "out of inodes",
}
_TARGET = re.compile(
    r"^(?P<name>\S+)_UUID\s+(?P<total>[0-9]+)\s+(?P<used>[0-9]+)\s+(?P<free>[0-9]+)\s+[0-9]+%"
    r"\s+(?P<path>\S.*?)\[(?P<kind>MDT|OST):[0-9]+\]\s*(?P<flags>[A-Za-z]*)\s*$"
)
_INACTIVE = re.compile(r"^(?P<name>(?:MDT|OST)[0-9a-f]{4})\s*: (?P<why>.+?)\s*$")


class Target(NamedTuple):
    """A target of a mounted file system; `state` is ``active`` or why it is not, `complaints` in words."""

    name: str
    kind: str
    state: str
    total_kb: int | None
    free_kb: int | None
    complaints: list[str]


def parse_hosts(text: str) -> list[str]:
    """Return the addresses that ``getent ahostsv4`` prints, each once, in their order."""
    return list(dict.fromkeys(line.split()[0] for line in text.splitlines() if line.split()))


def parse_df(text: str, file_system: str) -> list[Target]:
    """Return the targets that ``lfs df`` of one file system prints."""
    found = []
    for line in text.splitlines():
        match = _TARGET.match(line)
        if match:
            found.append(
                Target(
                    match["name"],
                    match["kind"].lower(),
                    "active",
                    int(match["total"]),
                    int(match["free"]),
                    [FLAGS[flag] for flag in match["flags"] if flag in FLAGS],
                )
            )
            continue
        match = _INACTIVE.match(line)
        if match:
            name = f"{file_system}-{match['name']}"
            found.append(Target(name, match["name"][:3].lower(), match["why"], None, None, []))
    return found


def parse_check(text: str) -> dict[str, str]:
    """Return what ``lfs check`` says of targets: ``active``, or the complaint."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"^\s*([-_A-Za-z0-9]+-(?:OST|MDT)[0-9a-f]{4})-\S+?(:?) (.*?)\.?\s*$", line)
        if match:
            found[match[1]] = match[3]
            continue
        # lustre/utils/lfs.c, lfs_check: "error: check 'NAME': REASON"
        match = re.search(r"check '?([-_A-Za-z0-9]+-(?:OST|MDT)[0-9a-f]{4})[^:]*: (.*?)\s*$", line)
        if match:
            found[match[1]] = match[2]
    return found


def parse_parameters(text: str) -> dict[str, str]:
    """Return what ``lctl get_param`` prints: values by full name."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        match = re.match(r"^([A-Za-z][-\w]*(?:\.[-\w@]+)*)=(.*)$", line)
        if match:
            name = match[1]
            found[name] = match[2]
        elif name:
            found[name] = f"{found[name]}\n{line}".strip("\n")
    return found


def parse_devices(text: str) -> dict[str, str]:
    """Return what ``lctl dl`` prints of services of the machine: states by name of the target, or ``MGS``."""
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and fields[2] in ("mgs", "mdt", "obdfilter"):
            found[fields[3]] = fields[1]
    return found


def parse_quotas(text: str) -> dict[str, str]:
    """Return the kinds of quota that targets enforce, by target.

    Args:
        text: what ``lctl get_param osd-*.*.quota_slave.info`` prints.
    """
    found = {}
    for name, value in parse_parameters(text).items():
        kinds = re.search(r"(?m)^quota enabled:\s*(\S+)", value)
        if kinds and name.endswith(".quota_slave.info"):
            found[name.split(".")[1]] = kinds[1]
    return found


def parse_pool(text: str) -> list[str]:
    """Return the names that ``lctl pool_list`` prints below its first line."""
    return [line.strip().replace("_UUID", "") for line in text.splitlines()[1:] if line.strip()]


def parse_mmp(text: str) -> str:
    """Return the machine that has a device mounted, of what ``e2mmpstatus -i`` prints."""
    found = re.search(r"(?m)^\s*mmp_node_name:[ \t]*(\S+)", text)
    return found[1] if found else ""


def parse_target(text: str) -> dict[str, Any] | None:
    """Return what ``tunefs.lustre --dryrun`` tells of a formatted device; None when it has no target.

    Returns:
        ``name`` such as ``home-OST0001`` or ``MGS``; ``registered``, whether it was ever mounted; ``kinds``,
        of ``mgs``, ``mdt``, ``ost``; ``file_system``; ``mgsnode``, ``servicenode``, texts as they were given.
    """
    _before, separator, text = text.partition("Read previous values:")
    if not separator:
        return None
    text = text.partition("Permanent disk data:")[0]

    def value(name: str) -> str:
        match = re.search(rf"(?m)^{re.escape(name)}:[ \t]*(.*?)\s*$", text)
        return match[1] if match else ""

    label = value("Target")
    flags = re.search(r"\(([A-Za-z0-9_. ]*)\)", text)
    parameters = [one.partition("=") for one in value("Parameters").split()]
    kinds = [kind for kind in ("mgs", "mdt", "ost") if flags and kind.upper() in flags[1].split()]
    return {
        "name": re.sub("[:=](?=[A-Z]{3}[0-9a-f]{4}$)", "-", label),
        # mount_lustre.c, parse_ldd: `:` says that it was never registered
        "registered": not re.search(":[A-Z]{3}[0-9a-f]{4}$", label),
        "kinds": kinds,
        "file_system": value("Lustre FS"),
        "mgsnode": [one[2] for one in parameters if one[0] == "mgsnode"],
        "servicenode": [one[2] for one in parameters if one[0] in ("failover.node", "servicenode")],
    }
