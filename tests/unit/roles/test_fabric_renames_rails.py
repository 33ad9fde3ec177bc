"""Devices of soft RoCE go with the names that they were made with."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy

from harness.cases import FABRIC
from harness.host import Host
from harness.life import on
from harness.recording import Call
from harness.run import Run

UNIT = "gpufarm-soft-roce.service"
PATH = f"/etc/systemd/system/{UNIT}"


def run(host: Host, *names: str, check: bool = False) -> Run:
    """Run the role with rails of soft RoCE of these names."""
    machine = copy.deepcopy(FABRIC)
    soft = machine["adapters"].pop()
    machine["adapters"] += [{**soft, "name": name} for name in names]
    rails = [{"name": name, "device": "eth1", "type": "soft_roce", "purpose": "data"} for name in names]
    known = {"gpufarm.cluster.fabric_info": machine}
    given = {"fabric_rails": [{"name": "compute", "device": "ib0", "mode": "connected"}, *rails]}
    one = on(host, "fabric").with_answers(known).run("fabric", given, check=check)
    assert not one.failed, one.refusal
    return one


def told(one: Run) -> list[str]:
    """Return what was done to the unit and its file, in order."""

    def step(call: Call) -> str:
        if call.args.get("name") == UNIT:
            return str(call.args["state"])
        return "written" if UNIT in call.args.get("files", {}) and not call.check_mode else ""

    return [done for call in one.calls if (done := step(call))]


def test_old_devices_go_before_their_unit_changes() -> None:
    host = Host()
    assert told(run(host, "soft")) == ["written", "restarted"]
    assert told(run(host, "other")) == ["stopped", "written", "restarted"]
    assert host.units[UNIT].enabled and host.units[UNIT].running and not host.unread
    assert "link add other type rxe netdev eth1" in host.files[PATH].content
    assert told(run(host, "other")) == ["written", "started"]
    assert told(run(host)) == ["stopped"]
    assert PATH not in host.files


def test_a_check_changes_neither_devices_nor_unit() -> None:
    host = Host()
    run(host, "soft")
    before = copy.deepcopy(host)
    checked = run(host, "other", check=True)
    assert host == before
    assert "stopped" in told(checked)
