"""The GPUs are whole again, and nothing is left of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json


def test_mig_mode_is_as_before(host):
    state = json.loads(host.check_output("simgpu status --json"))
    before = [0, 1] if host.check_output("hostname") == "mig12" else [0]
    # In the virtual machine it takes a reboot.
    assert [gpu["pending"] for gpu in state["gpus"]] == before
    assert state["slices"] == []


def test_services_that_use_slices_saw_it(host):
    assert json.loads(host.file("/var/lib/user-of-slices.json").content_string)["slices"] == []
    assert host.service("user-of-slices").is_running


def test_nothing_is_left(host):
    for path in (
        "/etc/gpufarm/mig.json",
        "/opt/gpufarm/bin/gpufarm-mig",
        "/opt/gpufarm/lib",
        "/etc/systemd/system/gpufarm-mig.service",
    ):
        assert not host.file(path).exists
    units = host.check_output("systemctl list-units --all --plain --no-legend --state=active,failed")
    assert "gpufarm-mig" not in units
