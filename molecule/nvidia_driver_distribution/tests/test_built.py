"""The modules are built for the kernel that was asked for, in the version that was asked for."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re


def test_modules_are_built(host):
    wanted = re.findall(
        r"Depends: linux-headers-(\S+)", host.check_output("apt-cache depends linux-headers-amd64")
    )
    status = host.check_output("dkms status nvidia-current")
    assert re.findall(r"(?m)^nvidia-current/535[0-9.]+, (\S+), x86_64: installed", status) == wanted
    module = f"/lib/modules/{wanted[0]}/updates/dkms/nvidia-current.ko"
    assert host.check_output("modinfo -F version %s", module).startswith("535.")
    assert host.check_output("modinfo -F vermagic %s", module).startswith(wanted[0])


def test_library_and_module_are_of_one_version(host):
    version = host.package("libnvidia-ml1").version
    assert version == host.package("nvidia-kernel-dkms").version
    assert version.startswith("535.")


def test_other_versions_stay_out(host):
    policy = host.check_output("apt-cache policy libnvidia-ml1 nvidia-kernel-dkms")
    assert set(re.findall(r"Candidate: (\d+)", policy)) == {"535"}


def test_mirrors_and_their_keys_are_those_of_the_machine(host):
    added = host.file("/etc/apt/sources.list.d/gpufarm-nvidia.sources").content_string
    assert "Components: contrib non-free" in added
    assert "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" in added
