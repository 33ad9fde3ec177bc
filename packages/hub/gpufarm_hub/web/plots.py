# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines over time as SVG. No I/O.

The lines are stretched to the width of the page; text stands beside them in HTML, so it keeps its size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

# Coordinates of the drawing, which the page stretches.
WIDTH, HEIGHT = 1000.0, 100.0
# More lines than that cannot be told apart; the highest are shown.
MOST_LINES = 8
# Colours on light and on dark pages, which people with any colour vision can tell apart (Okabe and Ito,
# "Color Universal Design", 2008) and see against the page (WCAG 2.2, 1.4.11), and dashes of SVG. No two lines
# of a plot have both in common, and the first lines have neither.
COLOURS = (("#0072b2", "#56b4e9"), ("#d55e00", "#e69f00"), ("#009e73", "#009e73"), ("#cc79a7", "#cc79a7"))
DASHES = ("none", "8 5", "1 5", "10 5 1 5")
# Distances of the times that are written below a plot, in seconds.
TIMES = (300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800)
MOST_TIMES = 4
# Least value at the top of a vertical axis.
LEAST = {"bytes": 2.0**20, "count": 1.0}


@dataclass(frozen=True)
class Plot:
    """Definition of a plot.

    Attributes:
        title: shown above it.
        unit: key of `UNITS`.
        query: PromQL.
        label: name of a line, with labels of its series in braces.
        empty: why there may be no lines at all; without words the plot is left out then.
    """

    title: str
    unit: str
    query: str
    label: str
    empty: str = "Nothing was measured."


@dataclass(frozen=True)
class Series:
    """Labels of a line and its points: seconds since the epoch, value."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """A line of a drawing.

    Attributes:
        name: shown in the legend.
        path: of SVG.
        colour, dash: indexes of `COLOURS` and `DASHES`.
        words: its value in words at each moment of the drawing; empty where nothing was measured.
    """

    name: str
    path: str
    colour: int
    dash: int
    words: list[str]


@dataclass(frozen=True)
class Mark:
    """Text at an axis and where it stands: per cent from the left or from the top."""

    text: str
    position: float


@dataclass(frozen=True)
class Drawing:
    """A plot, drawn.

    Attributes:
        title: of the plot.
        lines: the highest first.
        more: how many further lines are left out.
        values: marks of the vertical axis.
        times: marks of the horizontal axis.
        moments: the times that have a value, in words.
        empty: why there are no lines.
    """

    title: str
    lines: list[Line]
    more: int
    values: list[Mark]
    times: list[Mark]
    moments: list[str]
    empty: str


def draw(plot: Plot, series: Iterable[Series], start: float, end: float, step: float) -> Drawing:
    """Draw a plot.

    Args:
        plot: what it shows.
        series: the lines; those without a finite value are left out.
        start, end: the times that it spans, in seconds since the epoch.
        step: seconds between two points; where more are missing the line is broken.
    """
    finite = [
        Series(one.labels, [(when, value) for when, value in one.points if math.isfinite(value)])
        for one in series
    ]
    told = sorted(
        (one for one in finite if one.points),
        key=lambda one: (-max(value for _when, value in one.points), sorted(one.labels.items())),
    )
    shown = told[:MOST_LINES]
    highest = max((value for one in shown for _when, value in one.points), default=0.0)
    values = scale(highest, plot.unit)
    top = values[-1]
    several = len({one.labels.get("instance", "") for one in shown}) > 1
    lines = [
        Line(
            _name(plot.label, one.labels, several),
            _path(one.points, start, end, step, top),
            number % len(COLOURS),
            (number + number // len(COLOURS)) % len(DASHES),
            _words(one.points, plot.unit, start, end, step, top),
        )
        for number, one in enumerate(shown)
    ]
    return Drawing(
        plot.title,
        lines,
        len(told) - len(shown),
        [Mark(in_words(value, plot.unit, top), round(100 - 100 * value / top, 2)) for value in values],
        times(start, end),
        [_clock(start + number * step, end - start) for number in range(_count(start, end, step))],
        plot.empty,
    )


def scale(highest: float, unit: str) -> list[float]:
    """Return three to five round values from 0 to at least the highest one."""
    if unit == "ratio":
        return [0.0, 0.25, 0.5, 0.75, 1.0]
    highest, base = max(highest, LEAST.get(unit, 1e-3)), 1.0
    if unit == "bytes":
        while highest > 1000 * base:
            base *= 1024
    wanted = highest / base / 4
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= wanted * (1 - 1e-9))
    if unit == "count":
        step = max(1.0, math.ceil(step))
    count = max(2, math.ceil(highest / base / step - 1e-9))
    return [base * step * number for number in range(count + 1)]


def times(start: float, end: float) -> list[Mark]:
    """Return marks at round times of UTC."""
    step = next((one for one in TIMES if (end - start) / one <= MOST_TIMES), TIMES[-1])
    form = "%H:%M" if step < 86400 else "%d %b"
    first = math.ceil(start / step) * step
    marks = []
    for number in range(int((end - first) // step) + 1):
        when = first + number * step
        text = datetime.fromtimestamp(when, UTC).strftime(form)
        marks.append(Mark(text, round(100 * (when - start) / (end - start), 2)))
    return marks


def in_words(value: float, unit: str, top: float) -> str:
    """Return a value with its unit.

    Args:
        value: in the unit itself: a ratio of 1 is 100 %.
        unit: key of `UNITS`.
        top: the highest value of the axis, which decides on prefixes.
    """
    if unit == "ratio":
        return f"{_short(100 * value)} %"
    if unit == "bytes":
        power = min(4, int(math.log(top, 1024) + 1e-9)) if top >= 1 else 0
        return f"{_short(value / 1024**power)} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
    if unit == "seconds":
        for length, name in ((3600, "h"), (60, "min")):
            if top >= 2 * length:
                return f"{_short(value / length)} {name}"
    return f"{_short(value)}{UNITS[unit]}"


UNITS = {"count": "", "ratio": " %", "bytes": " B", "celsius": " °C", "watts": " W", "seconds": " s"}


def _short(value: float) -> str:
    """Return a number with as few digits as are worth reading."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _name(label: str, labels: Mapping[str, str], several: bool) -> str:
    name = label
    for key, value in labels.items():
        name = name.replace(f"{{{key}}}", value)
    return f"{labels.get('instance', '')}: {name}" if several else name


def _path(points: Sequence[tuple[float, float]], start: float, end: float, step: float, top: float) -> str:
    """Return the path of a line, which is broken where points are missing."""
    words = []
    before = -math.inf
    for when, value in points:
        x, y = WIDTH * (when - start) / (end - start), HEIGHT * (1 - value / top)
        gap = when - before > 1.5 * step
        words.append(f"{'M' if gap else 'L'}{x:.1f} {y:.2f}")
        if gap:  # a point without neighbours is seen as well
            words.append("h0.1")
        before = when
    return "".join(words)


def _count(start: float, end: float, step: float) -> int:
    """Return the number of moments between two times, these included."""
    return round((end - start) / step) + 1


def _clock(when: float, span: float) -> str:
    form = "%H:%M:%S" if span < 86400 else "%d %b %H:%M"
    return datetime.fromtimestamp(when, UTC).strftime(form)


def _words(
    points: Sequence[tuple[float, float]], unit: str, start: float, end: float, step: float, top: float
) -> list[str]:
    """Return the values of a line in words, one for each moment."""
    words = [""] * _count(start, end, step)
    for when, value in points:
        words[round((when - start) / step)] = in_words(value, unit, top)
    return words
