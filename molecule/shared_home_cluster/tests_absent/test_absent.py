"""Nothing is mounted or exported any more, and the homes are where they were."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_mounted_or_exported(host):
    assert " /srv/home " not in host.file("/proc/self/mountinfo").content_string
    for path in ("/etc/systemd/system/srv-home.mount", "/etc/exports.d/gpufarm-homes.exports"):
        assert not host.file(path).exists
    if host.check_output("hostname") == "login12":
        assert not host.service("nfs-server").is_running and not host.service("nfs-server").is_enabled


def test_the_homes_stay_on_the_server(host):
    if host.check_output("hostname") == "login12":
        assert host.file("/srv/home/bob/node13").content_string == "node13\n"
        assert host.file("/srv/home/bob").user == "bob"
    else:
        assert not host.file("/srv/home").exists
