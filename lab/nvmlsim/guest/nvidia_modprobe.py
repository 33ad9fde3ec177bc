#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake of nvidia-modprobe: makes the driver's device nodes. The real one also loads the kernel module
and is setuid root; this one does what its caller may do."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import devices

DEV = Path("/dev")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="nvidia-modprobe", description="Make device nodes of the NVIDIA driver."
    )
    parser.add_argument(
        "-f",
        dest="capability_files",
        metavar="FILE",
        action="append",
        default=[],
        type=Path,
        help="make the node that a file below /proc/driver/nvidia/capabilities asks for",
    )
    parser.add_argument(
        "-c",
        dest="minors",
        metavar="MINOR",
        action="append",
        default=[],
        type=int,
        help="make /dev/nvidia<MINOR>; 255 is /dev/nvidiactl",
    )
    parser.add_argument("-u", dest="unified_memory", action="store_true", help="make /dev/nvidia-uvm")
    options = parser.parse_args()
    try:
        devices.major("nvidia")
        for minor in options.minors:
            name = "nvidiactl" if minor == devices.CONTROL_MINOR else f"nvidia{minor}"
            devices.make_node(DEV / name, devices.GPU_MAJOR, minor, devices.NODE_MODE)
        if options.unified_memory:
            devices.make_node(DEV / "nvidia-uvm", devices.major("nvidia-uvm"), 0, devices.NODE_MODE)
        for capability in options.capability_files:
            devices.make_capability_node(DEV, capability)
    except (OSError, LookupError, ValueError) as error:
        sys.exit(f"nvidia-modprobe: {error}")


if __name__ == "__main__":
    main()
