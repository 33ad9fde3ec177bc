"""The planner of partitions: what it does, what it refuses, and that no plan is better than its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import (
    Flavor,
    Item,
    parse_flavor,
    parse_layout,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import (
    Plan,
    layout_entries,
    plan_flavor,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import (
    Gpu,
    GpuError,
    Process,
)
from mig_geometry import gpu, instance, partitioned, profiles

A100 = "A100-80GB"


def plan(machine: Gpu, flavor: str) -> Plan:
    return plan_flavor(machine, parse_flavor(flavor))


def refusal(machine: Gpu, flavor: str) -> str:
    with pytest.raises(GpuError) as caught:
        plan(machine, flavor)
    return str(caught.value)


def places(todo: Plan) -> list[tuple[str, int]]:
    return [(slot.profile.name, slot.placement.start) for slot in todo.layout]


def words(todo: Plan) -> tuple[list[str], list[str]]:
    return [str(one) for one in todo.destroy], [str(one) for one in todo.create]


# what is done


@pytest.mark.parametrize(
    ("model", "flavor", "layout"),
    [
        (A100, "7x 1g.10gb MIG GPUs", [("1g.10gb", start) for start in range(7)]),
        (A100, "2x 3g.40gb MIG GPUs", [("3g.40gb", 0), ("3g.40gb", 4)]),
        (A100, "3x 2g.20gb MIG GPUs", [("2g.20gb", 0), ("2g.20gb", 2), ("2g.20gb", 4)]),
        # fails when the driver chooses the places in this order (MIG user guide, nvidia-smi mig -cgi)
        (
            A100,
            "2x 1g.10gb, 1x 2g.20gb, 1x 3g.40gb",
            [("2g.20gb", 0), ("1g.10gb", 2), ("1g.10gb", 3), ("3g.40gb", 4)],
        ),
        ("RTX-PRO-6000-BW-96GB", "1x 1g.24gb+me.all, 3x 1g.24gb-me", None),
        ("A30-24GB", "2x 1g.6gb, 1x 2g.12gb+me", None),
    ],
)
def test_an_empty_gpu_is_partitioned(model: str, flavor: str, layout: list[tuple[str, int]] | None) -> None:
    todo = plan(gpu(model), flavor)
    assert todo.destroy == () and todo.mode is None
    wanted = {item.profile: item.count for item in parse_flavor(flavor).items}
    assert Counter(slot.profile.name for slot in todo.create) == Counter(wanted)
    if layout is not None:
        assert places(todo) == layout


def test_what_is_right_stays() -> None:
    assert not plan(
        partitioned(A100, "3g.40gb at 4", "2g.20gb at 2", "2g.20gb at 0"), "1x 3g.40gb, 2x 2g.20gb"
    ).changed


def test_only_what_must_go_is_destroyed() -> None:
    machine = partitioned(A100, "1g.10gb at 6", "1g.10gb at 0", "3g.40gb at 4")
    machine = replace(machine, instances=machine.instances[1:])
    assert words(plan(machine, "2x 3g.40gb")) == (["1g.10gb at 0"], ["3g.40gb at 0"])


def test_used_partitions_stay_while_others_are_moved_around_them() -> None:
    machine = partitioned(A100, *(f"1g.10gb at {start}" for start in range(7)), used=("1g.10gb at 2",))
    destroyed, created = words(plan(machine, "1x 1g.10gb, 1x 3g.40gb"))
    assert "1g.10gb at 2" not in destroyed and len(destroyed) == 6
    assert created == ["3g.40gb at 4"]


def test_mig_mode_is_switched_on_first() -> None:
    todo = plan(gpu(mig_enabled=False, mig_pending=False), "2x 3g.40gb")
    assert todo.mode is True and len(todo.create) == 2


def test_mode_that_would_end_with_the_next_reset_is_switched_on_again() -> None:
    assert plan(gpu(mig_pending=False), "2x 3g.40gb").mode is True


def test_partitions_without_compute_instance_are_kept_and_filled() -> None:
    machine = partitioned(A100, "3g.40gb at 0", "3g.40gb at 4", hollow=("3g.40gb at 4",))
    todo = plan(machine, "2x 3g.40gb")
    assert (
        [str(one.instance) for one in todo.refit] == ["3g.40gb at 4"] and not todo.destroy and not todo.create
    )


def test_of_two_equal_partitions_the_one_that_is_usable_stays() -> None:
    machine = partitioned(A100, "3g.40gb at 0", "3g.40gb at 4", hollow=("3g.40gb at 0",))
    assert words(plan(machine, "1x 3g.40gb")) == (["3g.40gb at 0"], [])


def test_none_leaves_everything() -> None:
    machine = partitioned(A100, "3g.40gb at 0", hollow=("3g.40gb at 0",))
    assert not plan(machine, "None").changed
    assert places(plan(machine, "None")) == [("3g.40gb", 0)]


def test_disabled_takes_partitions_and_mode_away() -> None:
    todo = plan(partitioned(A100, "3g.40gb at 0"), "disabled")
    assert todo.mode is False and len(todo.destroy) == 1 and todo.layout == ()
    assert not plan(gpu(mig_enabled=False, mig_pending=False), "disabled").changed
    assert not plan(gpu("T4", mig_capable=False, mig_enabled=False, mig_pending=False), "disabled").changed


# what is refused


def test_a_profile_that_the_card_lacks_is_refused_with_those_it_has() -> None:
    assert refusal(gpu(), "2x 9g.90gb") == (
        "GPU 0 (A100-80GB, 0000:07:00.0) has no MIG profile 9g.90gb: it offers 1g.10gb (at most 7),"
        " 1g.10gb+me (at most 1), 1g.20gb (at most 4), 2g.20gb (at most 3), 3g.40gb (at most 2),"
        " 4g.40gb (at most 1), 7g.80gb (at most 1) with the driver that is loaded."
    )


def test_more_than_the_card_has_is_refused() -> None:
    assert (
        "cannot hold '2x 4g.40gb': the profile 4g.40gb fits on it at most 1x; '1x 4g.40gb' would fit"
        in refusal(gpu(), "2x 4g.40gb")
    )


def test_what_fits_one_by_one_but_not_together_is_refused_with_what_would_fit() -> None:
    assert "'1x 4g.40gb, 1x 3g.40gb' would fit" in refusal(gpu(), "1x 4g.40gb, 2x 3g.40gb")


def test_media_engines_are_a_budget() -> None:
    machine = gpu("RTX-PRO-6000-BW-96GB")
    assert "'1x 1g.24gb+me.all, 2x 1g.24gb-me' would fit" in refusal(
        machine, "1x 1g.24gb+me.all, 1x 1g.24gb, 2x 1g.24gb-me"
    )


def test_a_used_partition_that_the_layout_has_no_place_for_is_named_with_its_program() -> None:
    machine = partitioned(A100, "1g.10gb at 5", "1g.10gb at 6", used=("1g.10gb at 5",))
    assert refusal(machine, "2x 3g.40gb") == (
        "On GPU 0 (A100-80GB, 0000:07:00.0) the partition 1g.10gb at 5 is used by python3 (PID 1001), and"
        " '2x 3g.40gb' does not fit beside it: stop what uses it, or ask for '1x 1g.10gb, 1x 3g.40gb', which"
        " keeps it."
    )


def test_a_used_partition_in_the_way_of_another_is_named() -> None:
    machine = partitioned(A100, "1g.10gb at 1", "1g.10gb at 5", used=("1g.10gb at 1", "1g.10gb at 5"))
    assert "1g.10gb at 1, 1g.10gb at 5 are used by" in refusal(machine, "2x 1g.10gb, 1x 3g.40gb")


def test_disabling_a_gpu_in_use_is_refused() -> None:
    machine = partitioned(A100, "3g.40gb at 4", used=("3g.40gb at 4",))
    assert "3g.40gb at 4 is used by python3 (PID 1001) and MIG mode is to be switched off" in refusal(
        machine, "disabled"
    )


def test_a_used_partition_that_is_cut_up_is_refused() -> None:
    profile = next(one for one in profiles(A100) if one.name == "3g.40gb")
    cut = instance(profile, profile.placements[0], 1, (1, 2))
    machine = gpu(instances=(cut,), processes=(Process(7, "python3", 1, 0),))
    assert "not divided as '2x 3g.40gb' wants it" in refusal(machine, "2x 3g.40gb")


def test_mode_is_not_switched_under_a_program() -> None:
    machine = gpu(mig_enabled=False, mig_pending=False, processes=(Process(7, "python3", None, None),))
    assert "cannot be switched on while it is used by python3 (PID 7)" in refusal(machine, "2x 3g.40gb")
    machine = gpu(processes=(Process(7, "python3", None, None),))
    assert "cannot be switched off while it is used by python3 (PID 7)" in refusal(machine, "disabled")


def test_a_gpu_without_mig_is_refused() -> None:
    machine = gpu("T4", mig_capable=False, mig_enabled=False, mig_pending=False)
    assert "cannot be partitioned, so '2x 3g.40gb' cannot be had" in refusal(machine, "2x 3g.40gb")


def test_room_that_the_driver_denies_is_refused_before_anything_is_touched() -> None:
    none_left = tuple(replace(profile, remaining=0) for profile in profiles(A100))
    assert "reports less room than '1x 3g.40gb' needs" in refusal(gpu(profiles=none_left), "1x 3g.40gb")


# layouts with places, as a machine makes them again that has just started


def at(*places: tuple[str, int]) -> Flavor:
    return parse_layout([{"profile": name, "start": start} for name, start in places])


def test_a_layout_is_made_in_its_places() -> None:
    todo = plan_flavor(gpu(mig_enabled=False, mig_pending=False), at(("2g.20gb", 4), ("3g.40gb", 0)))
    assert todo.mode is True
    assert words(todo) == ([], ["3g.40gb at 0", "2g.20gb at 4"])


def test_a_layout_that_is_there_is_left() -> None:
    assert not plan_flavor(partitioned(A100, "2g.20gb at 4"), at(("2g.20gb", 4))).changed
    moved = plan_flavor(partitioned(A100, "2g.20gb at 4"), at(("2g.20gb", 0)))
    assert words(moved) == (["2g.20gb at 4"], ["2g.20gb at 0"])


def test_the_layout_of_a_plan_is_read_back_as_the_same() -> None:
    todo = plan(gpu(), "1x 3g.40gb, 1x 1c.2g.20gb, 1x 1g.10gb")
    again = plan_flavor(gpu(), parse_layout(layout_entries(todo)))
    assert again.layout == todo.layout


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (at(("2g.20gb", 6)), "no place for 2g.20gb at 6: it may start at 0, 2, 4"),
        (at(("9g.90gb", 0)), "no MIG profile 9g.90gb"),
        (at(("3g.40gb", 0), ("2g.20gb", 2)), "overlap however they are chosen; '1x 3g.40gb' would fit"),
    ],
)
def test_a_layout_that_the_card_cannot_have_is_refused(layout: Flavor, said: str) -> None:
    with pytest.raises(GpuError, match=said):
        plan_flavor(gpu(), layout)


def test_an_empty_layout_destroys_nothing_that_is_used() -> None:
    with pytest.raises(GpuError, match=r"used by python3 \(PID 1001\), and no partitions are wanted: stop"):
        plan_flavor(partitioned(A100, "2g.20gb at 4", used=("2g.20gb at 4",)), at())


def test_compute_instances_that_are_right_stay() -> None:
    profile = next(one for one in profiles(A100) if one.name == "3g.40gb")
    machine = gpu(instances=(instance(profile, profile.placements[0], 1, (1, 1, 1)),))
    todo = plan(machine, "2x 1c.3g.40gb")
    assert not todo.destroy and not todo.create
    assert [(len(one.change.destroy), one.change.create, one.compute) for one in todo.refit] == [
        (1, (), (1, 1))
    ]
    assert not plan(machine, "3x 1c.3g.40gb").changed
    # the GPU instance stays, although nothing in it does
    todo = plan(machine, "1x 3g.40gb")
    assert [(len(one.change.destroy), one.change.create) for one in todo.refit] == [(3, (3,))]


def test_of_two_places_the_one_is_taken_that_leaves_more_room() -> None:
    # 0 to 3 would leave no room for 4g.40gb, 4 to 7 does
    assert places(plan(gpu(), "1x 3g.40gb")) == [("3g.40gb", 4)]
    # where there is room for 2g.20gb at 4 besides
    assert places(plan(gpu(), "1x 1g.10gb")) == [("1g.10gb", 6)]
    assert places(plan(partitioned(A100, "3g.40gb at 4"), "1x 3g.40gb, 1x 1g.10gb")) == [
        ("1g.10gb", 0),
        ("3g.40gb", 4),
    ]


def test_a_layout_destroys_nothing_that_is_used() -> None:
    with pytest.raises(GpuError, match=r"used by python3 \(PID 1001\)"):
        plan_flavor(partitioned(A100, "2g.20gb at 4", used=("2g.20gb at 4",)), at(("3g.40gb", 4)))


# exactness


@pytest.mark.parametrize(
    ("model", "layouts"), [("A30-24GB", 20), (A100, 128), ("H100-80GB", 128), ("RTX-PRO-6000-BW-96GB", 115)]
)
def test_the_number_of_layouts_is_that_of_a_full_enumeration(model: str, layouts: int) -> None:
    """The counts come from a program of its own that enumerates all layouts of the published tables."""
    machine = gpu(model)
    names = [profile.name for profile in machine.profiles]
    possible = {(0,) * len(names)}
    frontier = possible
    while frontier:
        # A GPU that holds a layout holds every part of it, so layouts are grown one partition at a time.
        grown = {
            (*request[:place], request[place] + 1, *request[place + 1 :])
            for request in frontier
            for place in range(len(request))
        }
        frontier = {request for request in grown if can_have(machine, dict(zip(names, request, strict=True)))}
        possible = possible | frontier
    assert len(possible) == layouts


def can_have(machine: Gpu, request: dict[str, int]) -> bool:
    items = tuple(Item(name, count) for name, count in request.items() if count)
    try:
        plan_flavor(machine, Flavor("layout", items))
    except GpuError:
        return False
    return True
