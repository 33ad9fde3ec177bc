"""What `nft` is told about metadata services of clouds; Molecule sees it hold."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import pwd
import shlex
import subprocess
from types import SimpleNamespace

import pytest
from gpufarm_hub.spawning import metadata, network, units


def test_both_engines_refuse_the_same() -> None:
    containers, notebooks = network.rules("172.30.248.1", 8081), metadata.rules([1001])
    for statement in metadata.refused():
        assert statement in containers and statement in notebooks


def test_the_addresses_are_addresses() -> None:
    assert all(ipaddress.ip_network(address).version == 4 for address in metadata.IPV4)
    assert all(ipaddress.ip_network(address).version == 6 for address in metadata.IPV6)
    link_local = ipaddress.ip_network(metadata.IPV4[0])
    assert ipaddress.ip_address("169.254.169.254") in link_local


def test_users_are_added_to_those_that_are_there() -> None:
    told = metadata.rules([1002, 1001, 1002]).split("; add element ")
    assert told[1:] == [f"{metadata.TABLE} users {{ {uid} }}" for uid in (1001, 1002)]
    assert "delete" not in told[0] and "flush set" not in told[0]


def test_a_notebook_that_starts_sees_to_all_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A firewall that was reset is mended by whoever comes next."""
    uids = {"alice": 1001, "bob": 1002}

    def account(name: str) -> SimpleNamespace:
        return SimpleNamespace(pw_uid=uids[name])

    running = [units.name_of(owner) for owner in ("alice/", "alice/second", "gone/")]
    monkeypatch.setattr(units, "running", lambda: running)
    monkeypatch.setattr(pwd, "getpwnam", account)
    program, told = shlex.split(metadata.before_start(1002))
    assert program == "+/usr/sbin/nft" and told == metadata.rules([1001, 1002])
    assert "\n" not in told and not {"%", "$", "'", '"', "\\"} & set(told), "systemd reads these its own way"


@pytest.mark.parametrize("status", [0, 1])
def test_rules_that_nft_refuses_are_told(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def nft(command: list[str], **_how: object) -> subprocess.CompletedProcess[str]:
        assert command == ["/usr/sbin/nft", metadata.rules([])]
        return subprocess.CompletedProcess(command, status, "", "no such table\n")

    monkeypatch.setattr(units, "running", lambda: [])
    monkeypatch.setattr(subprocess, "run", nft)
    if status:
        with pytest.raises(SystemExit, match="were refused: no such table"):
            metadata.main()
    else:
        metadata.main()
