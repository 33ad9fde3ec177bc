"""The fake driver is built for every kernel, and neither upgrades nor other versions get in."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

VERSION = "570.133.20"


def test_modules_are_built_for_every_kernel(host):
    status = host.check_output("dkms status nvidia")
    kernels = re.findall(rf"(?m)^nvidia/{VERSION}, (\S+), \S+: installed", status)
    assert len(kernels) == 2
    for kernel in kernels:
        assert host.check_output("modinfo -k %s -F version nvidia", kernel) == VERSION


def test_an_upgrade_of_the_system_leaves_the_driver(host):
    assert "570.148.08" in host.check_output("apt-cache madison nvidia-driver-cuda")
    assert "nvidia" not in host.check_output("apt-get --simulate dist-upgrade")
    policy = host.check_output("apt-cache policy nvidia-driver-cuda nvidia-kernel-open-dkms libcuda1")
    assert set(re.findall(r"Candidate: (\S+)", policy)) == {f"{VERSION}-1"}


def test_the_kernels_own_driver_is_kept_out(host):
    assert "blacklist nouveau" in host.file("/etc/modprobe.d/gpufarm-nouveau.conf").content_string


def test_the_persistence_daemon_starts_with_the_machine(host):
    assert host.service("nvidia-persistenced").is_enabled
    assert not host.service("nvidia-persistenced").is_running
    assert not host.package("nvidia-fabricmanager-570").is_installed
