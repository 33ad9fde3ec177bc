# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of GPUs as users write them, and as values: modes, mW, and pairs of MHz. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

DEFAULT = "default"
SWITCHES = ("persistence_mode", "ecc_mode", "accounting_mode")
CLOCKS = ("gpu_clocks", "memory_clocks")
COMPUTE_MODES = (DEFAULT, "exclusive_process", "prohibited")
# In the order in which they are set: without persistence mode, a driver without programs forgets the others.
NAMES = ("persistence_mode", "power_limit", *CLOCKS, "compute_mode", "ecc_mode", "accounting_mode")

# A mode is a bool or a word, a power limit a number of mW, clocks are a list of the least and the most MHz;
# `default` is the driver's own.
Values = dict[str, Any]


class SettingsError(Exception):
    """Settings that mean nothing; the text is one sentence for a user."""


def parse(entry: Mapping[str, Any]) -> Values:
    """Return the values of the settings that an entry names; None is for a setting that it leaves out.

    Raises:
        SettingsError: when one of them means nothing.
    """
    given = {name: entry[name] for name in NAMES if entry.get(name) is not None}
    if not given:
        raise SettingsError(f"An entry of the GPU settings names no setting: add one of {', '.join(NAMES)}.")
    return {name: _value(name, given[name]) for name in given}


def _value(name: str, given: Any) -> Any:
    if name in SWITCHES:
        return bool(given)
    word = str(given).replace(" ", "")
    if word == DEFAULT or name == "compute_mode":
        return word
    if name == "power_limit":
        if not re.fullmatch(r"[1-9]\d{0,5}", word):
            raise SettingsError(f"The power_limit '{given}' is no number of watts: write 300, or default.")
        return int(word) * 1000
    match = re.fullmatch(r"(\d{1,5}),(\d{1,5})", word)
    if not match or int(match[1]) > int(match[2]):
        raise SettingsError(
            f"The {name} '{given}' are no least and most clock: write MHz like 1200,1410, or default."
        )
    return [int(match[1]), int(match[2])]


def words(name: str, value: Any) -> str:
    """Return a value as users write it."""
    if name in SWITCHES:
        return "on" if value else "off"
    if value == DEFAULT or name == "compute_mode":
        return str(value)
    return f"{value / 1000:g} W" if name == "power_limit" else f"{value[0]},{value[1]} MHz"


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``problems``, a sentence for each entry that means nothing.

    Args:
        settings: the variables of the role ``gpu_settings`` without its name.
    """
    problems = []
    for entry in settings["entries"]:
        try:
            parse(entry)
        except SettingsError as error:
            problems.append(str(error))
    return {"problems": problems}
