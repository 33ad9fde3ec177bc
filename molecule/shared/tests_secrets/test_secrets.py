"""No secret is anywhere but in its own file: of no role, whichever unit, process or file may have got it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

LOOKS = Path(__file__).with_name("secrets_seen.py")


def test_no_secret_is_in_the_journal_a_command_line_or_a_file_for_all(host):
    found = json.loads(host.check_output("python3 -c %s", LOOKS.read_text()))
    folders = host.run("find /etc /opt /var/lib -xdev -type d -name secrets -not -empty").stdout.split()
    assert found["secrets"] > 0 or not folders, folders
    assert not found["seen"], "\n".join(found["seen"])
