# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts as the kernel tells them, compared with what is declared; programs that hang."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._cvmfs import read
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table
from hypothesis import given
from hypothesis import strategies as st

from lab.patience import PATIENCE

TABLE = """\
798 797 0:50 / / rw,relatime shared:1 - overlay lab-x rw,lowerdir=/a
801 798 0:60 / /cvmfs rw,relatime shared:9 - autofs /etc/auto.cvmfs rw,fd=6
820 801 0:187 / /cvmfs/sft.cern.ch ro,nosuid,nodev,relatime shared:321 - fuse cvmfs2 ro,user_id=0
830 798 0:61 / /mnt/a\\040b rw,relatime master:3 - ext4 /dev/sda1 rw
840 798 0:62 / /mnt/top rw - tmpfs low rw
841 840 0:63 / /mnt/top rw - tmpfs high rw
"""
MOUNTS = mount_table.parse(TABLE)
REPOSITORY = "/cvmfs/sft.cern.ch"


def failures(look: str = "ok", entries: int = 0, **declared: object) -> list[str]:
    one = mount_table.Declared(**{"path": REPOSITORY, "state": "mounted", **declared})  # type: ignore[arg-type]
    checks = mount_table.compare(one, MOUNTS.get(one.path), mount_table.Look(look, entries), 3)
    return [check.detail for check in checks if not check.ok]


def test_mounts_are_read_as_the_kernel_writes_them() -> None:
    assert MOUNTS[REPOSITORY][:5] == (REPOSITORY, "fuse", "cvmfs2", False, "shared")
    assert MOUNTS["/mnt/a b"].propagation == "slave"
    assert MOUNTS["/mnt/top"].source == "high"


@given(st.text())
def test_no_table_stops_the_reader(text: str) -> None:
    mount_table.parse(text)


def test_a_mount_as_declared_passes() -> None:
    whole = {"types": ["fuse"], "source": "cvmfs2", "writable": False, "propagation": "shared"}
    assert failures(**whole) == []


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"types": ["nfs4"]}, "type fuse, nfs4 declared"),
        ({"source": "other"}, "mounted from cvmfs2, other declared"),
        ({"writable": True}, "read-only"),
        ({"propagation": "private"}, "shared mount, private declared"),
        ({"look": "late"}, "does not answer within 3 seconds"),
        (
            {"look": "Transport endpoint is not connected"},
            "cannot be read: Transport endpoint is not connected",
        ),
        ({"path": "/home"}, "not mounted"),
        ({"state": "unmounted"}, "fuse is mounted there"),
        ({"path": "/home", "state": "possible", "entries": 2}, "not empty"),
        ({"path": "/home", "state": "possible", "look": "late"}, "does not answer within 3 seconds"),
        ({"path": "/cvmfs", "state": "possible", "types": ["fuse"]}, "type autofs, fuse declared"),
    ],
)
def test_what_differs_is_told(declared: dict[str, object], words: str) -> None:
    assert any(words in detail for detail in failures(**declared))  # type: ignore[arg-type]


def test_an_empty_or_missing_folder_is_a_place_for_a_mount() -> None:
    assert failures(path="/home", state="possible") == []
    assert failures(path="/home", state="possible", look="missing") == []
    assert failures(path="/home", state="unmounted") == []


def test_what_is_mounted_and_only_possible_is_left_alone() -> None:
    declared = [mount_table.Declared(REPOSITORY, "possible"), mount_table.Declared("/home", "possible")]
    assert mount_table.to_look_at(declared, MOUNTS) == ["/home"]


def test_a_program_that_hangs_is_given_up_with_its_children() -> None:
    assert timed.run(["sh", "-c", "echo begun; sleep 3600 & wait"], 0.3).status is None
    assert timed.run([sys.executable, "-c", "print(1); raise SystemExit(3)"], PATIENCE) == (3, "1\n", "")


def test_parameters_are_read_as_the_client_prints_them() -> None:
    running = read.parse_parameters(
        "# CernVM-FS parameters:\n"
        "CVMFS_HTTP_PROXY='http://a:1|http://b:1;DIRECT'    # from /etc/cvmfs/default.local\n"
        "CVMFS_NFILES=131072    # from /etc/cvmfs/default.conf\n"
        "CVMFS_EMPTY=\n"
    )
    assert running == {"CVMFS_HTTP_PROXY": "http://a:1|http://b:1;DIRECT", "CVMFS_NFILES": "131072"}
    assert read.stale(running, running) == ([], [])
    configured = {"CVMFS_REPOSITORY_NAME": "x", "CVMFS_HTTP_PROXY": "DIRECT", "CVMFS_NFILES": "1"}
    assert read.stale(running, configured) == (["CVMFS_HTTP_PROXY", "CVMFS_NFILES"], ["CVMFS_NFILES"])


def test_answers_of_the_client_are_read() -> None:
    assert read.parse_revision("42\n") == 42
    assert read.parse_revision("Seems like CernVM-FS is not running") is None
    groups = "Load-balance groups:\n[0] http://10.0.0.1:3128 (squid, +6h)\n[1] DIRECT\n"
    assert read.parse_proxy(groups + "Active proxy: [1] DIRECT\n") == "DIRECT"
    assert read.parse_proxy("No proxies defined\n") == ""
    size = "Current cache size is 4MB (4538368 Bytes), pinned: 1MB (1138688 Bytes)\n"
    assert read.parse_cache_size(size) == 4538368
    assert read.parse_cache_size("Cache manager does not support it\n") is None


def test_files_of_others_in_a_cache_are_found() -> None:
    assert read.foreign(["shared", "sft.cern.ch", ".cvmfscache", "lost+found"]) == []
    assert read.foreign(["thesis", "shared"]) == ["thesis"]
    assert read.foreign(["00", "ff", "txn", "quarantaine"], alien=True) == []
    assert read.foreign(["results", "00"], alien=True) == ["results"]


@given(st.text())
def test_no_answer_stops_the_reader(text: str) -> None:
    read.parse_parameters(text)
    read.parse_proxy(text)
    read.parse_cache_size(text)
