"""The rules around notebooks, their addresses, and what is tried at the end; Molecule sees them hold."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import pwd
import re
import shutil
import socket
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from gpufarm_hub.spawning import addresses, barrier, probe, walls
from gpufarm_hub.spawning.walls import Bridge, Walls

ROOT = Path(__file__).resolve().parents[3]
BRIDGES = (Bridge("jupyterhub0", "172.30.248.0/22", 8082),)
WALLS = Walls("172.30.252.0/22", BRIDGES, callers=(999,))
BOTH = '{ "jhub-*", "jupyterhub0" }'


def chain(name: str, given: Walls = WALLS) -> list[str]:
    _before, _start, rest = walls.rules(given).partition(f"  chain {name} {{\n")
    return [line.strip() for line in rest.partition("\n  }")[0].splitlines() if line.strip()]


def test_both_engines_have_the_same_rules() -> None:
    for hook, direction in (("input", "iifname"), ("forward", "iifname"), ("forward", "oifname")):
        assert any(line.startswith(f"{direction} {BOTH} jump") for line in chain(hook))
    assert f"oifname {BOTH} jump from_machine" in chain("output")
    # They replace what is there, in one step.
    assert walls.rules(WALLS).startswith(f"table {walls.TABLE}\ndelete table {walls.TABLE}\n")


def test_only_root_and_the_proxy_open_connections_to_notebooks() -> None:
    assert chain("from_machine") == [
        "ct state established,related accept",
        "meta skuid { 0, 999 } accept",
        "reject",
    ]
    assert chain("from_world") == ["ct state established,related accept", "drop"]


def test_of_the_machine_notebooks_reach_the_gate_and_a_name_server() -> None:
    assert chain("to_machine") == [
        "fib saddr . iif oif missing drop",
        "ct state established,related accept",
        'iifname "jupyterhub0" ip daddr 172.30.248.1 tcp dport 8082 accept',
        "# The machine may be its own name server.",
        walls.NAMES,
        "reject",
    ]


def test_of_the_world_notebooks_reach_the_internet_and_what_the_site_opens() -> None:
    given = Walls(
        "172.30.252.0/22",
        BRIDGES,
        callers=(999,),
        attached=("131.154.1.0/24", "10.77.1.0/24"),
        networks=("10.1.2.3/32", "169.254.0.0/16"),
    )
    rules = chain("to_world", given)
    assert rules[:3] == [
        "fib saddr . iif oif missing drop",
        f"oifname {BOTH} reject",
        "meta nfproto ipv6 reject",
    ]
    metadata = "ip daddr { 100.100.100.200/32, 168.63.129.16/32, 169.254.0.0/16 } reject"
    opened = "ip daddr { 10.1.2.3/32, 169.254.0.0/16 } accept"
    closed = "ip daddr { 10.0.0.0/8, 100.64.0.0/10, 131.154.1.0/24, 172.16.0.0/12, 192.168.0.0/16 } reject"
    # A metadata service stays closed whatever the site opens.
    assert rules[3:] == [walls.NAMES, metadata, opened, closed, "accept"]
    assert not [line for line in chain("to_world") if "10.1.2.3" in line]
    assert chain("to_world", replace(given, internet=False)) == [*rules[:-1], "reject"]


def test_jobs_on_nodes_are_kept_from_the_same_metadata_services() -> None:
    rules = (ROOT / "roles" / "slurm_node" / "files" / "metadata.nft").read_text()
    [closed] = re.findall(r"ip daddr \{ ([^}]*) \} jump metadata", rules)
    assert set(closed.split(", ")) == set(walls.METADATA)


def test_addresses_come_round_again_after_all_others(tmp_path: Path) -> None:
    subnet = "172.30.252.0/29"
    first = [addresses.free(subnet, tmp_path) for _ in range(4)]
    assert sorted(first) == [f"172.30.252.{number}" for number in (2, 3, 4, 5)]
    assert [addresses.free(subnet, tmp_path) for _ in range(4)] == first
    for address in first[1:]:
        (tmp_path / f"jhub-{walls.name_of(address)}").touch()
    assert {addresses.free(subnet, tmp_path) for _ in range(4)} == {first[0]}
    (tmp_path / f"jhub-{walls.name_of(first[0])}").touch()
    with pytest.raises(addresses.NoAddressError, match="try again later"):
        addresses.free(subnet, tmp_path)
    assert addresses.of_probe(subnet) == "172.30.252.6"


def test_a_notebook_requires_its_network_and_its_way_to_the_hub() -> None:
    assert walls.network_of("172.30.252.7") == {
        "NetworkNamespacePath": "/run/netns/jhub-252.7",
        "Requires": ["jupyterhub-wall@252.7.service", "jupyterhub-door@252.7.socket"],
        "After": ["jupyterhub-wall@252.7.service", "jupyterhub-door@252.7.socket"],
    }
    longest = f"{walls.NAMESPACE}{walls.name_of('172.30.255.255')}"
    assert len(longest) <= 15, "Linux, IFNAMSIZ"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("search x\nnameserver 10.1.1.1\n", "search x\nnameserver 10.1.1.1\n"),
        ("nameserver 127.0.0.53\noptions edns0\n", "nameserver 172.30.252.1\noptions edns0\n"),
        ("nameserver ::1\n# nameserver 127.0.0.1\n", "nameserver 172.30.252.1\n# nameserver 127.0.0.1\n"),
    ],
)
def test_a_name_server_at_loopback_is_at_the_hubs_address(given: str, wanted: str) -> None:
    assert walls.resolv_conf(given, "172.30.252.1") == wanted


def test_networks_of_the_machine_are_known_and_those_of_notebooks_left_out() -> None:
    routes = [
        {"dst": "131.154.1.0/24", "dev": "eth0"},
        {"dst": "default", "dev": "ppp0"},
        {"dst": "172.30.252.7", "dev": "jhub-252.7"},
        {"dst": "172.30.248.0/22", "dev": "jupyterhub0"},
    ]
    assert barrier.attached(json.dumps(routes), BRIDGES) == ("131.154.1.0/24",)
    assert barrier.attached("", BRIDGES) == ()


class Machine:
    """Notebooks that the walls are built for."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
        self.calls: list[list[str]] = []
        self.refused, self.passing = "", False
        self.settings = folder / "settings.json"
        given = {
            "subnet": "172.30.252.0/22",
            "bridges": [asdict(bridge) for bridge in BRIDGES],
            "proxy_account": "front",
            "networks": ["10.1.2.3/32"],
            "internet": True,
        }
        self.settings.write_text(json.dumps({"walls": given}))
        for name in ("RESOLV_CONF", "RESOLVED", "FORWARD"):
            monkeypatch.setattr(barrier, name, folder / name)
        for name, path in (("FOLDER", "walls"), ("RULES", "walls/rules.nft"), ("NAMES", "walls/names")):
            monkeypatch.setattr(barrier, name, folder / path)
        barrier.RESOLV_CONF.write_text("nameserver 10.1.1.1\n")
        monkeypatch.setattr(pwd, "getpwnam", lambda name: SimpleNamespace(pw_uid=987))
        monkeypatch.setattr(subprocess, "run", self)
        monkeypatch.setattr(shutil, "which", lambda name: name if name in programs else None)

    def __call__(self, command: list[str], **_how: object) -> subprocess.CompletedProcess[str]:
        self.calls.append(list(command))
        is_question = any(word.startswith(("--check", "--query")) for word in command)
        status = int(command[0] == self.refused or (is_question and not self.passing))
        told = "[]" if command[0] == "ip" else ""
        return subprocess.CompletedProcess(command, status, told, "no such table\n")

    def changes(self) -> list[str]:
        changing = ("--insert", "--delete", "--add", "--remove")
        return [" ".join(call) for call in self.calls if any(word.startswith(changing) for word in call)]


def test_walls_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch)
    barrier.up(machine.settings)
    text = barrier.RULES.read_text()
    assert "meta skuid { 0, 987 } accept" in text and "ip daddr { 10.1.2.3/32 } accept" in text
    assert machine.calls[-1] == ["nft", "--file", str(barrier.RULES)]
    assert barrier.FORWARD.read_text() == "1\n"
    assert barrier.names() is None and machine.changes() == []


IPTABLES = [
    "iptables --wait --insert FORWARD --in-interface jhub-+ --jump ACCEPT",
    "iptables --wait --insert FORWARD --out-interface jhub-+ --jump ACCEPT",
]
FIREWALLD = [
    "firewall-cmd --timeout=0 --zone=trusted --add-interface=jhub-+",
    "firewall-cmd --permanent --zone=trusted --add-interface=jhub-+",
]


@pytest.mark.parametrize(("program", "added"), [("iptables", IPTABLES), ("firewall-cmd", FIREWALLD)])
def test_other_firewalls_let_pass_what_was_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, added: list[str]
) -> None:
    machine = Machine(tmp_path, monkeypatch, program)
    barrier.up(machine.settings)
    assert machine.changes() == added
    machine.calls, machine.passing = [], True
    barrier.up(machine.settings)
    assert machine.changes() == []
    barrier.down()
    opposite = [call.replace("--insert", "--delete").replace("--add", "--remove") for call in added]
    assert machine.changes() == opposite
    assert not barrier.FOLDER.exists()


def test_a_firewalld_that_does_not_run_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch, "firewall-cmd")
    machine.refused = "firewall-cmd"
    barrier.up(machine.settings)
    assert machine.changes() == []


def test_notebooks_are_given_name_servers_that_they_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, monkeypatch)
    barrier.RESOLV_CONF.write_text("nameserver 127.0.0.53\n")
    barrier.up(machine.settings)
    assert barrier.names() == barrier.NAMES
    assert barrier.NAMES.read_text() == "nameserver 172.30.252.1\n"
    assert barrier.NAMES.stat().st_mode & 0o777 == 0o644
    barrier.RESOLVED.write_text("nameserver 192.0.2.1\n")
    barrier.up(machine.settings)
    assert barrier.NAMES.read_text() == "nameserver 192.0.2.1\n"
    barrier.RESOLV_CONF.write_text("nameserver 192.0.2.1\n")
    barrier.up(machine.settings)
    assert barrier.names() is None


def test_rules_that_are_refused_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch)
    machine.refused = "nft"
    with pytest.raises(barrier.BarrierError, match="nft refused the walls around notebooks: no such table"):
        barrier.up(machine.settings)


def test_what_the_probe_tries() -> None:
    wanted, unwanted = probe.targets(
        "http://127.0.0.1:8081", "http://127.0.0.1:8001", "https://gpu1.example.org", "172.30.252.0/22"
    )
    assert wanted == "127.0.0.1:8081"
    assert unwanted == [
        *("172.30.252.1:8081", "172.30.252.1:8001", "172.30.252.1:443"),
        *("127.0.0.1:8001", "169.254.169.254:80"),
    ]


def test_the_probe_tells_what_it_reaches() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as bound:
        there = f"127.0.0.1:{server.getsockname()[1]}"
        bound.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{bound.getsockname()[1]}"
        assert probe.problems(there, [gone]) == []
        assert probe.problems(gone, [there, gone]) == [
            f"a notebook reaches {there}.",
            f"a notebook does not reach the hub at {gone}.",
        ]
