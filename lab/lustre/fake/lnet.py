# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake of lnetctl."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import yaml

from . import network, state

# lnet/include/lnet/lib-lnet.h, lnet/klnds/socklnd and o2iblnd: what an interface has when nothing is said.
TUNABLES = {"peer_timeout": 180, "peer_credits": 8, "peer_buffer_credits": 0, "credits": 256}
LND_TUNABLES = {
    "tcp": {"conns_per_peer": 1},
    "o2ib": {
        "peercredits_hiw": 4,
        "map_on_demand": 1,
        "concurrent_sends": 8,
        "fmr_pool_size": 512,
        "fmr_flush_trigger": 384,
        "fmr_cache": 1,
        "ntx": 512,
        "conns_per_peer": 1,
    },
}
DRIVERS = {"tcp": "ksocklnd", "o2ib": "ko2iblnd"}
ETHERNET_TYPES = re.compile("(tcp|o2ib)[0-9]{0,5}")


def complain(action: str, what: str, code: int, words: str) -> NoReturn:
    print(f'{action}:\n    - {what}:\n          errno: -{code}\n          descr: "{words}"', file=sys.stderr)
    raise SystemExit(256 - code)


def need(configured: bool = True) -> None:
    with state.kernel() as known:
        if not known["loaded"] and state.NETLINK:
            state.fail(234, "Writer error: failed to resolve Netlink family id")
        if not known["loaded"]:
            state.fail(
                1,
                "opening /dev/lnet failed: No such file or directory\n"
                "hint: the kernel modules may not be loaded",
            )
        if configured and not known["configured"]:
            complain("show", "net", 100, "cannot get networks: Network is down")


def address(interface: str) -> str | None:
    shown = state.run("ip", "-json", "-4", "address", "show", "dev", interface)
    if shown.returncode != 0:
        return None
    found = [one["local"] for link in json.loads(shown.stdout) for one in link.get("addr_info", [])]
    return found[0] if found else None


def is_rdma(interface: str) -> bool:
    """ko2iblnd takes interfaces with an RDMA device; ARPHRD_INFINIBAND is 32. A test may name others."""
    named = state.TOLD / "rdma"
    if named.exists() and interface in named.read_text().split():
        return True
    kind = Path("/sys/class/net") / interface / "type"
    return kind.exists() and kind.read_text().strip() == "32"


def add_net(net: str, interfaces: list[str], tunables: dict[str, int], lnd: dict[str, int]) -> None:
    net = network.canonical(net)
    if not ETHERNET_TYPES.fullmatch(net):
        complain("add", "net", 22, f"cannot parse net '{net}'")
    kind = "o2ib" if net.startswith("o2ib") else "tcp"
    # lnet/lnet/api-ni.c, lnet_load_lnd: "Can't load LND"
    if state.run("modinfo", "-F", "vermagic", DRIVERS[kind]).returncode != 0:
        complain("add", "net", 22, "cannot add network: Invalid argument")
    defaults = LND_TUNABLES[kind]
    if any(name not in defaults for name in lnd):
        complain("add", "net", 22, "cannot add network: Invalid argument")
    for interface in interfaces:
        ip = address(interface)
        if ip is None:
            complain("add", "net", 19, "cannot add network: No such device")
        if net.startswith("o2ib") and not is_rdma(interface):
            complain("add", "net", 19, "cannot add network: No such device")
        with state.kernel(write=True) as known:
            there = known["nets"].setdefault(net, {})
            if interface in there:
                complain("add", "net", 17, "cannot add network: File exists")
            there[interface] = {
                "nid": f"{ip}@{net}",
                "tunables": {**TUNABLES, **tunables},
                "lnd tunables": {**defaults, **lnd},
            }
            known["configured"] = True
    network.start()


def del_net(net: str, interfaces: list[str]) -> None:
    net = network.canonical(net)
    with state.kernel(write=True) as known:
        there = known["nets"].get(net, {})
        if not there or any(one not in there for one in interfaces):
            complain("del", "net", 22, "cannot del network: Invalid argument")
        for interface in interfaces or list(there):
            del there[interface]
        if not there:
            del known["nets"][net]


def add_route(net: str, gateway: str, hop: int, priority: int) -> None:
    found = network.NID.fullmatch(gateway)
    if not found:
        complain("add", "route", 22, f"cannot parse gateway NID '{gateway}'")
    with state.kernel(write=True) as known:
        if network.canonical(found[2]) not in known["nets"]:
            complain("add", "route", 113, "cannot add route: No route to host")
        if any((one["net"], one["gateway"]) == (net, gateway) for one in known["routes"]):
            complain("add", "route", 17, "cannot add route: File exists")
        known["routes"].append({"net": net, "gateway": gateway, "hop": hop, "priority": priority})


def del_route(net: str, gateway: str) -> None:
    with state.kernel(write=True) as known:
        left = [one for one in known["routes"] if (one["net"], one["gateway"]) != (net, gateway)]
        if len(left) == len(known["routes"]):
            complain("del", "route", 2, "cannot del route: No such file or directory")
        known["routes"] = left


def add_peer(primary: str, nids: list[str]) -> None:
    for nid in (primary, *nids):
        if not network.NID.fullmatch(nid):
            complain("add", "peer_ni", 22, f"cannot parse NID '{nid}'")
    with state.kernel(write=True) as known:
        old = next((one for one in known["peers"] if one["primary nid"] == primary), None)
        if old is None:
            old = {"primary nid": primary, "Multi-Rail": True, "peer ni": [{"nid": primary, "state": "NA"}]}
            known["peers"].append(old)
        there = {one["nid"] for one in old["peer ni"]}
        old["peer ni"] += [{"nid": nid, "state": "NA"} for nid in nids if nid not in there]


def del_peer(primary: str) -> None:
    with state.kernel(write=True) as known:
        left = [one for one in known["peers"] if one["primary nid"] != primary]
        if len(left) == len(known["peers"]):
            complain("del", "peer_ni", 2, "cannot del peer: No such file or directory")
        known["peers"] = left


def set_global(name: str, value: int) -> None:
    with state.kernel(write=True) as known:
        if name not in known["global"]:
            state.fail(1, f"Unknown command: {name}")
        # lnet/lnet/api-ni.c, transaction_timeout_set and retry_count_set
        if name == "transaction_timeout" and value <= known["global"]["retry_count"]:
            complain("add", name, 22, f"cannot set {name}: Invalid argument")
        known["global"][name] = value


def shown_nets() -> list[dict[str, Any]]:
    local = {"nid": "0@lo", "status": "up"}
    found: list[dict[str, Any]] = [{"net type": "lo", "local NI(s)": [local]}]
    with state.kernel() as known:
        for net, interfaces in known["nets"].items():
            found.append(
                {
                    "net type": net,
                    "local NI(s)": [
                        {
                            "nid": one["nid"],
                            "status": status(interface),
                            "interfaces": {0: interface},
                            "statistics": {"send_count": 0, "recv_count": 0, "drop_count": 0},
                            "tunables": one["tunables"],
                            "lnd tunables": one["lnd tunables"],
                            "dev cpt": -1,
                            "CPT": "[0]",
                        }
                        for interface, one in interfaces.items()
                    ],
                }
            )
    return found


def status(interface: str) -> str:
    state_file = Path("/sys/class/net") / interface / "operstate"
    return "up" if state_file.exists() and state_file.read_text().strip() in ("up", "unknown") else "down"


def show(**sections: Any) -> None:
    print(yaml.safe_dump({name: body for name, body in sections.items() if body}, sort_keys=False), end="")


def export() -> None:
    with state.kernel() as known:
        if not known["loaded"] and state.NETLINK:
            # It counts as done (seen with 2.17.57).
            print("Writer error: failed to resolve Netlink family id", file=sys.stderr)
            return
    need(configured=False)
    with state.kernel() as known:
        configured, routes, peers, values = (
            known[one] for one in ("configured", "routes", "peers", "global")
        )
    if configured:
        show(**{"net": shown_nets(), "route": routes, "peer": peers, "global": values})


def read_file(path: str) -> dict[str, Any]:
    try:
        found = yaml.safe_load(Path(path).read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        state.fail(1, f"lnetctl: cannot read {path}: {error}")
    return dict(found)


def do_import(path: str) -> None:
    """Apply a file; what cannot be applied is complained about and the rest goes on (lnetctl-import(8))."""
    need(configured=False)
    wanted, codes = read_file(path), []

    def attempt(what: Callable[..., None], *values: Any) -> None:
        try:
            what(*values)
        except SystemExit as ended:
            codes.append(int(str(ended.code)))

    with state.kernel(write=True) as known:
        known["configured"] = True
    for net in wanted.get("net", []):
        for one in net.get("local NI(s)", []):
            if net["net type"] != "lo":
                interfaces = [str(name) for name in one.get("interfaces", {}).values()]
                attempt(
                    add_net, net["net type"], interfaces, one.get("tunables", {}), one.get("lnd tunables", {})
                )
    for route in wanted.get("route", []):
        attempt(add_route, route["net"], route["gateway"], route.get("hop", -1), route.get("priority", 0))
    for peer in wanted.get("peer", []):
        attempt(add_peer, peer["primary nid"], [one["nid"] for one in peer.get("peer ni", [])])
    for name, value in wanted.get("global", {}).items():
        attempt(set_global, name, value)
    raise SystemExit(codes[0] if codes else 0)


def configure(everything: bool) -> None:
    """Start LNet; with --all, or when a mount does it, with the networks of the modules (lnetctl(8))."""
    if not (state.RUN / "loaded").exists():
        state.load("lnet")
    with state.kernel(write=True) as known:
        known["configured"] = True
        first = [
            one
            for one in sorted(one.name for one in Path("/sys/class/net").iterdir())
            if one != "lo" and address(one)
        ]
        wanted = everything and not known["nets"] and first
    if wanted:
        add_net("tcp", first[:1], {}, {})  # lnet/lnet/config.c: `networks` is "tcp", its first interface


def ping(nid: str) -> None:
    need()
    answer = network.ask(nid, {"ping": nid})
    if answer is None:
        complain("manage", "ping", 1, f"failed to ping {nid}: Input/output error")
    show(
        ping=[
            {
                "primary nid": nid,
                "Multi-Rail": True,
                "peer ni": [{"nid": "0@lo"}, *({"nid": one} for one in answer["nids"])],
            }
        ]
    )


def lnetctl(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="lnetctl", add_help=False)
    parser.add_argument("subject")
    parser.add_argument("action", nargs="?", default="")
    parser.add_argument("value", nargs="?")
    for name in ("--net", "--if", "--gateway", "--prim_nid", "--nid"):
        parser.add_argument(name, dest=name.strip("-").replace("if", "interfaces"))
    for name in ("--hop", "--prio"):
        parser.add_argument(name, type=int)
    for name in (*TUNABLES, *LND_TUNABLES["o2ib"]):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, dest=f"tune_{name}")
    for name in ("--all", "--backup", "--verbose", "-v"):
        parser.add_argument(name, action="store_true")
    asked = parser.parse_args(words)
    interfaces = [one for one in (asked.interfaces or "").split(",") if one]
    given = {
        name.removeprefix("tune_"): value
        for name, value in vars(asked).items()
        if name.startswith("tune_") and value is not None
    }
    common = {name: value for name, value in given.items() if name in TUNABLES}
    lnd = {name: value for name, value in given.items() if name not in TUNABLES}
    command = f"{asked.subject} {asked.action}".strip()
    if command not in ("lnet configure", "lnet unconfigure", "export") and asked.subject != "import":
        need(configured=command != "net add")
    nids = (asked.nid or "").split(",")
    actions: dict[str, Callable[[], None]] = {
        "lnet configure": lambda: configure(asked.all),
        "lnet unconfigure": unconfigure,
        "net show": lambda: show(net=[one for one in shown_nets() if asked.net in (None, one["net type"])]),
        "net add": lambda: add_net(asked.net or "", interfaces, common, lnd),
        "net del": lambda: del_net(asked.net or "", interfaces),
        "route add": lambda: add_route(
            asked.net, asked.gateway, -1 if asked.hop is None else asked.hop, asked.prio or 0
        ),
        "route del": lambda: del_route(asked.net, asked.gateway),
        "peer add": lambda: add_peer(asked.prim_nid or nids[0], nids),
        "peer del": lambda: del_peer(asked.prim_nid),
        "export": export,
    }
    if asked.subject == "import":
        do_import(asked.action)
    elif asked.subject == "ping":
        ping(asked.action)
    elif asked.subject == "set":
        set_global(asked.action, int(asked.value))
    elif command in actions:
        actions[command]()
    else:
        state.fail(1, f"Unknown command: {command}")


def unconfigure() -> None:
    if state.clients() or state.targets():
        complain("unconfigure", "lnet", 16, "LNet unconfigure error: Device or resource busy")
    with state.kernel(write=True) as known:
        known.update(
            {"configured": False, "nets": {}, "routes": [], "peers": [], "global": dict(state.GLOBAL)}
        )
    state.run("systemctl", "stop", "lustre-fake-acceptor")
