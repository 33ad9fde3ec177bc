# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks that ended although nobody stopped them: why, and what their users can do. No I/O."""

from __future__ import annotations

import signal
import time

from gpufarm_hub.sharing import keeping

from .engine import Death

_PLAIN = {
    "restart": ("the machine was restarted", "start it again"),
    "time": ("its time was over", "start it again, and choose more hours if you need them"),
    "node": ("the machine that it ran on has failed", "start it again, which takes another machine"),
    "preempted": ("other work with a higher priority needed its place", "start it again"),
    "administrator": ("an administrator cancelled it", "ask why before you start it again"),
    "home": (
        "the machine that it began on could not write into your home",
        "look whether your home is full; if it is not, tell the administrator",
    ),
    "cancelled": ("its job was cancelled", "start it again, or ask the administrator why"),
}


def explain(death: Death, memory: int) -> str:
    """Return what the user is told.

    Args:
        death: how the notebook ended.
        memory: bytes that it could have.
    """
    why, then = _reason(death, _size(memory))
    return keeping.ended(why, time.time(), then)


def _reason(death: Death, memory: str) -> tuple[str, str]:
    more = "choose more memory when you start it again, or load less at once"
    if death.cause in _PLAIN:
        return _PLAIN[death.cause]
    if death.cause == "memory":
        return f"it needed more than its {memory} of memory", more
    if death.cause == "signal" and death.number == signal.SIGKILL:
        # Of a kill for want of memory systemd knows no more with control groups version 1.
        return f"it was killed, most likely because it needed more than its {memory} of memory", more
    again = "start it again, and tell the administrator if that happens once more"
    if death.cause == "signal":
        return f"JupyterLab crashed (signal {death.number})", again
    return f"JupyterLab ended with status {death.number}", again


def _size(memory: int) -> str:
    return f"{memory >> 20} MiB" if memory % 2**30 else f"{memory >> 30} GiB"
