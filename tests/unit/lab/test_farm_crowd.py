# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The crowd on a farm notices a slice that two have at once."""

from __future__ import annotations

import pytest

from lab.farm.crowd import Use, shared

ALICE, LATER = Use("MIG-1", 10, 20, "alice"), Use("MIG-1", 20, 25, "bob")


@pytest.mark.parametrize(
    ("uses", "found"),
    [
        ([LATER, ALICE], []),
        ([ALICE, Use("MIG-2", 12, 15, "bob")], []),
        ([Use("MIG-1", 19, 30, "bob"), ALICE], ["alice and bob had MIG-1"]),
        ([LATER, ALICE, Use("MIG-1", 11, 12, "carol")], ["alice and carol had MIG-1"]),
    ],
)
def test_a_slice_that_two_have_at_once(uses: list[Use], found: list[str]) -> None:
    assert shared(uses) == found
