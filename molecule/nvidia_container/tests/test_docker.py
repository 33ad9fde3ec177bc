"""A container of Docker has the slice or the GPU that it asked for."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

COMMON = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "box13":
        pytest.skip("another machine")


@pytest.mark.parametrize("device", ["0:2", "1", "all"])
def test_nodes(host, device):
    content = json.loads(host.file("/run/cdi/nvidia.yaml").content_string)
    [wanted] = [one["containerEdits"]["deviceNodes"] for one in content["devices"] if one["name"] == device]
    command = f"docker run --rm --network none --device nvidia.com/gpu={device} shell:1 /bin/sh -c %s"
    found = host.check_output(command, "find /dev -name 'nvidia*' -type c").split()
    assert sorted(found) == sorted([node["path"] for node in wanted] + COMMON)


def test_containerd_reads_specifications_too(host):
    assert "enable_cdi = true" in host.check_output("containerd config dump")
    # what Debian's package configured is still there
    assert 'bin_dir = "/usr/lib/cni"' in host.file("/etc/containerd/config.toml").content_string
