# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out plans on GPUs as one transaction, and look afterwards whether the GPUs are as planned.

Nothing is written down for the case that the process is killed: what is there then is the start of the next
run, whose plan leads from it to the same goal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._nvml.gpu import ComputeProfile, Gpu, GpuError, GpuInstance, Placement, Survey
from ..._nvml.io.session import Nvml
from .. import compute as mig_compute
from ..flavor import compute_words
from ..plan import Plan
from .mode import Pending, reread, switch
from .nodes import make_nodes
from .services import Services


@dataclass(frozen=True)
class Outcome:
    """GPUs that can be read after a change, whether they differ, and whose mode takes effect later."""

    gpus: tuple[Gpu, ...]
    changed: bool
    pending: tuple[Pending, ...]


def partly(gpus: Iterable[Gpu]) -> str:
    """Return in a sentence what a change leaves when a call of it does not return."""
    return f"The partitions of {'; '.join(map(str, gpus))} may be changed in part."


def apply(nvml: Nvml, plans: Iterable[Plan], services: Services | None = None) -> Outcome:
    """Carry out the plans of several GPUs.

    When something cannot be done, what was done on all of them is undone as far as the driver allows.

    Args:
        services: what may be stopped while the mode is switched; the caller brings it back.

    Raises:
        GpuError: when something cannot be done, or a GPU is not as planned afterwards.
    """
    plans = tuple(plans)
    services = services or Services()
    try:
        switched_on = [plan.gpu for plan in plans if plan.mode is True]
        pending = switch(nvml, switched_on, True, services)
        later = {one.gpu.uuid for one in pending}
        for plan in plans:
            if plan.gpu.uuid not in later:
                _change_partitions(nvml, plan)
        switched_off = [plan.gpu for plan in plans if plan.mode is False]
        pending += switch(nvml, switched_off, False, services)
    except GpuError as error:
        raise GpuError(f"{error}{_put_back(nvml, plans)}") from error
    survey = nvml.survey()
    later = {one.gpu.uuid for one in pending}
    for plan in plans:
        if plan.gpu.uuid not in later:
            _compare(plan, survey.now(plan.gpu))
    make_nodes(survey.gpus)
    changed = any(_state(survey.now(plan.gpu)) != _state(plan.gpu) for plan in plans)
    return Outcome(survey.gpus, changed, pending)


def _change_partitions(nvml: Nvml, plan: Plan) -> None:
    uuid = plan.gpu.uuid
    for instance in plan.destroy:
        _destroy(nvml, uuid, instance)
    for refit in plan.refit:
        for gone in refit.change.destroy:
            nvml.destroy_compute_instance(uuid, refit.instance, gone)
        kept = [one for one in refit.instance.compute_instances if one not in refit.change.destroy]
        taken = [Placement(one.start, one.slices) for one in kept]
        _divide(nvml, plan.gpu, refit.instance, taken, refit.change.create)
    for slot in plan.create:
        instance = nvml.create_gpu_instance(uuid, slot.profile, slot.placement)
        _divide(nvml, plan.gpu, instance, [], slot.compute)


def _destroy(nvml: Nvml, uuid: str, instance: GpuInstance) -> None:
    for one in instance.compute_instances:
        nvml.destroy_compute_instance(uuid, instance, one)
    nvml.destroy_gpu_instance(uuid, instance)


def _divide(
    nvml: Nvml, gpu: Gpu, instance: GpuInstance, taken: list[Placement], widths: tuple[int, ...]
) -> None:
    places = mig_compute.place(nvml.compute_profiles(gpu.uuid, instance), taken, widths)
    if places is None:
        raise GpuError(
            f"The driver of {gpu} offers no places in {instance} for the compute instances"
            f" {compute_words(widths)}: ask for others, or update the driver."
        )
    for profile, placement in places:
        nvml.create_compute_instance(gpu.uuid, instance, profile, placement)


def _put_back(nvml: Nvml, plans: tuple[Plan, ...]) -> str:
    """Undo the plans as far as possible, and return what a user is to know of it, after a blank."""
    try:
        survey = nvml.survey()
        if not any(_left(survey, plan.gpu) for plan in plans):
            return " Nothing was changed."
        former = {plan.gpu.uuid: plan for plan in plans}
        for gpu in survey.gpus:
            if gpu.uuid in former and _left(survey, former[gpu.uuid].gpu):
                _undo(nvml, former[gpu.uuid], gpu)
        survey = nvml.survey()
    except GpuError as error:
        return f" The former partitions could not be put back: {error} Run again when the cause is gone."
    left = "; ".join(filter(None, (_left(survey, plan.gpu) for plan in plans)))
    if not left:
        return " The former partitions were put back: run again when the cause is gone."
    return f" The former partitions could not all be put back: {left}. Run again when the cause is gone."


def _left(survey: Survey, gpu: Gpu) -> str:
    """Return what a GPU is instead of what it was; empty if it is the same."""
    try:
        now = survey.now(gpu)
    except GpuError as error:
        return str(error).rstrip(".")
    return "" if _state(now) == _state(gpu) else _words(now)


def _undo(nvml: Nvml, plan: Plan, now: Gpu) -> None:
    """Lead a GPU back to what it was; steps that the driver refuses are left out."""
    before, uuid = plan.gpu, plan.gpu.uuid
    if before.mig_enabled and not now.mig_enabled:
        with contextlib.suppress(GpuError):
            nvml.set_mig_mode(uuid, True)
            now = reread(nvml, before)
    former = {(one.profile.id, one.placement) for one in before.instances}
    created = {(slot.profile.id, slot.placement) for slot in plan.create} - former
    there = {(one.profile.id, one.placement): one for one in now.instances}
    for place, instance in there.items():
        if place in created:
            with contextlib.suppress(GpuError):
                _destroy(nvml, uuid, instance)
    for instance in before.instances:
        with contextlib.suppress(GpuError):
            found = there.get((instance.profile.id, instance.placement))
            if found is None:
                found = nvml.create_gpu_instance(uuid, instance.profile, instance.placement)
            _undo_compute(nvml, uuid, instance, found)
    if now.mig_enabled != before.mig_enabled or now.mig_pending != before.mig_pending:
        with contextlib.suppress(GpuError):
            nvml.set_mig_mode(uuid, before.mig_enabled)


def _undo_compute(nvml: Nvml, uuid: str, before: GpuInstance, now: GpuInstance) -> None:
    former = {(one.profile_id, one.start) for one in before.compute_instances}
    there = {(one.profile_id, one.start) for one in now.compute_instances}
    for one in now.compute_instances:
        if (one.profile_id, one.start) not in former:
            nvml.destroy_compute_instance(uuid, now, one)
    for one in before.compute_instances:
        if (one.profile_id, one.start) not in there:
            placement = Placement(one.start, one.slices)
            profile = ComputeProfile(one.profile_id, one.slices, (placement,))
            nvml.create_compute_instance(uuid, now, profile, placement)


def _compare(plan: Plan, gpu: Gpu) -> None:
    """Fail when a GPU is not as it was to become."""
    if not plan.changed:
        return
    found = sorted((one.profile.id, one.placement, one.widths) for one in gpu.instances)
    wanted = sorted((slot.profile.id, slot.placement, slot.compute) for slot in plan.layout)
    if gpu.mig_enabled != plan.mig_enabled or found != wanted:
        raise GpuError(
            f"{_words(gpu)}, which is not as planned: look for another program that manages partitions, and"
            " run again."
        )


def _state(gpu: Gpu) -> Any:
    """Return what a change can change of a GPU; ids and UUIDs are the driver's choice."""
    instances = [
        (
            one.profile.id,
            one.placement,
            sorted((compute.profile_id, compute.start) for compute in one.compute_instances),
        )
        for one in gpu.instances
    ]
    return gpu.mig_enabled, gpu.mig_pending, sorted(instances)


def _words(gpu: Gpu) -> str:
    found = ", ".join(str(one) for one in gpu.instances) or "no partition"
    return f"{gpu} has MIG mode {'on' if gpu.mig_enabled else 'off'} and {found}"
