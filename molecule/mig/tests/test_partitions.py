"""The requested partitions, as the unmodified NVML binding reports them; also after refusals and a reboot."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

# On the first GPU 2g goes to 2, the only place left of those that NVML offers ({0,2,4}).
EXPECTED = {
    "mig12": [["0", "1g.10gb", 1], ["0", "2g.20gb", 2], ["0", "2c.3g.40gb", 4], ["0", "1c.3g.40gb", 4]]
    + [["1", name, start] for name, start in (("2g.12gb", 0), ("1g.6gb", 2), ("1g.6gb", 3))],
    "mig13": [["0", "1g.10gb", start] for start in range(7)],
    "migvm": [["0", "1g.5gb", start] for start in range(7)],
}
SLICES = """
import json, pynvml as n
n.nvmlInit()
found = []
for number in range(n.nvmlDeviceGetCount()):
    gpu = n.nvmlDeviceGetHandleByIndex(number)
    for index in range(n.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            one = n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
        except n.NVMLError_NotFound:
            continue
        instance = n.nvmlDeviceGetGpuInstanceById(gpu, n.nvmlDeviceGetGpuInstanceId(one))
        name = n.nvmlDeviceGetName(one).split()[-1]
        found.append([str(number), name, n.nvmlGpuInstanceGetInfo(instance).placement.start])
print(json.dumps(found))
"""


@pytest.fixture
def name(host) -> str:
    return host.check_output("hostname")


def test_partitions(host, name):
    found = json.loads(host.check_output("/opt/gpufarm/gpu/bin/python -c %s", SLICES))
    assert sorted(found) == sorted(EXPECTED[name])


def test_each_slice_has_its_device_nodes(host, name):
    files = host.check_output("ls /proc/driver/nvidia/capabilities/gpu*/mig/gi*/access "
                              "/proc/driver/nvidia/capabilities/gpu*/mig/gi*/ci*/access").split()  # fmt: skip
    assert len([file for file in files if "/ci" in file]) == len(EXPECTED[name])
    for file in files:
        minor = host.file(file).content_string.split()[1]
        assert host.file(f"/dev/nvidia-caps/nvidia-cap{minor}").exists


def test_they_are_made_at_boot(host, name):
    assert host.service("gpufarm-mig").is_enabled
    assert host.service("gpufarm-mig").is_running
    layout = json.loads(host.file("/etc/gpufarm/mig.json").content_string)["layout"]
    places = [place for gpu in layout for place in gpu["partitions"]]
    assert sum(len(place["compute_instances"]) for place in places) == len(EXPECTED[name])


def test_services_that_use_slices_saw_them(host, name):
    state = json.loads(host.file("/var/lib/user-of-slices.json").content_string)
    assert len(state["slices"]) == len(EXPECTED[name])
    assert host.check_output("systemctl --failed --plain --no-legend") == ""
