# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read Linux' tables of TCP sockets and control groups."""

from __future__ import annotations

# State of a listening socket (Linux, include/net/tcp_states.h, TCP_LISTEN).
LISTEN = "0A"


def parse_listeners(table: str) -> dict[int, set[int]]:
    """Return the inodes of listening sockets by port.

    Args:
        table: content of ``/proc/net/tcp`` or ``/proc/net/tcp6`` (proc(5)): a line of titles, then one socket
            per line, with local address and port in hexadecimal as the second field, state as the fourth,
            inode as the tenth.
    """
    found: dict[int, set[int]] = {}
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == LISTEN:
            found.setdefault(int(fields[1].rpartition(":")[2], 16), set()).add(int(fields[9]))
    return found


def parse_unit(cgroups: str) -> str:
    """Return the systemd unit of a process, empty when it belongs to none.

    Args:
        cgroups: content of ``/proc/PID/cgroup`` (cgroups(7)). systemd's own hierarchy is ``0::`` with version
            2 and ``name=systemd`` with version 1.
    """
    for line in cgroups.splitlines():
        _number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers in ("", "name=systemd"):
            for part in reversed(path.split("/")):
                if part.endswith((".service", ".scope")):
                    return part
    return ""
