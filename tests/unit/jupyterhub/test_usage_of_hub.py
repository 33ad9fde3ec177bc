"""The report of hours reads what the hub writes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from ansible_collections.gpufarm.cluster.plugins.module_utils._usage.report import within
from ansible_collections.gpufarm.cluster.plugins.module_utils._usage.use import from_audit, from_leases
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.leases import Leases
from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.sharing.notices import Notices
from gpufarm_hub.sharing.slices import Slice
from gpufarm_hub.sharing.waiting import SliceRequest
from gpufarm_hub.store import JsonStore

SLICES = [Slice(f"MIG-{number}", "1g.10gb", 0, number, 0, 10 << 30) for number in (7, 8)]


def test_a_lease_and_its_end_are_one_use(tmp_path: Path) -> None:
    leases, log = tmp_path / "leases.json", tmp_path / "audit.jsonl"
    notices, use = Notices(tmp_path / "notices.json"), JsonStore(tmp_path / "use.json")
    desk = Desk(Leases(leases), notices, use, log, [])
    desk.take(SliceRequest("ada/", "1g.10gb", 2, Limit("many", slices=9), {}), "ada.service", SLICES)
    now = datetime.now(UTC) + timedelta(hours=1)
    [held] = from_leases(leases.read_text(), "gpu1", now)
    desk.give_back("ada/")
    [ended] = from_audit(log.read_text().splitlines(), "gpu1")
    assert held.user == ended.user == "ada"
    assert held.slices == ended.slices == {"1g.10gb": 2}
    assert list(within([held, ended], now - timedelta(days=1), now)) == [ended]
