"""No mount, unit, package or file of the role is left."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_mounted(host):
    mounts = host.file("/proc/self/mounts").content_string
    assert " /cvmfs" not in mounts
    assert host.run("pidof squashfuse").rc == 1
    assert host.run("ls -A /cvmfs").stdout == ""


def test_nothing_of_the_role_is_left(host):
    assert not host.package("cvmfs").is_installed
    assert "Remv cvmfs-libs" in host.check_output("apt-get --simulate autoremove")
    left = host.run(
        "grep --recursive --files-with-matches gpufarm /etc/cvmfs /etc/systemd /etc/apt /etc/auto.master.d"
    )
    assert left.stdout == ""
    assert host.check_output("systemctl list-units --all --plain --no-legend 'cvmfs-*'") == ""


def test_the_caches_stay(host):
    assert host.file("/srv/shared_cache/ff").is_directory
    assert host.file("/var/lib/cvmfs/shared/kept").exists
    assert host.file("/srv/cache/shared/data.example.org.squashfs").exists


def test_autofs_is_as_the_site_had_it(host):
    autofs = host.service("autofs")
    assert not autofs.is_enabled
    assert not autofs.is_running
