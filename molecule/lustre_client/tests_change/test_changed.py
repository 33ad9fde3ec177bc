"""LNet has both interfaces, now and at the next boot; the tunables are new."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_lnet_uses_both_interfaces(host):
    shown = host.check_output("lnetctl net show --net tcp")
    assert "10.98.0.1@tcp" in shown and "eth0" in shown
    assert "transaction_timeout: 100" in host.check_output("lnetctl export")
    configuration = host.file("/etc/lnet.conf").content_string
    assert "rail1" in configuration and "transaction_timeout: 100" in configuration


def test_tunables_are_new(host):
    assert host.check_output("lctl get_param -n 'osc.scratch-*.max_rpcs_in_flight'") == "32"
    unit = host.file("/etc/systemd/system/gpufarm-lustre-parameters.service").content_string
    assert "osc.scratch-*.max_rpcs_in_flight=32" in unit


def test_files_of_users_are_there(host):
    assert host.check_output("cat /lustre/home/thesis /scratch/sample") == "mine\nmine"
