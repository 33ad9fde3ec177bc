"""The GPUs and slices of a cluster that the form offers, from what Slurm 24.11 prints."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.slurm import offers
from gpufarm_hub.slurm.offers import OffersError, Partition
from gpufarm_hub.spawning.form import Offer
from hypothesis import given
from hypothesis import strategies as st

SINFO = "gpu*|4:00:00\nsmall|infinite\nlong|7-00:00:00\n"


def node(name: str, gres: str, used: str, state: tuple[str, ...] = ("IDLE",)) -> dict[str, Any]:
    return {
        "name": name,
        "address": "10.77.0.12",
        "partitions": ["gpu"],
        "active_features": ["notebooks"],
        "state": [*state],
        "gres": gres,
        "gres_used": used,
    }


# As two nodes were shown, one with a job, and a node without GPUs.
NODES = json.dumps(
    {
        "nodes": [
            node(
                "gpu1",
                "gpu:3g.40gb:1(S:0),gpu:1g.10gb:2(S:0)",
                "gpu:3g.40gb:1(IDX:0),gpu:1g.10gb:0(IDX:N/A)",
                ("MIXED",),
            ),
            node("gpu2", "gpu:a30:2(S:0)", "gpu:a30:0(IDX:N/A)"),
            node("cpu1", "", ""),
        ]
    }
)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("", Partition("gpu", 4)),
        ("small", Partition("small", 0)),
        ("long", Partition("long", 168)),
        ("g", None),
    ],
)
def test_the_partition_of_notebooks(wanted: str, expected: Partition | None) -> None:
    assert offers.read_partition(SINFO, wanted) == expected


def test_a_cluster_without_a_default_partition() -> None:
    assert offers.read_partition("small|1:00:00\n", "") is None


@given(days=st.integers(0, 400), seconds=st.integers(0, 86399))
def test_hours_of_a_time_limit(days: int, seconds: int) -> None:
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    limit = f"{days}-{clock}" if days else clock
    assert offers.hours(limit) == pytest.approx(24 * days + seconds / 3600)


def test_short_limits_and_words() -> None:
    assert offers.hours("30:00") == 0.5
    with pytest.raises(OffersError, match="'soon' as a time limit"):
        offers.hours("soon")


def test_each_type_is_offered_with_what_is_free() -> None:
    found, missing = offers.offers(offers.read_nodes(NODES))
    assert found == [
        Offer("1g.10gb", memory=10 << 30, free=2, total=2),
        Offer("3g.40gb", memory=40 << 30, free=0, total=1),
        Offer("a30", memory=0, free=2, total=2),
    ]
    assert missing == 0
    assert str(found[2]) == "a30: 2 of 2 free"


@pytest.mark.parametrize(
    "state", [["DOWN"], ["IDLE", "DRAIN"], ["DOWN", "NOT_RESPONDING"], ["MIXED", "DRAIN"]]
)
def test_what_is_on_a_node_that_gets_no_jobs_is_not_offered(state: list[str]) -> None:
    text = json.dumps({"nodes": [node("gpu1", "gpu:a30:2(S:0)", "gpu:a30:0(IDX:N/A)", tuple(state))]})
    assert offers.offers(offers.read_nodes(text)) == ([], 2)


def test_gpus_without_a_type_cannot_be_asked_for_and_are_not_offered() -> None:
    text = json.dumps({"nodes": [node("gpu1", "gpu:4(S:0)", "gpu:0(IDX:N/A)")]})
    assert offers.offers(offers.read_nodes(text)) == ([], 0)


@pytest.mark.parametrize("text", ["", "{}", '{"nodes": [{}]}', "[]", '{"nodes": 3}'])
def test_something_else_than_nodes(text: str) -> None:
    with pytest.raises(OffersError, match="no list of nodes"):
        offers.read_nodes(text)


@pytest.mark.parametrize(
    ("kind", "count", "held", "words"),
    [
        ("1g.10gb", 2, 0, ""),
        ("1g.10gb", 1, 1, ""),
        ("1g.10gb", 1, 2, "You may hold 2 GPU slices at once (limit course) and your other notebooks have 2"),
        ("1g.10gb", 3, 0, "No machine of the cluster has more than 2 of 1g.10gb"),
        ("7g.80gb", 1, 0, "There is no GPU slice 7g.80gb in the cluster"),
        ("1g.10gb:1 --uid=0", 1, 0, "There is no GPU slice 1g.10gb:1 --uid=0 in the cluster"),
    ],
)
def test_only_what_the_cluster_has_is_queued(kind: str, count: int, held: int, words: str) -> None:
    told = offers.refusal(offers.read_nodes(NODES), kind, count, held, Limit("course", slices=2))
    assert told.startswith(words) and bool(told) == bool(words)
