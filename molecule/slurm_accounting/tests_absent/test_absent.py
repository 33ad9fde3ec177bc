"""Nothing of the accounting is left."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_the_database_server_and_munge_are_as_the_site_had_them(host):
    there = host.check_output("hostname") == "dbd13"
    assert host.package("munge").is_installed == there
    assert not host.file("/etc/munge/munge.key").exists
    assert host.service("mariadb").is_enabled != there
    assert host.service("mariadb").is_running != there
    assert not there or not host.service("munge").is_enabled
    assert not there or not host.service("munge").is_running


def test_nothing_is_left(host):
    assert not host.file("/etc/slurm/slurmdbd.conf").exists
    assert not host.package("slurmdbd").is_installed
    started = host.run("systemctl start mariadb")  # that of the site is stopped
    assert started.rc == 0
    for question in ("show databases like 'slurm%'", "select user from mysql.user where user = 'slurm'"):
        assert host.check_output("mariadb --batch --skip-column-names --execute %s", question) == ""
