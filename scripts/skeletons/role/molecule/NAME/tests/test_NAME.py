"""TITLE works as its settings say."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_the_settings_are_there_for_everybody(host):
    assert host.check_output("jq .port /etc/DASHED/settings.json") == "9090"
    assert host.file("/etc/DASHED/settings.json").mode == 0o644
