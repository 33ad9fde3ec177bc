# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Booting hosts leave a place for the sockets of those who use them."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from unittest.mock import create_autospec

import pytest

from lab import boot, vm
from lab.hosts import Host
from lab.network import Network
from lab.spec import HostSpec


def test_virtual_machines_alone_take_connections_that_are_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ssh makes no folder for its ControlPath: the first bench after a boot of this machine had none
    sockets = tmp_path / "run" / "gpufarm-lab"
    monkeypatch.setattr("lab.hosts.RUN", sockets)
    monkeypatch.setattr(boot, "RUN", sockets)
    monkeypatch.setattr(vm, "launch", lambda host, network: None)
    monkeypatch.setattr(vm, "answers", lambda host: True)
    host = Host(HostSpec(name="vm", kind="qemu"), "192.0.2.11", "", "one", tmp_path)
    boot.boot([(host, [])], create_autospec(Network, instance=True), ipaddress.IPv4Network("192.0.2.0/24"))
    assert host.ssh_control.parent.is_dir()
    assert host.ssh_control.parent.stat().st_mode & 0o777 == 0o700
