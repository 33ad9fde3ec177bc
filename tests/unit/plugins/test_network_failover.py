"""Each link of a bond is taken down and put up again, whatever comes of it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.io import failover, read
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.io.read import NetworkError

MEMBERS = ["eth1", "eth2"]


class Bond:
    """A bond of which links are taken down; `dead` ones carry nothing, and those of `lost` stay away."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.ran: list[str] = []
        self.down: set[str] = set()
        self.dead: set[str] = set()
        self.lost: set[str] = set()
        self.silent_without = ""

    def run(self, *words: str) -> str:
        self.ran.append(" ".join(words))
        if words[:3] == ("ip", "link", "set"):
            (self.down.add if words[-1] == "down" else self.down.discard)(words[-2])
        if words[0] == "ping" and self.silent_without in self.down:
            raise NetworkError("no answer")
        return ""

    def links(self) -> list[dict[str, Any]]:
        lost = self.down | self.dead | (set() if self.down else self.lost)
        up = [name for name in MEMBERS if name not in lost]
        lacp = self.mode == "802.3ad"
        aggregate = {"aggregator": 1, "partner_mac": "b6:f7:62:d4:e1:30" if up else "00:00:00:00:00:00"}
        carries = up if lacp else up[:1]
        return [
            {
                "ifname": "bond0",
                "operstate": "UP" if up or lacp else "DOWN",
                "linkinfo": {"info_data": {"mode": self.mode, **({"ad_info": aggregate} if lacp else {})}},
            },
            *(
                {
                    "ifname": name,
                    "master": "bond0",
                    "linkinfo": {
                        "info_slave_data": {
                            "state": "ACTIVE" if name in carries else "BACKUP",
                            "mii_status": "UP" if name in up else "DOWN",
                            **({"ad_aggregator_id": 1 if name in up else 2} if lacp else {}),
                        }
                    },
                }
                for name in MEMBERS
            ),
        ]


@pytest.fixture(params=["active-backup", "802.3ad"])
def bond(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bond:
    found = Bond(request.param)
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(failover, "run", found.run)
    monkeypatch.setattr(read, "links", found.links)
    return found


def test_each_link_is_lost_once_under_a_timer_that_puts_it_up(bond: Bond) -> None:
    failover.attempt("bond0", MEMBERS, ["192.0.2.1"])
    assert [line for line in bond.ran if not line.startswith("ping")] == [
        line
        for name in MEMBERS
        for line in (
            f"systemd-run --quiet --collect --unit=gpufarm-network-up-{name} --on-active=60s"
            f" ip link set dev {name} up",
            f"ip link set dev {name} down",
            f"ip link set dev {name} up",
            f"systemctl stop gpufarm-network-up-{name}.timer",
        )
    ]
    assert len([line for line in bond.ran if line.startswith("ping") and line.endswith("192.0.2.1")]) == 2


def test_a_bond_with_one_link_is_left_alone(bond: Bond) -> None:
    with pytest.raises(NetworkError, match="bond0 has one link, so nothing can take its place"):
        failover.attempt("bond0", ["eth1"], [])
    assert bond.ran == []


def test_a_link_is_up_again_after_the_others_failed(bond: Bond) -> None:
    bond.dead = {"eth2"}
    with pytest.raises(NetworkError, match="bond0 does not carry on without eth1"):
        failover.attempt("bond0", MEMBERS, [])
    assert bond.down == set()


def test_a_gateway_that_does_not_answer_meanwhile_is_told(bond: Bond) -> None:
    bond.silent_without = "eth2"
    with pytest.raises(NetworkError, match=r"192\.0\.2\.1 does not answer over bond0 without eth2"):
        failover.attempt("bond0", MEMBERS, ["192.0.2.1"])
    assert bond.down == set()


def test_a_link_that_does_not_come_back_is_told(bond: Bond) -> None:
    bond.lost = {"eth1"}
    with pytest.raises(NetworkError, match="eth1 does not carry data for bond0 again"):
        failover.attempt("bond0", MEMBERS, [])
