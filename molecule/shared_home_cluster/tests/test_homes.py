"""Users have the same home on all machines of the cluster, and a client cannot reach more than the homes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

LOG_IN = "ssh -n -o BatchMode=yes {}@127.0.0.1 %s"


@pytest.fixture
def server(bench):
    """Address of the machine that has the homes, as its clients reach it."""
    return next(host["address"] for host in bench["hosts"] if host["name"] == "login12")


def is_server(host):
    return host.check_output("hostname") == "login12"


def test_a_home_is_made_on_either_machine_and_found_on_both(host):
    """Runs on the server first; what each user writes is seen by the other machine's tests."""
    mine, name = ("ada", "login12") if is_server(host) else ("bob", "node13")
    host.check_output(LOG_IN.format(mine), f"hostname > $HOME/{name}")
    home = host.file(f"/srv/home/{mine}")
    assert (home.user, oct(home.mode)) == (mine, "0o700")
    if not is_server(host):
        assert host.check_output("cat /srv/home/ada/login12") == "login12"
        # A job's file, as the user sees it where they log in.
        assert host.check_output(LOG_IN.format("ada"), "cat login12") == "login12"


def test_the_homes_are_mounted_after_a_boot_and_run_nothing_as_root(host):
    kind, options = host.check_output("findmnt --noheadings --output FSTYPE,OPTIONS /srv/home").split()
    assert (kind == "nfs4") is not is_server(host)
    assert {"nosuid", "nodev"} <= set(options.split(","))


def test_a_program_that_root_of_a_client_leaves_there_runs_as_its_caller(host):
    if is_server(host):
        pytest.skip("the other machine leaves it")
    host.check_output("install --mode 4755 /usr/bin/id /srv/home/ada/id")
    assert "euid" not in host.check_output(LOG_IN.format("ada"), "./id")


def test_on_the_server_too_a_program_there_runs_as_its_caller(host):
    if not is_server(host):
        pytest.skip("the test before is for clients")
    host.check_output("install --mode 4755 /usr/bin/id /srv/home/ada/planted")
    assert "euid" not in host.check_output(LOG_IN.format("ada"), "./planted")


def test_others_cannot_mount_the_homes(host):
    if not is_server(host):
        pytest.skip("this one may")
    done = host.run("timeout 60 mount -t nfs -o retry=0 127.0.0.1:/srv/home /mnt")
    assert done.rc != 0 and "/mnt" not in host.check_output("findmnt --noheadings --output TARGET")


@pytest.mark.parametrize("path", ["/", "/srv"])
def test_a_client_sees_nothing_beside_the_homes(host, server, path):
    if is_server(host):
        pytest.skip("the other machine is the client")
    host.check_output(f"mount -t nfs -o ro,retry=0 {server}:{path} /mnt")
    try:
        assert host.run("find /mnt -name other").stdout == ""
        assert host.check_output("find /mnt -maxdepth 2 -name home") != ""
    finally:
        host.check_output("umount /mnt")
