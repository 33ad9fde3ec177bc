"""The checks of the load test find what they look for."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math

import pytest

from lab.hub_check import buckets, overtaken, quantile, shared


def events(*words: str) -> list[dict[str, str]]:
    return [dict(zip(("event", "user"), word.split(), strict=True)) for word in words]


def test_a_slice_in_two_hands_is_found() -> None:
    sample = {
        "leases": {"alice/": {"slices": [{"uuid": "A"}]}, "bob/": {"slices": [{"uuid": "A"}]}},
        "units": {
            "alice": "/dev/nvidia0 rw /dev/nvidia-caps/nvidia-cap12 r",
            "bob": "/dev/nvidia0 rw /dev/nvidia-caps/nvidia-cap12 r /dev/nvidia-caps/nvidia-cap13 r",
        },
    }
    assert shared(sample) == [
        "A is leased 2 times",
        "/dev/nvidia-caps/nvidia-cap12 is open to 2 notebooks",
    ]
    assert shared({"leases": {}, "units": {"alice": "/dev/nvidia-caps/nvidia-cap12 r"}}) == []


def test_who_is_called_may_take_in_any_order() -> None:
    story = ["taken a", "taken b", "waiting c", "waiting d", "returned a", "returned b", "taken d", "taken c"]
    assert overtaken(events(*story), total=2) == []


def test_who_overtakes_is_found() -> None:
    story = ["taken a", "waiting b", "waiting c", "returned a", "taken c"]
    assert overtaken(events(*story), total=1) == ["c got a slice when 1 were in front and 1 slices free"]
    story = ["taken a", "waiting b", "waiting c", "returned a", "taken b", "returned b", "taken d"]
    assert overtaken(events(*story), total=1) == ["d came later than 1 who wait, and got a slice"]


def test_who_is_called_and_does_not_come_is_in_front_of_nobody() -> None:
    story = ["taken a", "waiting h", "waiting b", "returned a", "missed h", "waiting h", "taken b"]
    assert overtaken(events(*story), total=1) == []
    story = ["taken a", "waiting h", "waiting b", "returned a", "taken b"]
    assert overtaken(events(*story), total=1) == ["b got a slice when 1 were in front and 1 slices free"]


def test_histograms_are_read_as_prometheus_does() -> None:
    text = """
h_bucket{le="0.1",step="a"} 8.0
h_bucket{le="0.2",step="a"} 10.0
h_bucket{le="+Inf",step="a"} 10.0
h_bucket{le="0.1",step="b"} 0.0
h_bucket{le="0.2",step="b"} 10.0
h_bucket{le="+Inf",step="b"} 10.0
other_bucket{le="0.1"} 99.0
"""
    counts = buckets(text, "h")
    assert counts == {0.1: 8, 0.2: 20, math.inf: 20}
    assert quantile(0.2, counts) == pytest.approx(0.05)
    assert quantile(0.7, counts) == pytest.approx(0.15)
    assert quantile(0.99, {0.1: 1, math.inf: 10}) == 0.1
