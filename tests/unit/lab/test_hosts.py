# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of the bench tell what they said last."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.hosts import Host
from lab.spec import HostSpec


@pytest.mark.parametrize(
    ("console", "last"),
    [
        ("", "no output"),
        ("booting\r\r\n\x1b[0m\x1b[K\r\n", "booting"),
        (
            "[\x1b[0;32m  OK  \x1b[0m] Started \x1b[0;1;39mssh\x1b[0m.\r\n\x1b[H\x1b[2J",
            "[  OK  ] Started ssh.",
        ),
    ],
)
def test_the_last_line_of_a_console_can_be_seen(tmp_path: Path, console: str, last: str) -> None:
    host = Host(HostSpec(name="vm"), "192.0.2.1", "", "one", tmp_path)
    host.log.write_text(console)
    assert host.last_words() == last


def test_a_host_that_never_started_said_nothing(tmp_path: Path) -> None:
    assert Host(HostSpec(name="vm"), "192.0.2.1", "", "one", tmp_path).last_words() == "no output"
