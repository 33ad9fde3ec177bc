"""Features that every role relies on: packages, units, sysctls, names and limits behave as on a server."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_service_runs(host):
    assert host.service("nginx").is_running
    assert host.service("nginx").is_enabled
    assert "Welcome to nginx" in host.check_output("curl --silent --show-error http://127.0.0.1/")


def test_network_sysctl_is_the_hosts_own(host):
    assert host.sysctl("net.core.somaxconn") == 2048


def test_hosts_reach_one_another_by_name(host):
    for name in ("deb12", "deb13"):
        host.run_expect([0], f"ping -c 1 -W 2 {name}")


def test_nothing_failed(host):
    assert host.check_output("systemctl --failed --plain --no-legend") == ""


def test_memory_limits_hold_where_status_says_so(host, facts):
    expected = "killed" if facts["memory_limits"] else "ended"
    eater = "python3 -c 'bytearray(200 << 20)'"
    unit = "systemd-run --quiet --wait --collect --property=MemoryMax=64M"
    assert host.check_output(f"{unit} {eater} && echo ended || echo killed") == expected


def test_device_nodes_can_be_made_and_refused(host):
    """No driver stands behind the node (ENXIO); a unit's device policy refuses it before that (EPERM)."""
    host.run_expect([0], "test -e /root/node || mknod /root/node c 195 0")
    assert "No such device" in host.run("cat /root/node").stderr
    closed = "systemd-run --quiet --wait --pipe --collect --property=DevicePolicy=closed"
    assert "Operation not permitted" in host.run(f"{closed} cat /root/node").stderr
