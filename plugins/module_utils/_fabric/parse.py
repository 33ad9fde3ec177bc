# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values in the texts of the kernel and of programs about RDMA adapters. No I/O.

Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

# Counters that grow when something is wrong with a link or its use. The rest of them count data.
_ERRORS = re.compile(r".*(err|error|errors|discards|downed|dropped|retrans|out_of_sequence|out_of_buffer)")


def state(text: str) -> str:
    """Return the word of a state such as ``4: ACTIVE``; the text without a number as it is."""
    return text.partition(":")[2].strip() or text.strip()


def rate(text: str) -> float:
    """Return Gbit/s of a rate such as ``100 Gb/sec (4X EDR)``; 0 if it tells none."""
    found = re.match(r"\s*(\d+(?:\.\d+)?) Gb/sec", text)
    return float(found[1]) if found else 0.0


def errors(counters: Mapping[str, str]) -> dict[str, int]:
    """Return the counters of errors that are not 0, by name, out of the texts of all counters."""
    return {
        name: int(text)
        for name, text in sorted(counters.items())
        if _ERRORS.fullmatch(name) and text.isascii() and text.isdecimal() and int(text)
    }


def addresses(links: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the addresses of each interface by its name, with the lengths of their prefixes.

    Args:
        links: what `ip -json -4 address show` prints (ip-address(8)).
    """
    return {
        link["ifname"]: [
            f"{entry['local']}/{entry['prefixlen']}" for entry in link["addr_info"] if "local" in entry
        ]
        for link in links
        if "ifname" in link  # it prints empty ones for interfaces without an address
    }


def transports(printed: str) -> dict[str, list[str]]:
    """Return the devices of each transport of UCX, out of what `ucx_info -d` prints."""
    found: dict[str, list[str]] = {}
    transport = ""
    for line in printed.splitlines():
        words = line.strip("# \t").split()
        if words[:1] == ["Transport:"] and len(words) == 2:
            transport = words[1]
        elif words[:1] == ["Device:"] and len(words) == 2 and transport:
            found.setdefault(transport, []).append(words[1])
    return found
