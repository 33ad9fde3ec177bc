"""The GPUs have their former settings, and nothing is left of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

CHANGED = {"persistence", "accounting", "compute_mode", "gpu_clock_least", "gpu_clock_most", "ecc_pending"}


def test_the_former_settings_are_back(host):
    gpus = json.loads(host.check_output("simgpu status --json"))["gpus"]
    before = 350_000 if host.check_output("hostname") == "settings12" else None
    assert gpus[0].get("power_limit") == before and "power_limit" not in gpus[1]
    # The state names what is not as it left the factory; ECC mode waits for a reset.
    assert all(not CHANGED & gpu.keys() for gpu in gpus)


def test_nothing_is_left(host):
    for path in (
        "/etc/gpufarm/settings.json",
        "/opt/gpufarm/bin/gpufarm-settings",
        "/opt/gpufarm/lib",
        "/etc/systemd/system/gpufarm-settings.service",
    ):
        assert not host.file(path).exists
    units = host.check_output("systemctl list-units --all --plain --no-legend --state=active,failed")
    assert "gpufarm-settings" not in units
