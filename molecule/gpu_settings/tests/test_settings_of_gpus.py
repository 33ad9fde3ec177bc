"""The settings, as the unmodified NVML binding reports them; also after refusals, a lost GPU and a reboot."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

SETTINGS = """
import json, pynvml as n
n.nvmlInit()
found = []
for number in range(n.nvmlDeviceGetCount()):
    gpu = n.nvmlDeviceGetHandleByIndex(number)
    found.append({
        "persistence": n.nvmlDeviceGetPersistenceMode(gpu),
        "accounting": n.nvmlDeviceGetAccountingMode(gpu),
        "compute": n.nvmlDeviceGetComputeMode(gpu),
        "limit": n.nvmlDeviceGetPowerManagementLimit(gpu),
        "default": n.nvmlDeviceGetPowerManagementDefaultLimit(gpu),
        "clock": n.nvmlDeviceGetClockInfo(gpu, n.NVML_CLOCK_SM),
        "ecc": n.nvmlDeviceGetEccMode(gpu)[1],
    })
print(json.dumps(found))
"""


def test_settings(host):
    first, other = json.loads(host.check_output("/opt/gpufarm/gpu/bin/python -c %s", SETTINGS))
    assert first["persistence"] == other["persistence"] == 1
    assert first["accounting"] == other["accounting"] == 1
    assert (first["limit"], first["clock"], first["compute"], first["ecc"]) == (300_000, 1200, 3, 0)
    assert (other["limit"], other["compute"], other["ecc"]) == (other["default"], 0, 1)


def test_they_are_set_at_boot(host):
    assert host.service("gpufarm-settings").is_enabled
    assert host.service("gpufarm-settings").is_running
    assert host.run("/opt/gpufarm/bin/gpufarm-settings --check /etc/gpufarm/settings.json").rc == 0
