# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""LNet is compared with what is declared, and only what differs is changed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import lnet
from hypothesis import given
from hypothesis import strategies as st

EXPORT = """
net:
    - net type: lo
      local NI(s):
        - nid: 0@lo
          status: up
    - net type: tcp
      local NI(s):
        - nid: 10.0.0.5@tcp
          status: up
          interfaces:
              0: eth0
          statistics:
              send_count: 12
          tunables:
              peer_timeout: 180
              peer_credits: 8
          lnd tunables:
              conns_per_peer: 1
          dev cpt: -1
          CPT: "[0,1]"
route:
    - net: o2ib
      gateway: 10.0.0.1@tcp
      hop: -1
      priority: 0
peer:
    - primary nid: 10.0.0.9@tcp
      Multi-Rail: True
      peer ni:
        - nid: 10.0.0.9@tcp
          state: NA
global:
    discovery: 1
    transaction_timeout: 150
"""
NOTHING = lnet.Lnet({}, {}, {}, {})
settings = st.dictionaries(st.sampled_from(lnet.SETTINGS), st.integers(0, 1000), max_size=3)
tunables = st.dictionaries(st.sampled_from(lnet.TUNABLES), st.integers(0, 1000), max_size=2)
networks = st.dictionaries(
    st.sampled_from(["tcp", "tcp1", "o2ib"]),
    st.dictionaries(st.sampled_from(["eth0", "eth1", "ib0"]), tunables, min_size=1, max_size=3),
    max_size=3,
)
peers = st.dictionaries(st.just("10.0.0.9@tcp"), st.just({"10.0.0.9@tcp", "10.1.0.9@tcp1"}), max_size=1)
routes = st.dictionaries(
    st.just(("o2ib1", "10.0.0.1@tcp")),
    st.tuples(st.one_of(st.none(), st.integers(1, 5)), st.none()),
    max_size=1,
)
lnets = st.builds(lnet.Lnet, networks, routes, peers, settings)


def current() -> lnet.Lnet:
    return lnet.reported(yaml.safe_load(EXPORT))


def apply(before: lnet.Lnet, plan: lnet.Plan) -> lnet.Lnet:
    """Result on LNet: the removals, then one import."""
    nets = {name: dict(interfaces) for name, interfaces in before.networks.items()}
    ways = dict(before.routes)
    for words in plan.removals:
        given = dict(zip(words[2::2], words[3::2], strict=True))
        if words[0] == "net":
            del nets[given["--net"]][given["--if"]]
        else:
            del ways[(given["--net"], given["--gateway"])]
    text = yaml.safe_load(lnet.to_yaml(plan.additions)) or {}
    added = lnet.reported(text)
    for name, interfaces in added.networks.items():
        for interface, values in interfaces.items():
            assert interface not in nets.setdefault(name, {}), "LNet refuses what is there already"
            nets[name][interface] = values
    for key, way in added.routes.items():
        assert key not in ways, "LNet refuses what is there already"
        ways[key] = way
    merged = {first: before.peers.get(first, set()) | nids for first, nids in added.peers.items()}
    return lnet.Lnet(nets, ways, {**before.peers, **merged}, {**before.settings, **added.settings})


def test_what_lnetctl_reports_is_read() -> None:
    assert current() == lnet.Lnet(
        {"tcp": {"eth0": {"peer_timeout": 180, "peer_credits": 8, "conns_per_peer": 1}}},
        {("o2ib", "10.0.0.1@tcp"): (-1, 0)},
        {"10.0.0.9@tcp": {"10.0.0.9@tcp"}},
        {"discovery": 1, "transaction_timeout": 150},
    )


@given(lnets, lnets)
def test_the_plan_leads_to_what_is_wanted(before: lnet.Lnet, wanted: lnet.Lnet) -> None:
    after = apply(before, lnet.plan(before, wanted))
    assert lnet.plan(after, wanted).empty
    assert {name for name, interfaces in after.networks.items() if interfaces} == set(wanted.networks)


@given(lnets)
def test_nothing_is_done_where_nothing_differs(wanted: lnet.Lnet) -> None:
    assert lnet.plan(wanted, wanted).empty
    assert lnet.shown(wanted, wanted) == lnet.to_yaml(
        wanted._replace(routes=dict(sorted(wanted.routes.items())))
    )


def test_an_interface_is_added_without_touching_the_others() -> None:
    wanted = lnet.declared([{"name": "tcp0", "interfaces": ["eth0", "eth1"]}], [], [], {"discovery": 1})
    plan = lnet.plan(current(), wanted)
    assert plan.cut == []
    assert plan.removals == [["route", "del", "--net", "o2ib", "--gateway", "10.0.0.1@tcp"]]
    assert plan.additions == lnet.Lnet({"tcp": {"eth1": {}}}, {}, {}, {})


@pytest.mark.parametrize(
    "network",
    [
        {"name": "tcp", "interfaces": ["eth1"]},
        {"name": "tcp", "interfaces": ["eth0"], "tunables": {"peer_credits": 16}},
        {"name": "o2ib", "interfaces": ["eth0"]},
    ],
)
def test_what_ends_connections_is_named(network: dict[str, Any]) -> None:
    assert lnet.plan(current(), lnet.declared([network], [], [], {})).cut == ["eth0 of tcp"]


def test_peers_that_lnet_found_itself_stay() -> None:
    wanted = lnet.declared(
        [{"name": "tcp", "interfaces": ["eth0"]}],
        [{"network": "o2ib", "gateway": "10.0.0.1@tcp"}],
        [["10.0.0.7@tcp", "10.1.0.7@tcp1"]],
        {},
    )
    plan = lnet.plan(current(), wanted)
    assert plan.removals == []
    assert plan.additions.peers == {"10.0.0.7@tcp": {"10.0.0.7@tcp", "10.1.0.7@tcp1"}}


TCP = {"name": "tcp", "interfaces": ["eth0"]}


@pytest.mark.parametrize(
    ("networks", "routes", "peers", "settings", "words"),
    [
        ([{"name": "ether", "interfaces": ["eth0"]}], [], [], {}, "is no network"),
        ([{"name": "tcp", "interfaces": []}], [], [], {}, "names no interface of tcp"),
        ([{"name": "tcp", "interfaces": "eth0"}], [], [], {}, "names no interface of tcp"),
        ([{"name": "tcp", "interfaces": ["eth0; reboot"]}], [], [], {}, "no name of an interface"),
        ([{"name": "tcp", "interfaces": ["eth0", "eth0"]}], [], [], {}, "twice"),
        ([TCP, {"name": "tcp0", "interfaces": ["eth1"]}], [], [], {}, "names tcp twice"),
        ([{**TCP, "tunables": {"ntx": 1}}], [], [], {}, "which it does not have"),
        ([{**TCP, "tunables": {"credits": "many"}}], [], [], {}, "a whole number belongs"),
        ([{**TCP, "interface": "eth0"}], [], [], {}, "has 'interface'"),
        ([TCP], [{"network": "o2ib", "gateway": "10.0.0.1"}], [], {}, "names no network"),
        ([TCP], [{"network": "o2ib", "gateway": "10.0.0.1@tcp1"}], [], {}, "no interface is in tcp1"),
        ([TCP], [{"network": "tcp", "gateway": "10.0.0.1@tcp"}], [], {}, "in itself"),
        ([TCP], [{"network": "o2ib", "gateway": "10.0.0.1@tcp", "hop": 300}], [], {}, "from 1 to 255"),
        ([TCP], [], [["10.0.0.1"]], {}, "names no network"),
        ([TCP], [], [], {"discovry": 1}, "which LNet does not have"),
        ([TCP], [], [], {"discovery": "on"}, "a whole number belongs"),
    ],
)
def test_what_is_refused(networks: Any, routes: Any, peers: Any, settings: Any, words: str) -> None:
    found = list(lnet.problems("lustre_client_", networks, routes, peers, settings))
    assert len(found) == 1 and words in found[0] and found[0].startswith("lustre_client_")
