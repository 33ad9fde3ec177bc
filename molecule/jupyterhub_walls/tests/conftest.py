"""Means of the attackers: notebooks, a shell of another account on the machine, and what lies around it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testinfra.host import Host

ASK = "curl --silent --output /dev/null --write-out '%{{http_code}}' --max-time 8 http://{}/"
# A cloud's metadata service, a machine of the site, one that the site opens to notebooks, and the Internet.
AROUND = ["169.254.169.254", "10.99.0.1", "10.98.0.1", "203.0.113.5"]


def elsewhere(command: str, check: bool = True) -> None:
    subprocess.run(["lab", "exec", "iam", "--", "sh", "-c", command], check=check, capture_output=True)


@pytest.fixture
def around(host: Host, facts: dict[str, str], bench: dict[str, Any], eventually) -> Iterator[None]:
    """Have another machine answer in place of a cloud, the site and the Internet."""
    [gateway] = [entry["address"] for entry in bench["hosts"] if entry["name"] == "iam"]
    for address in AROUND:
        elsewhere(f"ip address replace {address}/32 dev lo")
        host.check_output(f"ip route replace {address}/32 via {gateway}")
    for port in (53, 8000):
        serve = f"/usr/bin/python3 -m http.server --bind 0.0.0.0 --directory /run {port}"
        elsewhere(f"systemd-run --unit=around-{port} --collect {serve}", check=False)
    eventually(lambda: all(host.run(ASK.format(f"{name}:8000")).stdout == "200" for name in AROUND))
    yield
    for address in AROUND:
        host.check_output(f"ip route del {address}/32")
        elsewhere(f"ip address del {address}/32 dev lo", check=False)
    elsewhere("systemctl stop around-53 around-8000", check=False)


@pytest.fixture
def address(host: Host) -> Callable[[str], str]:
    """Return the address of a user's notebook."""

    def find(name: str) -> str:
        path = host.check_output(
            f"systemctl show --property=NetworkNamespacePath --value jupyterhub-notebook-{name}.service"
        )
        return f"172.30.{path.rpartition('-')[2]}"

    return find


@pytest.fixture
def stranger(host: Host) -> Callable[[str], str]:
    """Run a command under an account of the machine that is none of the hub's; return what it prints."""
    return lambda command: host.run(f"runuser --user nobody -- {command}").stdout
