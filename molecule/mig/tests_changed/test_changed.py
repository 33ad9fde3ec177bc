"""Other partitions, beside the one that was in use."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

EXPECTED = {
    "mig12": ["1g.10gb", "1g.10gb", "3g.40gb", "1g.6gb", "1g.6gb", "2g.12gb"],
    "mig13": ["1g.10gb", "3g.40gb"],
    "migvm": ["1g.5gb", "3g.20gb"],
}


def test_partitions(host):
    name = host.check_output("hostname")
    state = json.loads(host.check_output("simgpu status --json"))
    assert sorted(one["name"] for one in state["slices"]) == sorted(EXPECTED[name])
    layout = json.loads(host.file("/etc/gpufarm/mig.json").content_string)["layout"]
    stored = [place["profile"] for gpu in layout for place in gpu["partitions"]]
    assert sorted(stored) == sorted(EXPECTED[name])


def test_services_that_use_slices_saw_the_change(host):
    state = json.loads(host.check_output("simgpu status --json"))
    seen = json.loads(host.file("/var/lib/user-of-slices.json").content_string)
    assert seen["slices"] == state["slices"]
