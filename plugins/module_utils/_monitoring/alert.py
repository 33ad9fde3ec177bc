# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An alert of Prometheus. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WARNING, CRITICAL = "warning", "critical"
MACHINE = "{{ $labels.instance }}"


@dataclass(frozen=True)
class Alert:
    """An alert.

    `expression` is PromQL, `patience` how long it must hold (a duration of Prometheus). `summary` says what
    is wrong in one sentence, `next_step` what to do; both may hold templates of Prometheus.
    """

    name: str
    expression: str
    patience: str
    severity: str
    summary: str
    next_step: str

    def rule(self) -> dict[str, Any]:
        """Return the alert as Prometheus reads it."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.patience,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "next_step": self.next_step},
        }
