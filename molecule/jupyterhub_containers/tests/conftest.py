"""A notebook of alice with the image of the scenario."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable

import pytest

IMPORT = "podman image exists box || podman import --quiet /srv/images/box.tar box 2>&1"


@pytest.fixture
def nest(shell) -> Callable[..., Callable[[str], str]]:
    """Start a notebook of a user; return what runs commands in it, with the image ``box``."""

    def start(name: str = "alice", **options: str) -> Callable[[str], str]:
        run = shell(name, **options)
        run(IMPORT)
        return run

    return start
