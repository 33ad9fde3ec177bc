"""The specification agrees with the device nodes of the driver, and engines and package are set up for it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest


@pytest.fixture
def specification(host) -> dict[str, list[str]]:
    content = json.loads(host.file("/run/cdi/nvidia.yaml").content_string)
    return {
        device["name"]: [node["path"] for node in device["containerEdits"]["deviceNodes"]]
        for device in content["devices"]
    }


def test_names(host, specification):
    state = json.loads(host.check_output("simgpu status --json"))
    slices = [one["uuid"] for one in state["slices"]]
    whole = [gpu["uuid"] for gpu in state["gpus"] if not gpu["current"]]
    assert len(slices) == 3
    indexes = ["0:0", "0:1", "0:2"] + ["1"] * len(whole)
    assert sorted(specification) == sorted([*indexes, *slices, *whole, "all"])


def test_each_slice_has_the_nodes_of_its_instances(host, specification):
    state = json.loads(host.check_output("simgpu status --json"))
    for piece in state["slices"]:
        instance = f"/proc/driver/nvidia/capabilities/gpu0/mig/gi{piece['gi']}"
        minors = [
            host.file(file).content_string.split()[1]
            for file in (f"{instance}/access", f"{instance}/ci{piece['ci']}/access")
        ]
        nodes = [f"/dev/nvidia-caps/nvidia-cap{minor}" for minor in minors]
        assert specification[piece["uuid"]] == ["/dev/nvidia0", *nodes]
        assert all(host.file(node).exists for node in nodes)


def test_the_toolkit_is_held_and_its_own_units_are_masked(host):
    assert host.package("nvidia-container-toolkit-base").version == "1.20.1-1"
    assert host.check_output("apt-mark showhold") == "nvidia-container-toolkit-base"
    for unit in ("nvidia-cdi-refresh.service", "nvidia-cdi-refresh.path"):
        assert host.check_output(f"systemctl show --property LoadState {unit}") == "LoadState=masked"


def test_it_is_made_at_boot(host):
    assert host.service("gpufarm-cdi").is_enabled
    assert host.service("gpufarm-cdi").is_running
    assert host.check_output("systemctl --failed --plain --no-legend") == ""
