# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reserved resources are offered to their role only, and count as the role's, used or not."""

from __future__ import annotations

from typing import Any

from ansible_collections.gpufarm.cluster.plugins.modules import mesos_info, mesos_quota

from lab.mesos.real import Mesos
from lab.mesos.real.framework import Framework, amounts, until


def test_a_reservation_holds(mesos: Mesos, run: Any) -> None:
    agent = mesos.call("GET_AGENTS")["agents"][0]["agent_info"]["id"]
    reserved = {
        "agent_id": agent,
        "resources": [
            {
                "name": "gpus",
                "type": "SCALAR",
                "scalar": {"value": 3},
                "reservations": [{"type": "DYNAMIC", "role": "heidi"}],
            }
        ],
    }
    run(mesos_quota, quotas=[{"role": "heidi", "limits": {"gpus": 5}}])
    mesos.call("RESERVE_RESOURCES", reserve_resources=reserved)

    def consumed() -> float:
        quotas = run(mesos_info)["quotas"]
        return float(next(one for one in quotas if one["role"] == "heidi")["consumed"].get("gpus", 0))

    until(lambda: consumed() == 3)
    other = Framework(mesos.port, "ivan")
    assert amounts(other.offers(), "gpus") == 5
    other.stop()
    own = Framework(mesos.port, "heidi")
    assert amounts(own.offers(), "gpus") == 5  # the 3 and what the quota leaves
    own.stop()
    assert "already consuming" in run(mesos_quota, quotas=[{"role": "heidi", "limits": {"gpus": 2}}])["msg"]
    mesos.call("UNRESERVE_RESOURCES", unreserve_resources=reserved)
    until(lambda: consumed() == 0)
