"""The modules are built for the kernel that was asked for, in the right version, and stay at it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest

BRANCHES = {"12": "535", "13": "550"}


@pytest.fixture
def branch(host):
    return BRANCHES[host.system_info.release.split(".")[0]]


def test_modules_are_built(host, branch):
    wanted = re.findall(
        r"Depends: linux-headers-(\S+)", host.check_output("apt-cache depends linux-headers-amd64")
    )
    status = host.check_output("dkms status nvidia-current")
    assert re.findall(rf"(?m)^nvidia-current/{branch}[0-9.]+, (\S+), \S+: installed", status) == wanted
    module = host.check_output("find /lib/modules/%s/updates/dkms -name %s", wanted[0], "nvidia-current.ko*")
    assert host.check_output("modinfo -F version %s", module).startswith(f"{branch}.")
    assert host.check_output("modinfo -F vermagic %s", module).startswith(wanted[0])


def test_library_and_module_are_of_one_version(host, branch):
    version = host.package("libnvidia-ml1").version
    assert version == host.package("nvidia-kernel-dkms").version
    assert version.startswith(f"{branch}.")


def test_the_driver_stays_at_exactly_its_version(host):
    version = host.package("libnvidia-ml1").version
    policy = host.check_output("apt-cache policy libnvidia-ml1 nvidia-kernel-dkms libnvidia-encode1")
    assert set(re.findall(r"Candidate: (\S+)", policy)) == {version}
    assert "nvidia" not in host.check_output("apt-get --simulate dist-upgrade")


def test_the_kernels_own_driver_is_kept_out(host):
    assert "blacklist nouveau" in host.file("/etc/modprobe.d/gpufarm-nouveau.conf").content_string


def test_mirrors_and_their_keys_are_those_of_the_machine(host):
    added = host.file("/etc/apt/sources.list.d/gpufarm-nvidia-components.sources").content_string
    assert "Components: contrib non-free" in added
    assert "Signed-By: /usr/share/keyrings/debian-archive-keyring." in added
