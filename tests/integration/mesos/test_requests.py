# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas and free resources of a real master decide about a user's container."""

from __future__ import annotations

from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._container_request import (
    plan as container_request_plan,
)
from ansible_collections.gpufarm.cluster.plugins.modules import mesos_info, mesos_quota

from lab.mesos.real import Mesos
from lab.mesos.real.framework import Framework, amounts

REQUEST: dict[str, Any] = {
    "kind": "notebook",
    "name": "lab",
    "image": "registry.example.org/lab/torch:2.5",
    "cpus": 1.0,
    "memory": "1 GiB",
    "disk": "1 GiB",
    "gpus": 1,
    "libraries": [],
    "ssh_keys": "",
    "password": "correct horse battery",
    "home_root": "/home",
    "gateway": "apps.example.org",
}


def test_what_is_short_is_told_by_the_numbers_of_the_master(mesos: Mesos, run: Any) -> None:
    run(mesos_quota, quotas=[{"role": "judy", "limits": {"gpus": 2, "cpus": 8}}])
    framework = Framework(mesos.port, "judy")
    offer = next(one for one in framework.offers() if amounts([one], "gpus") >= 1)
    framework.launch(offer, "sleep 600", gpus=1)
    framework.wait("TASK_RUNNING")
    cluster = run(mesos_info)

    def shortages(owner: str, **more: Any) -> str:
        found = container_request_plan({**REQUEST, "owner": owner, **more}, cluster)
        assert found["problems"] == []
        return " ".join(found["shortages"])

    assert shortages("judy", gpus=1) == shortages("kim", gpus=4) == ""
    over = "The quota of judy is 2 GPUs, 1 are in use, and 2 are asked for"
    assert over in shortages("judy", gpus=2)
    assert "The quota of judy is 8 CPUs, 0.1 are in use, and 8 are asked for" in shortages("judy", cpus=8.0)
    # four on each of two agents, and one of them is in use
    assert "No machine of the cluster has 5 GPUs free; the most is 4" in shortages("kim", gpus=5)
    assert "MiB of memory free; the most is 16384" in shortages("kim", memory="64 GiB")
    framework.stop()
