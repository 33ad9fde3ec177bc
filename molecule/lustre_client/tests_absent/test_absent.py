"""No mount, unit, package or file of the role is left, and LNet is down."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_mounted(host):
    assert "@tcp" not in host.file("/proc/self/mountinfo").content_string
    assert not host.file("/run/lustre-fake/loaded").exists


def test_folders_that_were_there_before_are_as_they_were(host):
    assert host.check_output("stat --format '%u:%g %a' /scratch") == "1502:1600 1750"
    assert host.check_output("find /scratch /lustre/home") == "/scratch\n/lustre/home"


def test_nothing_of_the_role_is_left(host):
    assert host.check_output("dpkg-query --list 'lustre-*' | grep --count ^ii || true") == "0"
    left = host.run(
        "grep --recursive --files-with-matches gpufarm /etc/systemd /etc/apt /etc/modprobe.d /etc/lnet.conf"
    )
    assert left.stdout == ""
