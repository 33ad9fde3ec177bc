"""Packages, modules, package sources and pins are gone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    for name in ("nvidia-kernel-dkms", "libnvidia-ml1", "libcuda1", "nvidia-smi", "nvidia-modprobe"):
        assert not host.package(name).is_installed
    assert host.check_output("find /lib/modules -name 'nvidia-current*.ko*'") == ""
    for path in (
        "/etc/apt/sources.list.d/gpufarm-nvidia-components.sources",
        "/etc/apt/preferences.d/gpufarm-nvidia",
        "/etc/modprobe.d/gpufarm-nouveau.conf",
        "/opt/gpufarm/gpu",
    ):
        assert not host.file(path).exists
