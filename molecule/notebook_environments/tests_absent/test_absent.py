"""Nothing of the role is left but what users have in their homes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    assert not host.file("/opt/gpufarm/environments").exists
    assert not host.file("/etc/gpufarm/environments.json").exists
    assert not host.file("/etc/gpufarm/kernels").exists


def test_packages_of_users_are_theirs(host):
    assert host.check_output("find /home/ada/.local/share/gpufarm -name humanize -type d | wc -l") != "0"
