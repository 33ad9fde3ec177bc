# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a user's share is set, and whether the file system counts."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils import _quota as quota
from ansible_collections.gpufarm.cluster.plugins.module_utils._quota import Limit
from hypothesis import given
from hypothesis import strategies as st

SETTINGS = {"quota": 10 << 30, "quota_files": 7, "user_quotas": {"ada": 1 << 40}}


def test_a_user_has_an_own_limit_or_that_of_all() -> None:
    assert quota.limit_of("ada", SETTINGS) == Limit(1 << 40, 7)
    assert quota.limit_of("bob", SETTINGS) == Limit(10 << 30, 7)


def test_limits_are_set_in_kibibytes_by_the_users_number() -> None:
    limit = Limit(3 << 20, 9)
    assert quota.command(1001, limit, "/srv/home", False) == [
        *("setquota", "--user", "1001", "0", "3072", "0", "9", "/srv/home")
    ]
    assert quota.command(1001, limit, "/lustre", True) == [
        *("lfs", "setquota", "-u", "1001", "-b", "0", "-B", "3072", "-i", "0", "-I", "9", "/lustre")
    ]


@given(st.integers(min_value=1, max_value=2**60))
def test_a_limit_is_never_rounded_to_less_or_to_none(size: int) -> None:
    blocks = int(quota.command(1, Limit(size), "/", False)[4])
    assert size <= blocks * 1024 < size + 1024


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("user quota on /srv/home (/dev/vdb) is on\n", True),
        ("user quota on /srv/home (/dev/vdb) is on (enforced)\n", True),
        ("user quota on /srv/home (/dev/vdb) is off\n", False),
        ("quotaon: Mountpoint (or device) /x not found or has no quota enabled.\n", False),
        ("", False),
    ],
)
def test_whether_a_disk_counts(output: str, counts: bool) -> None:
    assert quota.counts(0, output, False) is counts


def test_whether_lustre_counts() -> None:
    assert quota.counts(0, "", True) and not quota.counts(1, "", True)
    assert quota.state_command("/lustre", True)[0] == "lfs"


# As quota 4.06 and lfs 2.15 write it.
QUOTA = """\
Disk quotas for user ada (uid 1001): 
Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
 /scratch    {used}       0  1048576       0      {files}       0       {most}       0
"""  # noqa: W291 - so does quota
LUSTRE = "       /scratch   {used}       0  1048576       -      {files}       0       {most}       -\n"


@pytest.mark.parametrize("text", [QUOTA, LUSTRE])
@pytest.mark.parametrize(
    ("used", "files", "most", "left"),
    [
        ("48576", "2", "10", quota.Limit(1000000 * 1024, 8)),
        ("1048577*", "11*", "10", quota.Limit(0, 0)),
        ("[48576]", "2", "0", quota.Limit(1000000 * 1024, 1 << 62)),
    ],
)
def test_what_is_left_of_a_quota_is_read(text: str, used: str, files: str, most: str, left: Any) -> None:
    assert quota.left(text.format(used=used, files=files, most=most), "/scratch") == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Disk quotas for user ada (uid 1001): none\n",
        "/scratch 1 0 0 - 1 0 0 -\n",
        "/other 1 0 5 - 1 0 0 -\n",
        "/scratch 1 0",
        "/scratch - 0 5 - 1 0 0 -\n",
    ],
)
def test_no_limit_is_guessed(text: str) -> None:
    assert quota.left(text, "/scratch") is None


def test_users_are_asked_for_their_own_use() -> None:
    assert quota.use_command("ada", "/scratch", True) == ["lfs", "quota", "-q", "-u", "ada", "/scratch"]
    assert quota.use_command("ada", "/scratch", False)[0] == "quota"
