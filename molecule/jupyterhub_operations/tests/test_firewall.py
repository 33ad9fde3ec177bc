"""Admitted connections, and other rules that stay untouched."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import socket

import pytest

TABLE = "table inet jupyterhub"


def opens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=2).close()
    except TimeoutError:
        return False
    except ConnectionRefusedError:
        pass  # nobody listens there, but the firewall let us ask
    return True


@pytest.mark.parametrize("port", [22, 80, 443, 9100])
def test_what_was_asked_for_is_let_in(address, port):
    assert opens(address, port)


@pytest.mark.parametrize("port", [8001, 8081, 8888, 12345])
def test_nothing_else_is(address, port):
    assert not opens(address, port)


def test_rules_outlive_a_restart_of_the_distributions_firewall(host, eventually):
    """It begins by deleting every table."""
    for action in ("restart", "reload"):
        host.check_output(f"systemctl {action} nftables")
        eventually(lambda: TABLE in host.check_output("nft list tables"))


def test_other_tables_stay(host):
    host.check_output("nft add table inet somebody")
    host.check_output("systemctl restart jupyterhub-firewall")
    tables = host.check_output("nft list tables")
    assert "table inet somebody" in tables and TABLE in tables
    host.check_output("nft delete table inet somebody")
