"""Situations for the planner, and the verdict of brute force on its plans."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import Flavor, Item
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import Gpu, GpuError, Process
from mig_geometry import instance

from lab.mig_oracle import Layout, Oracle, Request


def situation(machine: Gpu, current: Layout, used: Layout) -> Gpu:
    """The GPU with partitions in some places, of which programs use some."""
    by_id = {profile.id: profile for profile in machine.profiles}
    made = []
    for number, (profile, start) in enumerate(sorted(current), start=1):
        placement = next(one for one in by_id[profile].placements if one.start == start)
        made.append(instance(by_id[profile], placement, number))
    processes = [
        Process(one.id, "x", one.id, 0) for one in made if (one.profile.id, one.placement.start) in used
    ]
    return replace(
        machine, mig_enabled=True, mig_pending=True, instances=tuple(made), processes=tuple(processes)
    )


def flavor(machine: Gpu, request: Request) -> Flavor:
    """A request of the oracle in the grammar of users."""
    names = {profile.id: profile.name for profile in machine.profiles}
    return Flavor("layout", tuple(Item(names[profile], count) for profile, count in request))


def compare(machine: Gpu, oracle: Oracle, current: Layout, used: Layout, request: Request) -> None:
    """Fail unless the plan for a request is as good as the best, or refused when there is none."""
    gpu = situation(machine, current, used)
    best = oracle.best(current, used, request)
    try:
        plan = plan_flavor(gpu, flavor(gpu, request))
    except GpuError as error:
        assert best is None, f"{error} {sorted(current)} {sorted(used)} {request}"
        assert "stop what uses it" in str(error)
        return
    layout = frozenset((slot.profile.id, slot.placement.start) for slot in plan.layout)
    assert layout in oracle.layouts and oracle.request(layout) == request
    assert used <= layout
    assert {(one.profile.id, one.placement.start) for one in plan.destroy} == current - layout
    assert {(slot.profile.id, slot.placement.start) for slot in plan.create} == layout - current
    assert (len(plan.destroy), oracle.room(layout)) == best
