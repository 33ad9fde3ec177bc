"""Nothing is served and nothing of the role is left but the targets with what is on them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_served(host):
    assert "/srv/targets/" not in host.file("/proc/self/mountinfo").content_string
    assert not host.file("/run/lustre-fake/loaded").exists
    assert host.check_output("dpkg-query --list 'lustre-*' | grep --count ^ii || true") == "0"


def test_nothing_of_the_role_is_left(host):
    left = host.run(
        "grep --recursive --files-with-matches gpufarm /etc/systemd /etc/apt /etc/modprobe.d /etc/lnet.conf"
    )
    assert left.stdout == ""


def test_the_targets_and_the_files_of_others_stay(host):
    device = "mdt" if host.check_output("hostname") == "oss1" else "ost1"
    label = {"mdt": "home-MDT0000", "ost1": "home-OST0001"}[device]
    assert (
        host.check_output("blkid --probe --output value --match-tag LABEL /srv/targets/%s", device) == label
    )
    host.check_output("planted")
