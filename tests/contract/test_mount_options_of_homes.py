"""Mount options that the role shared_home can write are known to the file system, values included."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import place
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.settings import (
    plan as shared_home_plan,
)
from hypothesis import given
from hypothesis import strategies as st

# As mount(8), nfs(5), ext4(5) and xfs(5) document them, written down apart from what the role reads.
FLAGS = {
    "": "nosuid nodev noexec noatime nodiratime relatime strictatime lazytime nolazytime sync dirsync",
    "nfs": "hard bg fg ac noac cto nocto acl noacl lock sharecache nosharecache resvport noresvport rdirplus"
    " nordirplus fsc nofsc",
    "ext4": "usrquota acl user_xattr journal_checksum auto_da_alloc delalloc nodelalloc discard nodiscard"
    " i_version",
    "xfs": "uquota discard nodiscard inode64 largeio nolargeio noalign swalloc",
}
NUMBERS = {
    "nfs": "acregmin acregmax acdirmin acdirmax actimeo retrans timeo retry rsize wsize nconnect"
    " max_connect port",
    "ext4": "commit stripe inode_readahead_blks min_batch_time max_batch_time",
    "xfs": "logbufs sunit swidth",
}
WORDS = {
    "nfs": {
        "vers": "3 4 4.0 4.1 4.2",
        "nfsvers": "3 4 4.0 4.1 4.2",
        "proto": "tcp tcp6 rdma rdma6",
        "sec": "sys krb5 krb5i krb5p",
        "lookupcache": "all none pos positive",
    },
    "ext4": {"data": "journal ordered writeback", "errors": "continue remount-ro panic", "barrier": "0 1"},
    "xfs": {"logbsize": "0 32k 64k 128k 256k"},
}
NAMES = sorted(
    {name for flags in FLAGS.values() for name in flags.split()}
    | {name for numbers in NUMBERS.values() for name in numbers.split()}
    | {name for words in WORDS.values() for name in words}
    | {"suid", "soft", "ro", "quota", "nobarrier", "unheard-of"}
)
VALUES = ["", "=", "=1", "=64", "=4.2", "=-1", "=tcp", "=krb5p", "=32k", "=ordered", "=writeback", "=many"]


def is_documented(option: str, file_system: str) -> bool:
    name, separator, value = option.partition("=")
    if not separator:
        return name in (FLAGS[""] + " " + FLAGS[file_system]).split()
    if name in NUMBERS[file_system].split():
        return value.isdecimal()
    return value in WORDS[file_system].get(name, "").split()


@pytest.mark.parametrize("file_system", ["nfs", "ext4", "xfs"])
@given(data=st.data())
def test_what_is_written_is_documented(file_system: str, data: st.DataObject) -> None:
    names, values = st.sampled_from(NAMES), st.sampled_from(VALUES)
    option = data.draw(st.builds(lambda name, value: name + value, names, values))
    settings: dict[str, Any] = {
        "kind": "nfs" if file_system == "nfs" else "local",
        "path": "/srv/home",
        "source": "nfs.example.org:/home" if file_system == "nfs" else "/dev/sdb1",
        "options": [option],
        "create": True,
        "quota": "" if file_system == "nfs" else data.draw(st.sampled_from(["", "1G"])),
        "quota_files": 0,
        "user_quotas": {},
    }
    device = None if file_system == "nfs" else place.Device("/dev/sdb1", file_system, ("quota",))
    machine = place.Seen(True, [], [], {}, device=device)
    plan = shared_home_plan(settings, file_system)
    if plan["problems"] or place.problems(settings, machine):
        return
    unit = plan["units"]["srv-home.mount"]
    written = next(line for line in unit.splitlines() if line.startswith("Options="))
    options = written.removeprefix("Options=").split(",")
    assert {"nosuid", "nodev"} <= set(options)
    assert [one for one in options if not is_documented(one, file_system)] == []
