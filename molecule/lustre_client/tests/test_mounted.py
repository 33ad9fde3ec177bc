"""File systems are mounted from the servers, tuned, ordered, and nobody's file is gone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

PATHS = {"/lustre/home": "home", "/scratch": "scratch"}


@pytest.mark.parametrize("path", PATHS)
def test_the_file_system_is_mounted_with_both_servers(host, path):
    source, options = host.check_output(
        "findmnt --noheadings --raw --output SOURCE,OPTIONS --mountpoint %s", path
    ).split()
    assert source == f"10.99.0.10@tcp:10.99.0.11@tcp:/{PATHS[path]}"
    assert {"nosuid", "nodev"} <= set(options.split(","))


def test_files_of_users_are_there(host):
    assert host.check_output("cat /lustre/home/thesis /scratch/sample") == "mine\nmine"


def test_lnet_is_what_was_declared_and_starts_so(host):
    assert "eth0" in host.check_output("lnetctl net show --net tcp")
    assert "peer_credits: 32" in host.check_output(
        "lnetctl net show --net o2ib | grep --after-context 20 'o2ib$'"
    )
    assert host.check_output("systemctl is-enabled lnet") == "enabled"
    host.check_output("lnetctl ping 10.99.0.10@tcp")


def test_tunables_are_set_where_they_belong(host):
    assert host.check_output("lctl get_param -n 'osc.scratch-*.max_rpcs_in_flight'") == "16"
    assert host.check_output("lctl get_param -n 'osc.home-*.max_rpcs_in_flight'") == "8"
    assert host.file("/etc/modprobe.d/gpufarm-lustre.conf").contains("options ksocklnd nscheds=4")


def test_packages_are_held_at_their_version(host):
    kernel = host.check_output("uname -r")
    held = host.check_output("apt-mark showhold").split()
    assert held == [f"lustre-client-modules-{kernel}", "lustre-client-utils"]
    assert host.package("lustre-client-utils").version == "2.15.8-1"


def test_the_order_at_boot(host):
    """LNet before the mounts, these before who uses them."""
    for unit in ("lustre-home.mount", "scratch.mount"):
        said = host.check_output("systemctl show --property After,Before,Requires,WantedBy %s", unit)
        relations = dict(line.split("=", 1) for line in said.splitlines())
        assert (
            "lnet.service" in relations["After"].split() and "lnet.service" in relations["Requires"].split()
        )
        assert "notebooks.service" in relations["Before"].split()
        assert "remote-fs.target" in relations["WantedBy"].split()


def test_a_server_that_fails_is_replaced_by_the_other(host):
    said = host.check_output(
        "systemctl stop mgs1; umount /scratch && systemctl start scratch.mount && cat /scratch/sample;"
        " systemctl start mgs1"
    )
    assert said == "mine"


def test_who_uses_the_file_systems_started_after_them(host):
    """At the last boot: its unit fails where they are not mounted."""
    assert host.check_output("systemctl show --property Result,ActiveState --value notebooks").split() == [
        "success",
        "active",
    ]
