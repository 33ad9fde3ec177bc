"""Plots: round marks, lines within the frame, gaps where nothing was measured, values with units."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from gpufarm_hub.web.plots import (
    COLOURS,
    HEIGHT,
    MOST_LINES,
    UNITS,
    WIDTH,
    Plot,
    Series,
    draw,
    in_words,
    scale,
    times,
)
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[3]
PLOT = Plot("Memory", "bytes", "memory", "{user}")
START, END, STEP = 0.0, 3600.0, 30.0


@given(st.floats(0, 1e15), st.sampled_from(sorted(set(UNITS) - {"ratio"})))
def test_marks_are_few_and_hold_the_highest_value(highest: float, unit: str) -> None:
    marks = scale(highest, unit)
    assert marks[0] == 0 and 3 <= len(marks) <= 6
    assert marks[-1] >= highest * (1 - 1e-6)
    assert marks == sorted(set(marks))
    assert unit != "count" or all(mark.is_integer() for mark in marks)


@given(st.floats(0, 2**44))
def test_marks_of_bytes_are_short(highest: float) -> None:
    marks = scale(highest, "bytes")
    words = [in_words(mark, "bytes", marks[-1]) for mark in marks]
    assert all(re.fullmatch(r"(\d{1,4}|\d{0,2}\.\d{1,2}) [KMGT]iB", one) for one in words), words


@given(st.integers(1, 400), st.integers(0, 2_000_000_000))
def test_times_are_few_and_within_the_plot(minutes: int, start: int) -> None:
    marks = times(start, start + 60 * minutes)
    assert len(marks) <= 5
    assert all(0 <= mark.position <= 100 for mark in marks)


def test_times_are_as_many_as_fit() -> None:
    assert [mark.position for mark in times(0, 1200)] == [0, 25, 50, 75, 100]


@given(
    st.lists(st.tuples(st.integers(0, 120), st.floats(0, 1e12)), max_size=50, unique_by=lambda one: one[0])
)
def test_lines_stay_in_the_frame(points: list[tuple[int, float]]) -> None:
    series = Series({"user": "alice"}, [(STEP * number, value) for number, value in sorted(points)])
    drawing = draw(PLOT, [series], START, END, STEP)
    assert len(drawing.lines) == bool(points)
    for line in drawing.lines:
        for x, y in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", line.path):
            assert 0 <= float(x) <= WIDTH and -0.01 <= float(y) <= HEIGHT + 0.01


def test_a_line_is_broken_where_nothing_was_measured() -> None:
    path = (
        draw(PLOT, [Series({"user": "a"}, [(0, 1), (30, 1), (300, 1), (330, 1)])], START, END, STEP)
        .lines[0]
        .path
    )
    assert [word[0] for word in re.findall(r"[MLh]", path)] == ["M", "h", "L", "M", "h", "L"]


def test_who_has_left_has_no_value_any_more() -> None:
    here = Series({"user": "alice"}, [(END - STEP, 1024.0**3), (END, 2 * 1024.0**3)])
    gone = Series({"user": "bob"}, [(60, 3 * 1024.0**3), (90, float("nan"))])
    drawing = draw(PLOT, [here, gone], START, END, STEP)
    assert [(line.name, line.words[-1]) for line in drawing.lines] == [("bob", ""), ("alice", "2 GiB")]
    assert [mark.text for mark in drawing.values] == ["0 GiB", "1 GiB", "2 GiB", "3 GiB"]


def test_too_many_lines_are_counted_instead() -> None:
    series = [Series({"user": f"u{number}"}, [(END, float(number + 1))]) for number in range(MOST_LINES + 3)]
    drawing = draw(PLOT, series, START, END, STEP)
    assert (len(drawing.lines), drawing.more) == (MOST_LINES, 3)
    assert drawing.lines[0].name == f"u{MOST_LINES + 2}"


def test_each_moment_has_its_values() -> None:
    series = [Series({"user": "alice"}, [(60, 1024.0**3), (END, 2 * 1024.0**3)])]
    drawing = draw(PLOT, series, START, END, STEP)
    words = dict(zip(drawing.moments, drawing.lines[0].words, strict=True))
    assert len(words) == 121
    assert {moment: told for moment, told in words.items() if told} == {
        "00:01:00": "1 GiB",
        "01:00:00": "2 GiB",
    }


def test_moments_of_more_than_a_day_have_a_date() -> None:
    drawing = draw(PLOT, [Series({"user": "alice"}, [(0, 1.0)])], 0, 604800, 3600)
    assert (drawing.moments[0], drawing.moments[-1]) == ("01 Jan 00:00", "08 Jan 00:00")


def test_no_two_lines_look_the_same() -> None:
    series = [Series({"user": f"u{number}"}, [(END, 1.0)]) for number in range(MOST_LINES)]
    lines = draw(PLOT, series, START, END, STEP).lines
    assert len({(line.colour, line.dash) for line in lines}) == MOST_LINES
    first = lines[: len(COLOURS)]
    assert len({line.colour for line in first}) == len({line.dash for line in first}) == len(first)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.2, definitions)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colours", COLOURS)
def test_lines_are_seen_on_light_and_dark_pages(colours: tuple[str, str]) -> None:
    # Bootstrap 5.3, --bs-body-bg of both colour modes; WCAG 2.2, 1.4.11.
    for colour, background in zip(colours, ("#ffffff", "#212529"), strict=True):
        dark, light = sorted((luminance(colour), luminance(background)))
        assert (light + 0.05) / (dark + 0.05) >= 3


def test_lines_of_several_machines_tell_which() -> None:
    series = [Series({"user": "a", "instance": name}, [(END, 1.0)]) for name in ("gpu1", "gpu2")]
    assert [line.name for line in draw(PLOT, series, START, END, STEP).lines] == ["gpu1: a", "gpu2: a"]


def test_nothing_is_an_empty_plot_that_says_why() -> None:
    plot = Plot("Utilization", "ratio", "utilization", "{gpu}", empty="It is not reported.")
    drawing = draw(plot, [Series({"gpu": "0"}, [(0, float("nan"))])], START, END, STEP)
    assert (drawing.lines, drawing.empty) == ([], "It is not reported.")


@pytest.mark.parametrize(
    ("value", "unit", "top", "words"),
    [
        (0.256, "ratio", 1, "25.6 %"),
        (3, "count", 4, "3"),
        (95, "celsius", 100, "95 °C"),
        (399.6, "watts", 400, "400 W"),
        (90, "seconds", 240, "1.5 min"),
        (29.2, "seconds", 30, "29.2 s"),
        (7200, "seconds", 10000, "2 h"),
        (512, "bytes", 1000, "512 B"),
    ],
)
def test_values_have_units(value: float, unit: str, top: float, words: str) -> None:
    assert in_words(value, unit, top) == words


def test_the_role_plots_what_can_be_drawn() -> None:
    plots = [Plot(**one) for one in yaml.safe_load((ROOT / "roles/monitoring/files/plots.yml").read_text())]
    assert {plot.unit for plot in plots} <= set(UNITS)
    assert len({plot.title for plot in plots}) == len(plots)
