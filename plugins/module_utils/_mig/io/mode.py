# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch the MIG mode of GPUs, and find out whether it is in force."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from ..._nvml.gpu import Gpu, GpuError
from ..._nvml.io.session import RESET_TIMEOUT, Nvml
from .services import Services

# Seconds for units that stop one after the other: systemd gives each 90 by itself (systemd-system.conf(5)).
STOP_TIMEOUT = 600.0


@dataclass(frozen=True)
class Pending:
    """A GPU whose MIG mode is set and takes effect only later, and why it was not reset at once."""

    gpu: Gpu
    why: str

    def __str__(self) -> str:
        """The state in a sentence with the next step."""
        return (
            f"MIG mode of {self.gpu} is set and takes effect after a reset, but {self.why}: reboot the"
            " machine and run again."
        )


def switch(nvml: Nvml, gpus: Iterable[Gpu], enabled: bool, services: Services) -> tuple[Pending, ...]:
    """Switch the mode of GPUs; services are stopped when a GPU is in use, and GPUs reset when they need it.

    Returns:
        the GPUs on which the mode is set and not in force.

    Raises:
        GpuError: when it can be set on one of them neither now nor later; those before it may be switched.
    """
    gpus = tuple(gpus)
    status = {gpu.uuid: _set(nvml, gpu, enabled) for gpu in gpus}
    held = [gpu for gpu in gpus if status[gpu.uuid] == "in use"]
    if held:
        nvml.report("systemctl stop", STOP_TIMEOUT)
    if held and services.stop():
        status.update({gpu.uuid: _set(nvml, gpu, enabled) for gpu in held})
    problems = [_problem(nvml, gpu, status[gpu.uuid], enabled) for gpu in gpus]
    if any(problems):
        raise GpuError(" ".join(filter(None, problems)))
    pending = []
    for gpu in gpus:
        why = _reset(nvml, gpu, enabled, services) if status[gpu.uuid] == "reset required" else ""
        if why:
            pending.append(Pending(gpu, why))
    return tuple(pending)


def reread(nvml: Nvml, gpu: Gpu) -> Gpu:
    """Return a GPU as it is now."""
    return nvml.survey().now(gpu)


def _set(nvml: Nvml, gpu: Gpu, enabled: bool) -> str:
    """Switch one GPU, and return `applied`, `in use`, `reset required` or other words of NVML."""
    status = nvml.set_mig_mode(gpu.uuid, enabled)
    if status == "in use":
        # The refusal must not take effect by surprise at the next reset.
        nvml.set_mig_mode(gpu.uuid, gpu.mig_enabled)
    if status == "applied" and reread(nvml, gpu).mig_enabled != enabled:
        return "reset required"
    return status


def _problem(nvml: Nvml, gpu: Gpu, status: str, enabled: bool) -> str:
    if status in ("applied", "reset required"):
        return ""
    problem = f"MIG mode of {gpu} cannot be switched {'on' if enabled else 'off'}"
    if status == "in use":
        users = ", ".join(str(process) for process in reread(nvml, gpu).processes)
        return (
            f"{problem}, as the GPU is used by {users or 'a program that NVML does not list'}: stop what"
            " holds it (monitoring, nvidia-persistenced, a display server), or name its units as"
            " stop_services, and run again."
        )
    return f"{problem}: NVML says '{status}'; reboot the machine and run again."


def _reset(nvml: Nvml, gpu: Gpu, enabled: bool, services: Services) -> str:
    """Reset one GPU so that its mode takes effect, and return why that did not work, if it did not."""
    if shutil.which("nvidia-smi") is None:
        return "nvidia-smi, which resets GPUs, is not installed"
    why = _try_reset(nvml, gpu, enabled)
    if why:
        nvml.report("systemctl stop", STOP_TIMEOUT)
    if why and services.stop():
        why = _try_reset(nvml, gpu, enabled)
    return why


def _try_reset(nvml: Nvml, gpu: Gpu, enabled: bool) -> str:
    command = ["nvidia-smi", "--gpu-reset", "-i", gpu.uuid]
    with nvml.released():
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=RESET_TIMEOUT)
        except subprocess.TimeoutExpired:
            return f"'nvidia-smi --gpu-reset' did not end within {RESET_TIMEOUT:g} s"
    if reread(nvml, gpu).mig_enabled == enabled:
        return ""
    said = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
    return f"'nvidia-smi --gpu-reset' did not do it ({said[0].rstrip('.')})"
