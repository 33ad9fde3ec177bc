# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out plans on GPUs, and look afterwards whether the GPUs are as planned."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path

from ._gpu import Gpu, GpuError, GpuInstance
from ._mig_plan import Plan
from ._nvml import Nvml

CAPABILITIES = Path("/proc/driver/nvidia/capabilities")
CAPABILITY_NODES = Path("/dev/nvidia-caps")


def apply(nvml: Nvml, plans: Iterable[Plan]) -> tuple[Gpu, ...]:
    """Carry out the plans of several GPUs.

    :returns: all GPUs of the machine, as they are afterwards
    :raises GpuError: when something cannot be done, or a GPU is not as planned afterwards
    """
    plans = tuple(plans)
    _switch_mode(nvml, [plan for plan in plans if plan.mode is True], True)
    for plan in plans:
        _change_partitions(nvml, plan)
    _switch_mode(nvml, [plan for plan in plans if plan.mode is False], False)
    gpus = nvml.gpus()
    for plan in plans:
        _compare(plan, next(gpu for gpu in gpus if gpu.uuid == plan.gpu.uuid))
    make_nodes(gpus)
    return gpus


def missing_nodes(gpus: Iterable[Gpu]) -> tuple[Path, ...]:
    """Return the capability files whose device nodes are missing, of the partitions of some GPUs.

    Programs open these nodes to use a partition; the file names the node's minor number (MIG user guide,
    "Device Nodes and Capabilities"). Nothing is missing where nvidia-modprobe, which makes them, is missing.
    """
    if shutil.which("nvidia-modprobe") is None:
        return ()
    return tuple(file for file in _capability_files(gpus) if file.exists() and not _node(file).exists())


def make_nodes(gpus: Iterable[Gpu]) -> None:
    """Make the missing device nodes of the partitions of some GPUs, as the driver makes none by itself."""
    for file in missing_nodes(gpus):
        command = ["nvidia-modprobe", "-f", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not _node(file).exists():
            reason = done.stderr.strip() or "it gave no reason"
            raise GpuError(f"nvidia-modprobe made no device node for {file}: {reason}.")


def _capability_files(gpus: Iterable[Gpu]) -> Iterable[Path]:
    for gpu in gpus:
        for instance in gpu.instances:
            directory = CAPABILITIES / f"gpu{gpu.minor}" / "mig" / f"gi{instance.id}"
            yield directory / "access"
            for compute_instance in instance.compute_instances:
                yield directory / f"ci{compute_instance.id}" / "access"


def _node(capability_file: Path) -> Path:
    match = re.search(r"DeviceFileMinor:\s*([0-9]+)", capability_file.read_text(encoding="ascii"))
    if match is None:
        raise GpuError(f"{capability_file} names no device minor: report the version of this driver.")
    return CAPABILITY_NODES / f"nvidia-cap{match[1]}"


def _switch_mode(nvml: Nvml, plans: list[Plan], enabled: bool) -> None:
    """Switch the mode of all GPUs, then tell of those on which it is not in force."""
    problems = []
    for plan in plans:
        status = nvml.set_mig_mode(plan.gpu.uuid, enabled)
        gpu = _reread(nvml, plan.gpu)
        if status == "applied" and gpu.mig_enabled == enabled:
            continue
        if status == "in use":
            # The refusal must not take effect by surprise at the next reset.
            nvml.set_mig_mode(plan.gpu.uuid, gpu.mig_enabled)
        problems.append(_mode_problem(gpu, status, enabled))
    if problems:
        raise GpuError(" ".join(problems))


def _mode_problem(gpu: Gpu, status: str, enabled: bool) -> str:
    wish = f"MIG mode of {gpu} cannot be switched {'on' if enabled else 'off'} at once"
    if status == "in use":
        users = ", ".join(str(process) for process in gpu.processes)
        return (
            f"{wish}, as the GPU is used by {users or 'a program that NVML does not list'}: stop what holds"
            " it (monitoring, nvidia-persistenced, a display server) and run again."
        )
    if status == "reset required":
        return (
            f"{wish}, as the GPU must be reset, which a virtual machine cannot do for a GPU passed through to"
            " it: the mode is set for the next start, so reboot the machine and run again."
        )
    return f"{wish}: NVML says '{status}'; reboot the machine and run again."


def _change_partitions(nvml: Nvml, plan: Plan) -> None:
    """Destroy and create; when the driver refuses, put back what was there."""
    uuid = plan.gpu.uuid
    destroyed: list[GpuInstance] = []
    created: list[GpuInstance] = []
    try:
        for instance in plan.destroy:
            nvml.destroy(uuid, instance)
            destroyed.append(instance)
        for instance in plan.refit:
            nvml.refit(uuid, instance)
        for slot in plan.create:
            number = nvml.create(uuid, slot.profile, slot.placement)
            created.append(GpuInstance(number, slot.profile, slot.placement, ()))
    except GpuError as error:
        if not destroyed and not created:
            raise
        raise GpuError(f"{error} {_put_back(nvml, uuid, destroyed, created)}") from error


def _put_back(nvml: Nvml, uuid: str, destroyed: list[GpuInstance], created: list[GpuInstance]) -> str:
    try:
        for instance in created:
            nvml.destroy(uuid, instance)
        for instance in destroyed:
            nvml.create(uuid, instance.profile, instance.placement)
    except GpuError as error:
        return f"The former partitions could not be put back: {error} Run again when the cause is gone."
    return "The former partitions were put back: run again when the cause is gone."


def _compare(plan: Plan, gpu: Gpu) -> None:
    """Fail when a GPU is not as it was to become."""
    layout = sorted(((one.profile.name, one.placement.start) for one in gpu.instances), key=itemgetter(1))
    hollow = [str(one) for one in gpu.instances if not one.whole] if plan.changed else []
    if gpu.mig_enabled != plan.mig_enabled or tuple(layout) != plan.layout or hollow:
        found = ", ".join(str(one) for one in gpu.instances) or "no partition"
        raise GpuError(
            f"{gpu} is not as planned afterwards: MIG mode is {'on' if gpu.mig_enabled else 'off'}, there"
            f" is {found}. Look for another program that manages partitions, and run again."
        )


def _reread(nvml: Nvml, gpu: Gpu) -> Gpu:
    return next(one for one in nvml.gpus() if one.uuid == gpu.uuid)
