"""Give tests a Marathon that they command."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from small_marathon import SmallMarathon, running


@pytest.fixture
def marathon() -> Iterator[SmallMarathon]:
    with running() as server:
        yield server
