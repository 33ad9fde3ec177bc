"""Nothing of the accounting is left."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    assert not host.file("/etc/slurm/slurmdbd.conf").exists
    assert not host.package("slurmdbd").is_installed
    for question in ("show databases like 'slurm%'", "select user from mysql.user where user = 'slurm'"):
        assert host.check_output("mariadb --batch --skip-column-names --execute %s", question) == ""
