# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine read for a health check: its GPUs, the kernel's log, the PCI bus, DCGM."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ..._cordon.io import folder
from ..._nvml.gpu import identified
from ..._nvml.io import guard, kernel_gpus, kernel_module
from ..baseline import Baseline
from ..finding import Settings
from ..kernel_log import Event, parse_journal
from ..machine import Machine
from . import child, dcgm

LOG_TIMEOUT = 30  # seconds
# The journal sets fields that begin with an underscore itself: users cannot write a message of the kernel
# (systemd.journal-fields(7), "Trusted Journal Fields").
JOURNAL = (
    "journalctl",
    "--boot",
    "--quiet",
    "--no-pager",
    "--output=json",
    "--output-fields=MESSAGE",
    "_TRANSPORT=kernel",
)
PCI_DEVICES = Path("/sys/bus/pci/devices")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NVIDIA = "0x10de"
# VGA and 3D controllers; PCI Code and ID Assignment Specification, class 03h
GPU_CLASSES = ("0x0300", "0x0302")


def read_machine(settings: Settings, before: Baseline, dcgm_diag_level: int = 0) -> Machine:
    """Read everything that a health check looks at.

    Args:
        before: what the last recorded run left; it is not asked again for what a process still waits for.
        dcgm_diag_level: level of the active diagnostic of DCGM, 0 for none.
    """
    boot_id = BOOT_ID.read_text(encoding="ascii").strip()
    hung = [one for one in before.of_boot(boot_id).hung if guard.is_stuck(one.process)]
    answer = child.read_gpus(settings.call_timeout, hung=hung)
    events, log_error = _events()
    return Machine(
        gpus=identified(answer.gpus, (), kernel_gpus.listed()),
        error=answer.error,
        hung_in=answer.hung_in,
        stuck=answer.stuck,
        driver_version=answer.driver_version,
        module_version=kernel_module.loaded().version,
        pci_gpus=_pci_gpus(PCI_DEVICES),
        events=events,
        log_error=log_error,
        dcgm=dcgm.ask(dcgm_diag_level),
        cordons=tuple(folder.read().values()),
        boot_id=boot_id,
        now=time.clock_gettime(time.CLOCK_BOOTTIME),
    )


def _events() -> tuple[list[Event] | None, str]:
    """Return the errors in the kernel's log of this boot, or None and why it could not be read.

    The reason is empty when there is no log to read: a container has none, and an ordinary user sees none.
    """
    try:
        done = subprocess.run(
            JOURNAL, capture_output=True, text=True, errors="replace", timeout=LOG_TIMEOUT, check=False
        )
    except OSError as error:
        return None, f"The kernel's log cannot be read, as journalctl cannot be run: {error.strerror}."
    except subprocess.TimeoutExpired:
        return None, f"The kernel's log cannot be read: journalctl did not end within {LOG_TIMEOUT} s."
    if done.returncode:
        return None, f"The kernel's log cannot be read: {done.stderr.strip() or 'journalctl failed'}."
    # Not splitlines(): users choose names in messages, and it cuts at characters that JSON keeps.
    lines = done.stdout.rstrip("\n").split("\n") if done.stdout else []
    return (list(parse_journal(lines)), "") if lines else (None, "")


def _pci_gpus(devices: Path) -> int:
    """Return how many GPUs of NVIDIA are on the PCI bus."""
    count = 0
    for device in devices.glob("*"):
        try:
            vendor, kind = (
                (device / name).read_text(encoding="ascii").strip() for name in ("vendor", "class")
            )
        except OSError:
            continue  # it was unplugged a moment ago
        count += vendor == NVIDIA and kind.startswith(GPU_CLASSES)
    return count
