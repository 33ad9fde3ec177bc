"""Attacks of a user on another's notebook, on the machine, and on its surroundings."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from conftest import AROUND, ASK

from lab.visitor import Refused

# Binds every port that a user may have, on all addresses, and waits; no process may have many files open.
OCCUPY = """
import os, socket, time
read, write = os.pipe()
for first in range(1024, 65536, 504):
    if not os.fork():
        held = []
        for port in range(first, first + 504):
            held.append(socket.socket())
            try:
                held[-1].bind(("0.0.0.0", port))
                held[-1].listen()
            except OSError:
                held.pop()
        os.write(write, f"{len(held)} ".encode())
        time.sleep(600)
os.close(write)
told = ""
while told.count(" ") < 128:
    told += os.read(read, 9999).decode()
print(sum(map(int, told.split())), flush=True)
time.sleep(600)
"""
# Binds an address that is not the machine's, which needs no privilege (ip(7), IP_FREEBIND), and answers.
IMPOSTOR = """
import http.server, socket, sys
class Server(http.server.HTTPServer):
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_IP, 15, 1)
        super().server_bind()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.headers, flush=True)
        self.send_error(418)
    do_POST = do_GET
Server((sys.argv[1], 8888), Handler).serve_forever()
"""
BACKGROUND = """
import subprocess, sys
started = subprocess.Popen([sys.executable, *{!r}], stdout=subprocess.PIPE, text=True)
"""


def test_who_takes_all_ports_is_in_nobodys_way(visit, address):
    bob = visit("bob")
    bob.spawn()
    taken = bob.execute(f"{BACKGROUND.format(['-c', OCCUPY])}print(started.stdout.readline())")
    assert int(taken) > 60000
    alice = visit("alice")
    alice.spawn()
    assert alice.execute("import getpass; print(getpass.getuser())") == "alice"
    assert address("alice") != address("bob")


def test_nobody_answers_in_anothers_name(host, visit, address):
    """Neither from a shell of the machine nor from a notebook, also if they come first."""
    alice, bob = visit("alice"), visit("bob")
    bob.spawn()
    network, _dot, last = address("bob").rpartition(".")
    coming = [f"{network}.{int(last) + number}" for number in (1, 2)]
    for number, name in enumerate(coming):
        run = f"systemd-run --unit=impostor-{number} --collect --property=User=nobody"
        host.check_output(f"{run} python3 -c '{IMPOSTOR}' {name}")
        bob.execute(BACKGROUND.format(["-c", IMPOSTOR, name]))
    try:
        alice.spawn()
        assert address("alice") in coming
        assert alice.execute("import getpass; print(getpass.getuser())") == "alice"
        assert host.run("journalctl --unit impostor-0 --unit impostor-1 | grep --ignore-case cookie").rc
    finally:
        host.run("systemctl stop impostor-0 impostor-1")


def test_what_listens_in_a_notebook_is_its_users(visit, shell, stranger, address):
    run, bob, alice = shell("bob"), visit("bob"), visit("alice")
    for name, port in (("127.0.0.1", 6006), ("0.0.0.0", 6007)):
        run(f"cd /tmp; nohup python3 -m http.server --bind {name} {port} > /dev/null 2>&1 & sleep 1")
        assert run(ASK.format(f"127.0.0.1:{port}")) == "200"
        assert "Directory listing" in bob.page(f"/user/bob/proxy/{port}/")
        with pytest.raises(Refused) as no:
            alice.page(f"/user/bob/proxy/{port}/")
        assert no.value.status in (403, 404)
    others, name = shell("alice"), address("bob")
    for target in ("127.0.0.1:6006", "127.0.0.1:6007", f"{name}:6006", f"{name}:6007", f"{name}:8888"):
        assert others(ASK.format(target)) == "000"
        assert stranger(ASK.format(target)) == "000"


def test_abstract_sockets_are_not_shared(shell):
    """Files in /tmp are a notebook's own; these have no file."""
    begin = "import socket, time; s = socket.socket(socket.AF_UNIX)"
    serve = f"{begin}; s.bind(chr(0) + 'x'); s.listen(); time.sleep(99)"
    connect = f"{begin}; s.connect(chr(0) + 'x'); print('open')"
    alice, bob = shell("alice"), shell("bob")
    alice(f'nohup python3 -c "{serve}" > /dev/null 2>&1 & sleep 1')
    assert alice(f'python3 -c "{connect}"') == "open"
    assert "refused" in bob(f'python3 -c "{connect}"')


def test_a_notebook_reaches_nothing_of_the_machine_but_the_hub(host, shell, facts):
    run = shell("alice")
    assert run(ASK.format("127.0.0.1:8081").removesuffix("/") + "/hub/api/") == "200"
    host.check_output(
        "systemd-run --unit=service --collect python3 -m http.server --bind 0.0.0.0 --directory /run 9090"
    )
    try:
        for name in ("127.0.0.1", "172.30.252.1", facts["address"]):
            for port in (22, 8001, 8888, 9090):
                assert run(ASK.format(f"{name}:{port}")) == "000"
        assert "000" in run(ASK.format("172.30.252.1:8081"))
    finally:
        host.run("systemctl stop service")


@pytest.mark.usefixtures("around")
def test_a_notebook_reaches_the_internet_and_what_the_site_opens(host, shell, eventually):
    run = shell("alice")

    def answers(port: int) -> list[str]:
        return [run(ASK.format(f"{name}:{port}")) for name in AROUND]

    assert answers(8000) == ["000", "000", "200", "200"]
    assert answers(53) == ["200"] * 4, "a name server may be anywhere"
    # The distribution's rules begin by deleting everybody's.
    for action in ("restart", "reload"):
        host.check_output(f"systemctl {action} nftables")
        eventually(lambda: host.run("nft list table inet jupyterhub_notebooks").rc == 0)
        assert answers(8000) == ["000", "000", "200", "200"]
    host.check_output("systemctl stop nftables")


@pytest.mark.usefixtures("around")
def test_a_site_can_close_the_internet(host, shell):
    run = shell("alice")
    settings = "/etc/jupyterhub/settings.json"
    host.check_output(f"cp --preserve {settings} /root/settings.json")
    host.check_output(f'sed --in-place \'s/"internet": true/"internet": false/\' {settings}')
    try:
        host.check_output("systemctl restart jupyterhub-walls")
        assert [run(ASK.format(f"{name}:8000")) for name in AROUND] == ["000", "000", "200", "000"]
        assert run(ASK.format("127.0.0.1:8081").removesuffix("/") + "/hub/api/") == "200"
    finally:
        host.check_output(f"mv /root/settings.json {settings}")
        host.check_output("systemctl restart jupyterhub-walls")
    assert run(ASK.format(f"{AROUND[3]}:8000")) == "200"


@pytest.mark.usefixtures("around")
def test_who_starts_a_notebook_mends_the_rules_of_all(host, visit, shell):
    run = shell("alice")
    host.check_output("nft flush ruleset")
    visit("bob").spawn()
    assert [run(ASK.format(f"{name}:8000")) for name in AROUND] == ["000", "000", "200", "200"]


@pytest.mark.usefixtures("around")
def test_nobody_sends_in_anothers_name(host, visit, shell, address):
    run = shell("alice")
    visit("bob").spawn()
    mine, other = address("alice"), address("bob")
    for attempt in (f"ip address add {other}/32 dev eth0", "ip link set eth0 down", "nft flush ruleset"):
        assert "not permitted" in run(f"/usr/sbin/{attempt}")
    # Even if there was a way: as root in the namespace.
    inside = f"ip netns exec jhub-{'.'.join(mine.split('.')[2:])}"
    ask = f"{inside} {ASK.format('203.0.113.5:8000')}"
    assert host.run(f"{ask} --interface {mine}").stdout == "200"
    host.check_output(f"{inside} ip address add {other}/32 dev eth0")
    assert host.run(f"{ask} --interface {other}").stdout == "000"


def test_no_name_of_a_server_leads_to_the_notebook_of_somebody_else(host, visit, eventually):
    """systemd makes a link in /run by what follows a colon in the name of a folder there."""
    alice, bob = visit("alice"), visit("bob")
    running = "systemctl list-units --plain --no-legend --state=active 'jupyterhub-notebook-*:*'"
    mine = [("alice", "jupyterhub-notebook-bob"), ("alice", "gpu"), ("bob", "gpu")]
    for visitor, (owner, name) in zip((alice, alice, bob), mine, strict=True):
        address = f"/hub/api/users/{owner}/servers/{name}"
        visitor._api("POST", address, json={}).raise_for_status()
        eventually(lambda owner=owner, name=name: f"{owner}:{name}.service" in host.check_output(running))
        if name != "gpu":
            bob.spawn()
            assert host.run("find /run -maxdepth 1 -type l -name '*.service'").stdout == ""
            bob.stop()
            visitor._api("DELETE", address).raise_for_status()
            eventually(lambda: host.run(running).stdout == "")
    for visitor, (owner, name) in zip((alice, bob), mine[1:], strict=True):
        visitor._api("DELETE", f"/hub/api/users/{owner}/servers/{name}").raise_for_status()
    eventually(lambda: host.run(running).stdout == "")
    assert host.run("ls -d /run/jupyterhub-environment-*").stdout == ""


def test_a_network_is_gone_with_its_notebook(host, visit, eventually):
    alice = visit("alice")
    alice.spawn()
    listed = "ls /run/netns; systemctl list-units --plain --no-legend 'jupyterhub-wall@*' 'jupyterhub-door@*'"
    assert "jhub-" in host.check_output(listed)
    alice.stop()
    eventually(lambda: not host.run(f"{listed} --all").stdout)
    assert "jhub-" not in host.check_output("ip link")


def test_notebooks_outlive_hub_proxy_and_walls(host, visit, hub_answers, eventually):
    alice = visit("alice")
    alice.spawn()
    shown = "systemctl show --property=MainPID --value jupyterhub-notebook-alice.service"
    before = host.check_output(shown)
    for unit in ("jupyterhub", "jupyterhub-proxy", "jupyterhub-walls"):
        host.check_output(f"systemctl restart {unit}")
        eventually(hub_answers)
        eventually(alice.running)
        assert alice.execute("print(6 * 7)") == "42"
    assert host.check_output(shown) == before
