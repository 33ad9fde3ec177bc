"""Running a command inside a host through nsenter(1), also while the host shuts down."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from types import FrameType


def enter(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run nsenter and wait for its end.

    A host that shuts down stops all its processes before it kills them (broadcast_signal() in systemd's
    src/shared/killall.c). nsenter stops itself when its child is stopped (continue_as_child() in util-linux's
    sys-utils/nsenter.c); nobody would wake it, so it would never reap the child, and the host, whose process
    namespace the child belongs to, would never end.

    :param command: nsenter with its arguments.
    :param environment: the variables the command gets.
    :returns: the exit status, as a shell counts it: 128 and more tell of a signal.
    """
    process = subprocess.Popen(command, env=environment)

    def hand_on(number: int, _frame: FrameType | None) -> None:
        os.kill(process.pid, number)

    signal.signal(signal.SIGTERM, hand_on)
    signal.signal(signal.SIGINT, lambda *_: None)  # the terminal tells nsenter as well
    while True:
        _pid, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            process.returncode = code
            return code if code >= 0 else 128 - code
        os.kill(process.pid, signal.SIGCONT)
