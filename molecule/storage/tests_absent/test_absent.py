"""The file systems are unmounted, and what users and others wrote is kept."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_what_users_wrote_is_kept(host):
    assert host.run("findmnt --mountpoint /lustre/home").rc != 0
    assert host.file("/var/lib/lustre-fake/data/home/ada/thesis").content_string == "mine"


def test_nothing_of_the_homes_is_left(host):
    assert not host.file("/usr/local/sbin/gpufarm-home").exists
    assert not host.file("/etc/pam.d/common-session").contains("gpufarm-home")


def test_nothing_of_the_repositories_is_mounted(host):
    assert " /cvmfs" not in host.file("/proc/self/mounts").content_string


def test_the_files_of_others_are_found_again(host):
    assert host.check_output("planted") == ""
