"""Each server serves its targets, which are what mkfs.lustre makes; pools and quotas are set."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

TARGETS = {
    "oss1": {"home-MDT0000": "/srv/targets/mdt"},
    "oss2": {"home-OST0000": "/srv/targets/ost0", "home-OST0001": "/srv/targets/ost1"},
}


@pytest.fixture
def name(host):
    return host.check_output("hostname")


def test_targets_are_served(host, name):
    devices = host.check_output("lctl dl")
    for target, device in TARGETS[name].items():
        assert f" {target} " in devices
        where = f"/lustre/{target.lower()}"
        assert host.check_output("findmnt --noheadings --output SOURCE --mountpoint %s", where) == device
    assert ("mgs MGS" in devices) == (name == "oss1")


def test_targets_are_what_was_declared(host, name):
    """The label has a `-` since it was mounted first; each knows the servers that can serve it."""
    for target, device in TARGETS[name].items():
        assert host.check_output("blkid --probe --output value --match-tag LABEL %s", device) == target
        told = host.check_output("tunefs.lustre --dryrun %s", device)
        assert told.count("failover.node=") == {"home-OST0001": 0}.get(target, 2) * 2
        assert ("mgsnode=" in told) == (target != "home-MDT0000")


def test_units_of_the_other_server_are_there_and_not_started(host, name):
    if name == "oss2":
        unit = "lustre-home\\x2dmdt0000.mount"
        state = host.check_output(f"systemctl show --property UnitFileState,ActiveState --value '{unit}'")
        assert state.split() == ["inactive", "disabled"]


def test_quotas_are_enforced_on_every_target(host, name):
    enforced = host.check_output("lctl get_param 'osd-*.*.quota_slave.info' | grep 'quota enabled'")
    assert enforced.split("\n") == ["quota enabled:  ugp"] * len(TARGETS[name])


def test_the_pool_has_its_targets(host, name):
    if name == "oss1":
        assert host.check_output("lctl pool_list home.disk").split("\n")[1:] == [
            "home-OST0000_UUID",
            "home-OST0001_UUID",
        ]


def test_a_client_mounts_it(host, name):
    """Either of the management target's servers may be named first."""
    if name == "oss1":
        nid = host.check_output("lctl list_nids")
        said = host.check_output(
            f"mkdir -p /mnt/client && mount -t lustre 10.98.0.1@tcp:{nid}:/home /mnt/client"
            " && echo hello > /mnt/client/file && lfs df /mnt/client && umount /mnt/client"
        )
        assert "home-OST0001_UUID" in said
