# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks configurations with HAProxy itself and reloads it.

The master process is asked by its own socket (HAProxy, "Management Guide", section 9.4): it starts a new
worker, hands it the sockets that listen, and lets the old one finish what it has begun.
"""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "/usr/sbin/haproxy"
MASTER = re.compile(r"^\d+\s+master\s+(\d+)(?:\s+\[failed: (\d+)\])?", re.MULTILINE)
LONGEST_ANSWER = 1 << 20  # bytes


class HaproxyError(Exception):
    """HAProxy says no; the text says why."""


@dataclass(frozen=True)
class Haproxy:
    """A HAProxy that runs, or will.

    Attributes:
        base: file of its configuration that never changes.
        socket: of its master process.
        program: the program.
        patience: seconds in which a new worker has to be ready.
    """

    base: Path
    socket: Path
    program: str = PROGRAM
    patience: float = 30

    def check(self, part: Path) -> None:
        """Have HAProxy read a configuration without using it.

        Args:
            part: file that goes with the base.

        Raises:
            HaproxyError: with HAProxy's first complaint.
        """
        done = subprocess.run(
            [self.program, "-c", "-q", "-f", str(self.base), "-f", str(part)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=False,
        )
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "[ALERT]" in line]
            raise HaproxyError(lines[0] if lines else f"it ends with status {done.returncode}")

    def ask(self, command: str) -> str:
        """Ask the master process.

        Args:
            command: a command of its command line interface.

        Returns:
            The answer.

        Raises:
            OSError: nobody listens.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(10)
            connection.connect(str(self.socket))
            connection.sendall(f"{command}\n".encode())
            # Otherwise it waits for the next command.
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while (part := connection.recv(65536)) and len(answer) < LONGEST_ANSWER:
                answer += part
        return answer.decode("utf-8", "replace")

    def _reloads(self) -> tuple[int, int]:
        """How often it was asked for a new worker, and how many of the last times it got none."""
        match = MASTER.search(self.ask("show proc"))
        if not match:
            raise HaproxyError("its master process does not tell of itself")
        return int(match[1]), int(match[2] or 0)

    def runs(self) -> bool:
        """Tell whether there is one that can be asked."""
        try:
            self._reloads()
        except (OSError, HaproxyError):
            return False
        return True

    def reload(self) -> None:
        """Have a new worker take over.

        Raises:
            HaproxyError: the new worker could not start; the old one goes on.
        """
        before, _failed = self._reloads()
        self.ask("reload")
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            time.sleep(0.05)
            try:
                now, failed = self._reloads()
            except (OSError, HaproxyError):
                continue  # the master process is replacing itself
            # It counts anew when it was started anew meanwhile.
            if now != before:
                if failed:
                    raise HaproxyError("its new worker could not start; its journal tells why")
                return
        raise HaproxyError(f"it has not taken the configuration over within {self.patience:.0f} seconds")


def taken(ports: Iterable[int]) -> list[int]:
    """Find ports on which another program of this machine listens.

    Args:
        ports: that HAProxy does not listen on yet.

    Returns:
        Those that cannot be listened on.
    """
    return [port for port in sorted(ports) if not _free(port)]


def _free(port: int) -> bool:
    dual = socket.has_dualstack_ipv6()
    family, address = (socket.AF_INET6, "::") if dual else (socket.AF_INET, "0.0.0.0")  # noqa: S104
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError:
            return False
    return True
