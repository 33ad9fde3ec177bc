"""All that users and others have written on disks and on the server is found again."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_mounted_or_left(host):
    assert " /srv/home " not in host.file("/proc/self/mountinfo").content_string
    for path in ("/etc/systemd/system/srv-home.mount", "/usr/local/sbin/gpufarm-home", "/srv/home"):
        assert not host.file(path).exists


def test_homes_on_the_disk_are_found_again(host):
    host.check_output("mount -o ro,noload /dev/loop0 /mnt")
    assert host.file("/mnt/ada/thesis").content_string == "mine\n"
    assert host.file("/mnt/ada").uid == 1501


def test_homes_on_the_server_are_found_again(host):
    home = host.file("/srv/export/homes/bob")
    assert (home.user, oct(home.mode)) == ("bob", "0o700")
    assert host.file("/srv/export/homes/bob/thesis").content_string == "mine\n"


def test_the_files_of_others_are_found_again(host):
    assert host.check_output("planted") == ""
