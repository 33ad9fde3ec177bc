"""No container gets a GPU any more, and nothing is left of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    for path in (
        "/run/cdi/nvidia.yaml",
        "/opt/gpufarm/bin/gpufarm-cdi",
        "/etc/systemd/system/gpufarm-cdi.service",
        "/etc/systemd/system/nvidia-cdi-refresh.service",
        "/etc/apt/sources.list.d/gpufarm-nvidia-container.sources",
        "/etc/apt/keyrings/gpufarm-nvidia-container.asc",
    ):
        assert not host.file(path).exists
    assert not host.package("nvidia-container-toolkit-base").is_installed


def test_the_partitions_stay(host):
    assert host.service("gpufarm-mig").is_running
