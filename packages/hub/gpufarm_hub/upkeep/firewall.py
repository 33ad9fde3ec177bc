# SPDX-License-Identifier: GPL-3.0-or-later
"""The ports by which administrators come in, which a firewall must not close.

``python -m gpufarm_hub.upkeep.firewall`` prints them.
"""

from __future__ import annotations

import subprocess


def ssh_ports(sockets: str) -> list[int]:
    """Return the ports that SSH servers listen at or have connections at.

    Args:
        sockets: what ``ss --no-header --tcp --all --numeric --processes`` prints (ss(8)).

    Returns:
        Sorted. A port that systemd listens at for SSH is known by its connections, and a port that SSH only
        forwards is not one of them.
    """
    listening, ours = set(), set()
    for line in sockets.splitlines():
        state, _received, _sent, local, *_rest = line.split()
        address, _colon, text = local.rpartition(":")
        if not text.isdecimal():
            continue
        port = int(text)
        if state == "LISTEN" and not address.startswith(("127.", "[::1]")):
            listening.add(port)
        if '(("sshd' in line:
            ours.add(port)
    return sorted(listening & ours)


def main() -> None:
    """Run the program."""
    command = ["ss", "--no-header", "--tcp", "--all", "--numeric", "--processes"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(*ssh_ports(done.stdout))


if __name__ == "__main__":
    main()
