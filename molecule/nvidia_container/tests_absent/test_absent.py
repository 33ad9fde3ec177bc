"""No container gets a GPU any more, and nothing is left of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    for path in (
        "/opt/gpufarm/bin/gpufarm-cdi",
        "/etc/systemd/system/gpufarm-cdi.service",
        "/etc/systemd/system/nvidia-cdi-refresh.service",
        "/etc/apt/sources.list.d/gpufarm-nvidia-container.sources",
        "/etc/apt/keyrings/gpufarm-nvidia-container.asc",
    ):
        assert not host.file(path).exists


def test_the_toolkit_of_the_site_is_as_before(host):
    there = host.check_output("hostname") == "box12"
    assert host.package("nvidia-container-toolkit-base").is_installed == there
    assert host.check_output("apt-mark showhold") == ""
    assert host.file("/etc/systemd/system/nvidia-cdi-refresh.path").exists == there, "a mask"
    assert host.file("/run/cdi/nvidia.yaml").exists == there, "the toolkit's own unit has written it"
    if there:
        assert host.file("/run/cdi/nvidia.yaml").content_string == "overwritten\n"
        assert host.service("nvidia-cdi-refresh.service").is_enabled


def test_the_partitions_stay(host):
    assert host.service("gpufarm-mig").is_running
