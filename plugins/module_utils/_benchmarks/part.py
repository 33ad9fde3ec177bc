# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A part of a machine that is measured for itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class NotMeasured(Exception):
    """A measurement failed; the text is a sentence."""


@dataclass(frozen=True)
class Part:
    """How the names of its values begin, and those of no other part; name and address of the machine at the
    other end of a link, or the UUID of a GPU; and a function that returns the values, or raises
    `NotMeasured`.
    """

    prefix: str
    end: str
    measure: Callable[[], dict[str, float]]
