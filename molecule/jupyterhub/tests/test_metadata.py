"""Notebooks cannot ask what a cloud tells its machines; the machine itself and others' accounts can."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

ASK = "curl --silent --output /dev/null --write-out '%{{http_code}}' --max-time 20 http://{}/"
ADDRESSES = ["169.254.169.254/32", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128"]
SERVICES = ["169.254.169.254:8000", "100.100.100.200:8000", "168.63.129.16:8000", "[fd00:ec2::254]:8000"]
NAMES = "169.254.169.254:53"


@pytest.fixture
def cloud(host, eventually):
    """Have the machine itself answer in place of a cloud."""
    for address in ADDRESSES:
        host.check_output(f"ip address replace {address} dev lo{' nodad' if ':' in address else ''}")
    for port in (8000, 53):
        serve = f"/usr/bin/python3 -m http.server --bind :: --directory /run {port}"
        host.check_output(f"systemd-run --unit=cloud-{port} --collect {serve}")
    for name in [*SERVICES, NAMES]:
        eventually(lambda name=name: host.run(ASK.format(name)).stdout == "200")
    yield
    host.run("systemctl stop cloud-8000 cloud-53")
    for address in ADDRESSES:
        host.run(f"ip address del {address} dev lo")


@pytest.mark.usefixtures("cloud")
def test_notebooks_cannot_ask_metadata_services(host, shell, eventually):
    run = shell("alice")

    def refused() -> list[str]:
        return [name for name in SERVICES if run(ASK.format(name)) == "000"]

    assert refused() == SERVICES
    assert run(ASK.format(NAMES)) == "200", "some clouds have their name server there"
    for name in SERVICES:
        assert host.check_output(ASK.format(name)) == "200"
        assert host.check_output(f"runuser --user nobody -- {ASK.format(name)}") == "200"
    # The distribution's rules begin by deleting everybody's.
    host.check_output("systemctl restart nftables")
    eventually(lambda: refused() == SERVICES)
    host.check_output("systemctl reload nftables")
    eventually(lambda: refused() == SERVICES)
    host.check_output("systemctl stop nftables")


@pytest.mark.usefixtures("cloud")
def test_who_starts_a_notebook_mends_the_rules_of_all(host, visit, shell):
    run = shell("alice")
    host.check_output("nft flush ruleset")
    visit("bob").spawn()
    assert [run(ASK.format(name)) for name in SERVICES] == ["000"] * len(SERVICES)


def test_a_program_in_the_home_does_not_run_as_root(host, shell, visit):
    """What a unit runs before the notebook, it runs as root in the user's home."""
    run = shell("alice")
    run("for name in nft python3 sitecustomize.py; do printf '#!/bin/sh\\nid > /tmp/x' > ~/$name; done")
    run("chmod +x ~/nft ~/python3; cp ~/nft ~/.profile")
    alice = visit("alice")
    alice.stop()
    alice.spawn()
    shown = host.check_output(
        "systemctl show --property=ExecStartPre --value jupyterhub-notebook-alice.service"
    )
    assert "path=/usr/sbin/nft " in shown
    assert alice.execute("import glob; print(glob.glob('/tmp/x'))") == "[]"
    alice.execute(
        "import os; [os.remove(os.path.expanduser(f'~/{n}')) for n in ('nft', 'python3', '.profile')]"
    )
