#!/usr/bin/env python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let namespaces that are made from now on have higher numbers than those that are there.

Linux 6.18 gives each processor its numbers of namespaces in batches, so a later namespace can have a lower
number. A mount namespace can be kept by a mount only inside of one with a lower number (mnt_ns_loop in
fs/namespace.c), so on a host of the bench, whose own namespace is not the first of the kernel, Slurm would
fail to keep those of jobs, depending on the processor. This uses up the batch of each processor. It is run
once after each boot, as root, with Python 3.12 or later.
"""

from __future__ import annotations

import os

# COOKIE_LOCAL_BATCH in include/linux/cookie.h of Linux.
BATCH = 4096


def use_up(processor: int) -> None:
    """Make as many namespaces on a processor as it has numbers left at most."""
    os.sched_setaffinity(0, {processor})
    for _number in range(BATCH + 1):
        os.unshare(os.CLONE_NEWUTS)  # type: ignore[attr-defined]  # the bench itself has Python 3.11


for processor in os.sched_getaffinity(0):
    child = os.fork()
    if not child:
        use_up(processor)
        os._exit(0)
    os.waitpid(child, 0)
