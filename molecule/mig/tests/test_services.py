"""A daemon that held the GPU was stopped for the moment in which MIG mode was switched."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "mig12":
        pytest.skip("another machine")


def test_the_daemon_was_stopped_and_brought_back(host):
    journal = host.check_output("journalctl --no-pager --quiet --unit holder.service --output cat")
    assert "Stopped holder.service" in journal
    assert journal.count("Started holder.service") + journal.count("Finished holder.service") >= 2
