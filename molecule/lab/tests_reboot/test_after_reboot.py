"""A reboot is a reboot: another boot, the same disk."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_another_boot(host):
    now = host.file("/proc/sys/kernel/random/boot_id").content_string
    assert host.file("/root/boot_id").content_string != now


def test_the_disk_is_the_same(host):
    assert host.service("nginx").is_running
    assert host.sysctl("net.core.somaxconn") == 2048
