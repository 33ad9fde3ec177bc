"""The specification follows the partitions, after a change and after a reboot, without a run of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json


def test_devices(host):
    names = [one["name"] for one in json.loads(host.file("/run/cdi/nvidia.yaml").content_string)["devices"]]
    state = json.loads(host.check_output("simgpu status --json"))
    assert [one["name"] for one in state["slices"]] == ["3g.40gb"] * 2
    assert sorted(name for name in names if name.startswith("MIG-")) == sorted(
        one["uuid"] for one in state["slices"]
    )
    assert {"0:0", "0:1"} <= set(names)
    assert "0:2" not in names


def test_services(host):
    assert host.service("gpufarm-cdi").is_running
    assert host.check_output("systemctl --failed --plain --no-legend") == ""
