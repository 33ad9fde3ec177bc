"""The memory of the health checks: what it makes of counters, and that its file is always whole."""

from __future__ import annotations

import math
import os
import signal
import time
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.baseline import (
    Baseline,
    Hang,
    dump,
    load,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import HealthError
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.io import store
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.files import replace_file
from hypothesis import given
from hypothesis import strategies as st

COUNTS = st.integers(min_value=0, max_value=2**53)


@given(COUNTS, COUNTS, st.floats(0, 1e6), st.floats(0, 1e6))
def test_growth_is_never_negative(before: int, after: int, start: float, end: float) -> None:
    baseline = Baseline("b", start, {"g": {"c": before}})
    growth = baseline.growth("g", "c", after)
    speed = baseline.per_minute("g", "c", after, end)
    assert growth is not None and speed is not None
    # A speed is a float, which may be the next one above a large number.
    assert 0 <= growth <= after and 0 <= speed <= math.nextafter(growth, math.inf)


@given(
    st.builds(
        Baseline,
        boot_id=st.text(),
        time=st.floats(0, 1e9),
        counters=st.dictionaries(st.text(), st.dictionaries(st.text(), COUNTS)),
        throttled=st.dictionaries(st.text(), COUNTS),
        acknowledged=COUNTS,
        drained=st.booleans(),
        hung=st.lists(st.builds(Hang, st.text(), st.text(), st.dictionaries(st.text(), COUNTS | st.text()))),
    )
)
def test_what_is_stored_comes_back(baseline: Baseline) -> None:
    assert load(dump(baseline)) == baseline


def test_a_boot_forgets_counters_and_keeps_the_drain() -> None:
    kept = Baseline("a", 5.0, {"g": {"c": 1}}, {"g": 2}, 7, True).of_boot("b")
    assert kept == Baseline("b", drained=True)


@pytest.mark.parametrize("text", ["", "{", "5", '{"counters": "many"}', '{"hung": [5]}'])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(HealthError, match="remove it to start anew"):
        store.read(tmp_path)


def test_a_file_of_another_version_is_read() -> None:
    assert load('{"drained": true, "of_the_future": 1}') == Baseline(drained=True)


def test_the_first_run_finds_nothing(tmp_path: Path) -> None:
    assert store.read(tmp_path) == Baseline()


def test_links_of_others_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".metrics.prom.new").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        replace_file(tmp_path / "metrics.prom", "x", 0o644)
    assert victim.read_text() == "precious"


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    store.write(Baseline(boot_id="first"), tmp_path)
    writer = os.fork()
    if writer == 0:
        while True:
            store.write(Baseline(boot_id="x" * 100000), tmp_path)
    while store.read(tmp_path).boot_id == "first":
        time.sleep(0.01)
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    assert store.read(tmp_path).boot_id == "x" * 100000
