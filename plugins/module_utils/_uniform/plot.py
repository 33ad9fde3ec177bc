# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of benchmarks as bars, one for each machine, on a page without scripts. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from html import escape
from statistics import median

from .compare import Value

SECTION = "benchmark."
# Pixels: of the longest bar, of a row, and of the space for a name and for a number.
LENGTH, ROW, NAME, NUMBER = 480, 22, 180, 90

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Results of benchmarks</title>
<style>
:root {{ color-scheme: light dark; font-family: sans-serif }}
body {{ max-width: 60rem; margin: 1rem auto; padding: 0 1rem }}
svg {{ width: 100%; max-width: {width}px; height: auto }}
text {{ font-size: 13px; fill: CanvasText }}
.bar {{ fill: #3b78b5 }}
.odd {{ fill: #c4520a }}
.usual {{ stroke: CanvasText; stroke-dasharray: 4 3 }}
</style>
</head>
<body>
<h1>Results of benchmarks</h1>
<p>The dashed line is the median of all machines. Machines that are unlike most of their group have a ◆.</p>
{charts}
</body>
</html>
"""


def page(
    machines: Mapping[str, Mapping[str, Value]], odd: Mapping[str, Collection[str]], names: Collection[str]
) -> str:
    """Return the page.

    Args:
        machines: the properties of each machine.
        odd: machines that are unlike most, by the name of the property.
        names: the properties that are shown, which are numbers.
    """
    charts = [_chart(name, machines, odd.get(name, ())) for name in sorted(names)]
    return _PAGE.format(width=NAME + LENGTH + NUMBER, charts="\n".join(charts))


def shown(machines: Mapping[str, Mapping[str, Value]]) -> set[str]:
    """Return the names of results of benchmarks that any machine has."""
    return {name for told in machines.values() for name in told if name.startswith(SECTION)}


def _chart(name: str, machines: Mapping[str, Mapping[str, Value]], odd: Collection[str]) -> str:
    values = {host: float(told[name]) for host, told in sorted(machines.items()) if name in told}
    scale = LENGTH / (max(values.values()) or 1.0)
    title = escape(name.removeprefix(SECTION))
    height = ROW * len(values)
    middle = NAME + median(values.values()) * scale
    bars = [
        _bar(row, host, value, value * scale, host in odd) for row, (host, value) in enumerate(values.items())
    ]
    return (
        f'<h2>{title}</h2>\n<svg role="img" viewBox="0 0 {NAME + LENGTH + NUMBER} {height}">'
        f"<title>{title} of each machine</title>{''.join(bars)}"
        f'<line class="usual" x1="{middle:.1f}" x2="{middle:.1f}" y1="0" y2="{height}"/></svg>'
    )


def _bar(row: int, host: str, value: float, length: float, odd: bool) -> str:
    base = row * ROW + ROW - 7
    mark = " ◆" if odd else ""
    return (
        f'<text x="{NAME - 8}" y="{base}" text-anchor="end">{escape(host)}{mark}</text>'
        f'<rect class="{"odd" if odd else "bar"}" x="{NAME}" y="{row * ROW + 3}" width="{length:.1f}" '
        f'height="{ROW - 6}"/><text x="{NAME + length + 6:.1f}" y="{base}">{value:.4g}</text>'
    )
