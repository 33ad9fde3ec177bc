"""Refusals of the role environment_modules."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from harness.recording import Answer
from harness.stubs import ALL_IS_WELL
from refused import Refused

INFO = "gpufarm.cluster.environment_modules_info"


def other(**changes: Any) -> dict[str, Answer]:
    """The machine, which differs in this from that of the case."""
    well = ALL_IS_WELL[INFO]
    assert not callable(well)
    return {INFO: {**well, **changes}}


REFUSED = {
    "environment_modules": [
        Refused(
            "The module gcc/1 is declared 2 times",
            {"environment_modules_modules": [{"name": "gcc", "version": "1"}] * 2},
        ),
        Refused("environment_modules_tree is no variable of the role", {"environment_modules_tree": "/srv"}),
        Refused("Got no match for: fish", {"environment_modules_shells": ["fish"]}),
        Refused("host1 has Environment Modules", {}, other(rival=True)),
        Refused("The module gcc/13.2 has the prefix /opt/gcc", {}, other(missing=["/opt/gcc"])),
    ],
}
