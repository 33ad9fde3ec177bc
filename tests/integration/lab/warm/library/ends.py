#!/usr/bin/python
"""A module that ends in the way that it is told."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import signal
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

ENDS = (
    "raises",
    "is killed",
    "is aborted",
    "says nothing",
    "says more",
    "closes descriptors",
    "leaves a file",
)


def main() -> None:
    module = AnsibleModule({"how": {"choices": ENDS}}, supports_check_mode=True)
    how = module.params["how"]
    if how == "raises":
        raise RuntimeError("the module raises")
    if how == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "is aborted":
        os.abort()
    if how == "says nothing":
        os._exit(7)
    if how == "says more":
        print("more than JSON", flush=True)
    if how == "closes descriptors":
        os.close(0)
        os.close(2)
        os.closerange(3, 200)
    if how == "leaves a file":
        # Closed, and so written, when Python ends and not before.
        global left
        left = Path("/root/left").open("w")  # noqa: SIM115
        left.write("written\n")
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
