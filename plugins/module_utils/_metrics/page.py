# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics in the text format of Prometheus. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Page:
    """Metrics in the text format of Prometheus (Prometheus, Exposition formats, text format 0.0.4)."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(
        self, name: str, text: str, samples: Iterable[tuple[Mapping[str, str], float]], kind: str = "gauge"
    ) -> None:
        """Add a family of metrics; one without samples is left out."""
        lines = [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
        if lines:
            self._lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *lines]

    def text(self) -> str:
        """Return the page."""
        return "\n".join(self._lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"
