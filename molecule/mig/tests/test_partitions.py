"""Seven slices, told by the unmodified NVML binding, each with its device nodes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

SLICES = """
import json, pynvml as n
n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)
found = []
for index in range(n.nvmlDeviceGetMaxMigDeviceCount(gpu)):
    try:
        one = n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
    except n.NVMLError_NotFound:
        continue
    name = n.nvmlDeviceGetName(one).split()[-1]
    found.append([name, n.nvmlDeviceGetAttributes_v2(one).gpuInstanceSliceCount])
print(json.dumps(found))
"""


def slices(host) -> list[list[object]]:
    return json.loads(host.check_output("/opt/gpufarm/gpu/bin/python -c %s", SLICES))


def test_seven_slices(host):
    assert slices(host) == [["1g.10gb", 1]] * 7


def test_each_slice_has_its_device_nodes(host):
    files = host.check_output("ls /proc/driver/nvidia/capabilities/gpu0/mig/gi*/access "
                              "/proc/driver/nvidia/capabilities/gpu0/mig/gi*/ci*/access").split()  # fmt: skip
    assert len(files) == 14
    for file in files:
        minor = host.file(file).content_string.split()[1]
        assert host.file(f"/dev/nvidia-caps/nvidia-cap{minor}").exists


def test_they_are_made_at_boot(host):
    assert host.service("gpufarm-mig").is_enabled
    assert host.service("gpufarm-mig").is_running
    layout = json.loads(host.file("/etc/gpufarm/mig.json").content_string)["layout"]
    assert [len(gpu["partitions"]) for gpu in layout] == [7]
