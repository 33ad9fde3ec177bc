"""slurmdbd has come back after it was killed."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_systemd_started_it_again(host):
    assert host.check_output("systemctl show --property=NRestarts --value slurmdbd") == "1"
