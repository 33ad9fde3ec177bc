# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of Lustre's programs is parsed; the texts follow the examples of their manual pages."""

from __future__ import annotations

from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import read
from hypothesis import given
from hypothesis import strategies as st

DF = """\
UUID                   1K-blocks        Used   Available Use% Mounted on
home-MDT0000_UUID        8191060      499668     7104896   7% /lustre/my home[MDT:0]
home-OST0000_UUID       68725772    12000000    53000000  19% /lustre/my home[OST:0] f
home-OST0001_UUID       68725772    68725772           0 100% /lustre/my home[OST:1] fDS
OST0002             : inactive device
OST0003             : Resource temporarily unavailable

filesystem_summary:    137451544    80725772    53000000  60% /lustre/my home
"""
CHECK = """\
home-MDT0000-mdc-ffff9d9b active.
home-OST0000-osc-ffff9d9b active.
error: check 'home-OST0001-osc-ffff9d9b': Resource temporarily unavailable (11)
home-OST0002-osc-ffff9d9b: check error: Resource temporarily unavailable
"""
TUNEFS = """\
checking for existing Lustre data: found

   Read previous values:
Target:     home:OST0001
Index:      1
Lustre FS:  home
Mount type: ldiskfs
Flags:      0x1062
              (OST first_time update no_primnode )
Persistent mount opts: ,errors=remount-ro
Parameters: mgsnode=10.0.0.1@tcp,10.1.0.1@o2ib:10.0.0.2@tcp failover.node=10.0.0.3@tcp:10.0.0.4@tcp

   Permanent disk data:
Target:     home=OST0001
"""


def test_targets_of_a_file_system() -> None:
    targets = read.parse_df(DF, "home")
    assert [(one.name, one.kind, one.state) for one in targets] == [
        ("home-MDT0000", "mdt", "active"),
        ("home-OST0000", "ost", "active"),
        ("home-OST0001", "ost", "active"),
        ("home-OST0002", "ost", "inactive device"),
        ("home-OST0003", "ost", "Resource temporarily unavailable"),
    ]
    assert [one.complaints for one in targets] == [[], [], ["degraded", "out of space"], [], []]
    assert (targets[1].total_kb, targets[1].free_kb) == (68725772, 53000000)


def test_what_check_says() -> None:
    assert read.parse_check(CHECK) == {
        "home-MDT0000": "active",
        "home-OST0000": "active",
        "home-OST0001": "Resource temporarily unavailable (11)",
        "home-OST0002": "check error: Resource temporarily unavailable",
    }


def test_parameters_may_have_several_lines() -> None:
    text = "at_max=600\nosd-ldiskfs.home-OST0000.quota_slave.info=\n"
    text += "target name:    home-OST0000\nquota enabled:  ug\n"
    found = read.parse_parameters(text)
    assert found["at_max"] == "600"
    assert read.parse_quotas(text) == {"home-OST0000": "ug"}


def test_services_of_a_machine() -> None:
    text = """\
  0 UP osd-ldiskfs home-MDT0000-osd home-MDT0000-osd_UUID 11
  1 UP mgs MGS MGS 9
  2 UP mgc MGC10.0.0.1@tcp 7b0d8e5c 4
  3 UP mdt home-MDT0000 home-MDT0000_UUID 13
  4 IN obdfilter home-OST0000 home-OST0000_UUID 5
"""
    assert read.parse_devices(text) == {"MGS": "UP", "home-MDT0000": "UP", "home-OST0000": "IN"}


def test_a_target_is_read_as_it_is_and_not_as_it_would_be() -> None:
    assert read.parse_target(TUNEFS) == {
        "name": "home-OST0001",
        "registered": False,
        "kinds": ["ost"],
        "file_system": "home",
        "mgsnode": ["10.0.0.1@tcp,10.1.0.1@o2ib:10.0.0.2@tcp"],
        "servicenode": ["10.0.0.3@tcp:10.0.0.4@tcp"],
    }
    assert read.parse_target(TUNEFS.replace("home:OST", "home-OST"))["registered"]
    assert read.parse_target("checking for existing Lustre data: not found\n") is None


def test_addresses_of_a_host_are_told_once() -> None:
    text = "10.0.0.1        STREAM mgs1\n10.0.0.1        DGRAM  \n10.0.0.2        STREAM \n"
    assert read.parse_hosts(text) == ["10.0.0.1", "10.0.0.2"]


def test_who_has_a_device_mounted() -> None:
    """As e2mmpstatus of e2fsprogs 1.47.0 prints it."""
    text = "MMP_block:\n    mmp_magic: 0x4d4d50\n    mmp_sequence: 0x00000f\n    mmp_node_name: oss2\n"
    assert read.parse_mmp(text) == "oss2"
    assert read.parse_mmp("MMP_block:\n    mmp_node_name: \n    mmp_device_name: sdb\n") == ""


def test_members_of_a_pool() -> None:
    assert read.parse_pool("Pool: home.disk\nhome-OST0000_UUID\nhome-OST0001_UUID\n") == [
        "home-OST0000",
        "home-OST0001",
    ]


@given(st.text())
def test_no_text_is_an_exception(text: str) -> None:
    read.parse_df(text, "home")
    read.parse_check(text)
    read.parse_parameters(text)
    read.parse_devices(text)
    read.parse_target("Read previous values:" + text)
