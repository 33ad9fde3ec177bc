"""Nothing of the role is left, and all that users and others have written is."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "path",
    [
        "/etc/gpufarm/shared_home.json",
        "/etc/systemd/system/srv-home.mount",
        "/opt/gpufarm/bin/gpufarm-home",
        "/opt/gpufarm/lib",
        "/srv/home",
        "/usr/local/sbin/gpufarm-home",
        "/usr/share/pam-configs/gpufarm-shared-home",
    ],
)
def test_nothing_is_left(host, path):
    assert not host.file(path).exists


def test_logins_and_new_accounts_are_as_before(host):
    assert not host.file("/etc/pam.d/common-session").contains("gpufarm-home")
    assert host.file("/etc/default/useradd").content == host.file("/srv/useradd").content
    assert host.run("ssh -n -o BatchMode=yes ada@127.0.0.1 true").rc == 0


@pytest.mark.parametrize(
    ("disk", "files"),
    [
        ("homes", {"ada/thesis": "1501", "carol/results": "4711"}),
        ("xfs", {"bob/results": "1502"}),
        ("open", {"results": "1500"}),
    ],
)
def test_what_lies_on_the_disks_is_found_again(host, disk, files):
    host.check_output("mount /dev/%s /mnt", disk)
    try:
        for path, owner in files.items():
            assert host.file(f"/mnt/{path}").content_string == "mine\n"
            assert host.check_output("stat --format %%u /mnt/%s", path) == owner
    finally:
        host.check_output("umount /mnt")


def test_homes_in_a_folder_stay(host):
    thesis = host.file("/srv/plain/frank/thesis")
    assert (thesis.content_string, thesis.user) == ("mine\n", "frank")


def test_the_files_of_others_are_found_again(host):
    assert host.check_output("planted") == ""
