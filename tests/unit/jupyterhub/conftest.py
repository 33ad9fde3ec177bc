"""Make the hub's package importable as it is in the hub."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from installed import make_importable

METADATA = tempfile.TemporaryDirectory(prefix="gpufarm-hub-")
make_importable(Path(METADATA.name))


def pytest_sessionfinish(session: pytest.Session) -> None:
    METADATA.cleanup()
