"""Make the hub's package importable as it is in the hub; users of the hub that a module of tests starts."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from installed import make_importable

METADATA = tempfile.TemporaryDirectory(prefix="gpufarm-hub-")
make_importable(Path(METADATA.name))

from hub_process import Browser, HubProcess, users_of  # noqa: E402  # it imports the package


@pytest.fixture
def user(process: HubProcess) -> Iterator[Callable[[str], Browser]]:
    """Log users in at the hub of the module."""
    with users_of(process) as log_in:
        yield log_in


def pytest_sessionfinish(session: pytest.Session) -> None:
    METADATA.cleanup()
