# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a machine can have homes somewhere."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import place
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.exports import on_this_machine
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.place import (
    Device,
    Folder,
    Seen,
    Top,
)
from shared_home_settings import EXPORT, role_settings

MOUNTS = mount_table.parse("""\
20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
21 20 0:30 / /lustre/home rw shared:2 - lustre mgs@tcp:/home rw,flock
22 20 0:31 / /scratch rw shared:3 - tmpfs tmpfs rw
23 20 0:32 / /old rw shared:4 - nfs4 old.example.org:/home rw,vers=4.2
24 20 8:17 / /data rw shared:5 - ext4 /dev/sdb1 rw,quota,usrquota
""")
HERE = [Folder("/", "folder", 0, 0o755), Folder("/srv", "folder", 0, 0o755), Folder("/srv/home", "missing")]
DISK = Device("/dev/sdc1", "ext4", ("quota",))


def found(changes: dict[str, Any] | None = None, **seen: Any) -> list[str]:
    settings = role_settings(path="/srv/home", **(changes or {}))
    whole = {"answers": True, "folders": HERE, "entries": [], "mounts": MOUNTS, **seen}
    return place.problems(on_this_machine(settings), Seen(**whole))


@pytest.mark.parametrize(
    ("source", "options", "server"),
    [
        (EXPORT, [], ("nfs.example.org", 2049)),
        (EXPORT, ["noatime", "vers=4.2", "proto=tcp6"], ("nfs.example.org", 2049)),
        ("[2001:db8::1]:/export/home", ["port=20490"], ("2001:db8::1", 20490)),
        (EXPORT, ["vers=3", "port=2049"], ("nfs.example.org", 2049)),
        (EXPORT, ["nfsvers=3"], None),
        (EXPORT, ["proto=rdma"], None),
    ],
)
def test_where_a_server_must_answer(source: str, options: list[str], server: tuple[str, int] | None) -> None:
    settings = role_settings(kind="nfs", source=source, options=options)
    assert place.server_of(settings) == server
    assert place.server_of(role_settings(kind="local", source="/dev/sdc1")) is None


NFS = {"kind": "nfs", "source": EXPORT}
LOCAL = {"source": "/dev/sdc1"}
SERVER = {"kind": "cluster", "serves": True, "server_address": "10.0.0.1", "client_addresses": ["10.0.0.2"]}


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({}, {}),
        (NFS, {}),
        (NFS, {"top": Top(0, 0o755)}),
        (LOCAL, {"device": DISK}),
        ({**LOCAL, "quota": "1G"}, {"device": DISK}),
        ({**LOCAL, "quota": "1G"}, {"device": Device("/dev/sdc1", "xfs")}),
        ({"path": "/data/home", "quota": "1G"}, {}),
        ({"kind": "lustre", "path": "/lustre/home", "quota": "1G"}, {}),
        (NFS, {"homes": ["/srv/home"]}),
        (SERVER, {"homes": ["/srv/home"], "entries": ["ada"]}),
        ({**SERVER, **LOCAL}, {"device": DISK}),
    ],
)
def test_what_can_be(changes: dict[str, Any], seen: dict[str, Any]) -> None:
    settings = {"path": "/srv/home", **changes}
    whole: dict[str, Any] = {"answers": True, "folders": HERE, "entries": [], "mounts": MOUNTS, **seen}
    assert place.problems(on_this_machine(role_settings(**settings)), Seen(**whole)) == []


@pytest.mark.parametrize(
    ("changes", "seen", "words"),
    [
        ({}, {"answers": False}, "/srv/home does not answer"),
        ({}, {"folders": [*HERE[:2], Folder("/srv/home", "link")]}, "/srv/home is a symbolic link"),
        (NFS, {"folders": [*HERE[:2], Folder("/srv/home", "stale")]}, "no longer exports it to this machine"),
        ({}, {"folders": [HERE[0], Folder("/srv", "other")]}, "/srv is a file and in the way"),
        ({}, {"folders": [*HERE[:2], Folder("/srv/home", "folder", 0, 0o1777)]}, "(owner 0, mode 1777)"),
        ({}, {"folders": [HERE[0], Folder("/srv", "folder", 1000, 0o755)]}, "(owner 1000, mode 0755)"),
        (
            NFS,
            {"entries": ["a", "b", "c", "d"]},
            "/srv/home holds a, b, c and 1 more, which a mount there would",
        ),
        (
            NFS,
            {"top": Top(1000, 0o755)},
            "The topmost folder of nfs.example.org:/export/home can be changed by",
        ),
        (NFS, {"top": Top(error="access denied by server.")}, "cannot be mounted: access denied by server."),
        (LOCAL, {"device": Device("")}, "/dev/sdc1 is not on the machine"),
        (LOCAL, {"device": Device("/dev/sdc1")}, "/dev/sdc1 has no file system, and homes need ext4 or xfs"),
        (LOCAL, {"device": Device("/dev/sdc1", "LVM2_member")}, "holds LVM2_member"),
        (
            LOCAL,
            {"device": Device("/dev/sdb1", "ext4"), "top": Top(error="/dev/sdb1 is busy")},
            "is mounted at /data already",
        ),
        ({**LOCAL, "quota": "1G"}, {"device": Device("/dev/sdc1", "ext4")}, "'tune2fs -O quota /dev/sdc1'"),
        (
            {**LOCAL, "options": ["noatime", "commit=5"]},
            {"device": Device("/dev/sdc1", "xfs")},
            "shared_home_options for /dev/sdc1: 'commit' is no option of xfs",
        ),
        ({"quota": "1G"}, {}, "/, where /srv/home lies, is mounted without usrquota"),
        ({"kind": "lustre"}, {}, "/srv/home lies on ext4 and on no Lustre file system"),
        (NFS, {"homes": ["/old"]}, "Homes are mounted at /old by an earlier run, and shared_home_path is"),
        ({}, {"homes": ["/srv/home"]}, "and shared_home_source is empty; run the role with that path"),
        *(
            (changes, {"connected": ["10.0.0.2"]}, "mounted by 10.0.0.2, and it would no longer export them")
            for changes in ({}, NFS, {"kind": "cluster", "server_address": "10.0.0.9"})
        ),
    ],
)
def test_what_cannot(changes: dict[str, Any], seen: dict[str, Any], words: str) -> None:
    problems = found(changes, **seen)
    assert len(problems) == 1 and words in problems[0] and problems[0].endswith(".")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"path": "/scratch/home"}, "/scratch/home lies on tmpfs, and homes would be lost"),
        ({"path": "/old/home"}, "/old/home lies on nfs4, and shared_home_kind is local; set it to nfs"),
        ({"path": "/lustre/home/a"}, "set it to lustre."),
        (
            {"path": "/old", "kind": "nfs", "source": EXPORT},
            "/old is a mount of old.example.org:/home, and not of",
        ),
    ],
)
def test_where_it_cannot(changes: dict[str, Any], words: str) -> None:
    settings = role_settings(**changes)
    problems = place.problems(on_this_machine(settings), Seen(True, HERE[:1], [], MOUNTS))
    assert len(problems) == 1 and words in problems[0]


def test_features_are_read_as_dumpe2fs_writes_them() -> None:
    text = "Filesystem volume name:   <none>\nFilesystem features:      has_journal ext_attr quota\n"
    assert place.features_of(text) == ("has_journal", "ext_attr", "quota")
    assert place.features_of("") == ()


def test_what_is_mounted_of_a_kind() -> None:
    kinds = [
        place.file_system_of(role_settings(**changes), device)
        for changes, device in (({}, None), (NFS, None), (LOCAL, DISK), (LOCAL, Device("")))
    ]
    assert kinds == ["", "nfs", "ext4", ""]
