"""Errors put no password into a log, though SSSD logs more of them than of all else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_no_log_has_the_password_of_the_bind_account(host):
    assert host.file("/var/log/sssd").is_directory
    assert host.run("grep -rl 'password of the hub' /var/log/sssd").stdout == ""
