"""The machine has no device of the role, and its interfaces have their addresses."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_no_device_is_left(host):
    assert host.check_output("rdma link show") == ""


def test_the_interface_keeps_its_address(host):
    assert " 10.79.0." in host.check_output("ip -brief -4 address show eth1")


def test_no_setting_is_left(host):
    assert "pml = ucx" not in host.file("/etc/openmpi/openmpi-mca-params.conf").content_string
    assert not host.file("/etc/ucx").exists
