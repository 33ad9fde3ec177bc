# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans and refusals for settings of the role shared_home."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import exports, options
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import (
    settings as shared_home_settings,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.settings import (
    plan as shared_home_plan,
)
from hypothesis import given
from hypothesis import strategies as st
from shared_home_settings import EXPORT, role_settings


def test_the_defaults_have_nothing_mounted_and_nobody_limited() -> None:
    plan = shared_home_plan(role_settings(), "")
    assert plan["problems"] == []
    assert (plan["units"], plan["mounts"], plan["packages"]) == ({}, [], [])
    assert plan["command"]["limits"] is False and plan["command"]["mounted"] is False


def test_a_server_is_mounted_by_a_unit_that_the_boot_does_not_need() -> None:
    settings = role_settings(kind="nfs", path="/srv/home", source=EXPORT, options=["noatime", "nconnect=4"])
    plan = shared_home_plan(settings, "nfs")
    assert plan["problems"] == []
    text = plan["units"]["srv-home.mount"]
    assert text.startswith(exports.MARK + "\n")
    assert "What=nfs.example.org:/export/home\nWhere=/srv/home\nType=nfs\n" in text
    assert "Options=nosuid,nodev,noatime,nconnect=4\n" in text
    assert "WantedBy=remote-fs.target" in text and "RequiredBy" not in text
    assert plan["packages"] == ["nfs-common"]
    assert plan["command"]["types"] == ["nfs", "nfs4"]


@pytest.mark.parametrize(
    ("source", "what"),
    [("UUID=1-2", "/dev/disk/by-uuid/1-2"), ("LABEL=homes", "/dev/disk/by-label/homes"), ("/dev/sdb1",) * 2],
)
def test_a_disk_is_mounted_and_counts_what_users_have(source: str, what: str) -> None:
    settings = role_settings(path="/home", source=source, quota="10G")
    for file_system, option in (("ext4", "usrquota"), ("xfs", "uquota")):
        text = shared_home_plan(settings, file_system)["units"]["home.mount"]
        assert f"What={what}\n" in text
        assert f"Options=nosuid,nodev,{option}\n" in text
    assert shared_home_plan(settings, "ext4")["packages"] == ["quota"]


def test_sizes_reach_the_command_in_bytes() -> None:
    settings = role_settings(quota="2M", user_quotas={"ada": "1G"}, quota_files=5)
    command = shared_home_plan(settings, "")["command"]
    assert (command["quota"], command["user_quotas"], command["quota_files"]) == (
        2 << 20,
        {"ada": 1 << 30},
        5,
    )
    assert command["limits"] is True


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"path": "home"}, "shared_home_path is 'home'; give an absolute path"),
        ({"path": "/srv/../etc"}, "give an absolute path of plain characters"),
        ({"path": "/home/"}, "without a / at its end"),
        ({"path": "/srv/ho me"}, "plain characters"),
        ({"path": "/etc/homes"}, "which is the system's"),
        ({"path": "/srv"}, "choose a folder such as /home or /srv/home"),
        ({"kind": "nfs"}, "shared_home_source is ''; with shared_home_kind nfs give SERVER:/PATH"),
        ({"kind": "nfs", "source": "server:/a/../b"}, "give SERVER:/PATH"),
        ({"kind": "nfs", "source": "-o,suid:/a"}, "give SERVER:/PATH"),
        ({"kind": "lustre", "source": "mgs@tcp:/home"}, "the role lustre_client mounts the file system"),
        ({"source": "/dev/../etc/passwd"}, "with shared_home_kind local give UUID=..."),
        ({"source": "/home.img"}, "with shared_home_kind local give UUID=..."),
        ({"options": ["noatime"]}, "shared_home_options are given without shared_home_source"),
        ({"kind": "nfs", "source": EXPORT, "options": ["suid"]}, "suid is not for homes: users could bring"),
        ({"kind": "nfs", "source": EXPORT, "options": ["soft"]}, "what users have written can be lost"),
        ({"kind": "nfs", "source": EXPORT, "options": ["rsize=1"]}, "rsize must be a whole number from 1024"),
        ({"kind": "nfs", "source": EXPORT, "options": ["hard=1"]}, "hard takes no value"),
        ({"kind": "nfs", "source": EXPORT, "options": ["sec=none"]}, "sec must be one of krb5"),
        (
            {"kind": "nfs", "source": EXPORT, "options": ["noatime,suid"]},
            "'noatime,suid' is no option of nfs",
        ),
        ({"kind": "nfs", "source": EXPORT, "options": ["commit=5"]}, "'commit' is no option of nfs"),
        ({"kind": "nfs", "source": EXPORT, "quota": "1G"}, "only the server can set them"),
        ({"quota": "10"}, "shared_home_quota: '10' is no size, such as 100G"),
        ({"quota": "-1G"}, "is no size"),
        ({"user_quotas": {"ada": "much"}}, "shared_home_user_quotas of ada: 'much' is no size"),
        ({"user_quotas": {"../ada": "1G"}}, "names '../ada', which is no name of an account"),
        ({"quota_files": -1}, "shared_home_quota_files is -1"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], words: str) -> None:
    problems = shared_home_plan(role_settings(**changes), "")["problems"]
    assert len(problems) == 1 and words in problems[0] and problems[0].endswith(".")


def test_all_that_is_wrong_is_said_at_once() -> None:
    wrong = role_settings(path="home", kind="nfs", source="", quota="x")
    assert len(shared_home_plan(wrong, "")["problems"]) == 4


@given(number=st.integers(min_value=1, max_value=10**14), unit=st.sampled_from("KMGTP"))
def test_sizes_are_powers_of_1024(number: int, unit: str) -> None:
    assert shared_home_settings.parse_size(f"{number}{unit}") == number * 1024 ** ("KMGTP".index(unit) + 1)


@given(st.text(max_size=12))
def test_a_text_is_a_size_or_is_refused(text: str) -> None:
    try:
        size = shared_home_settings.parse_size(text)
    except ValueError:
        return
    assert size > 0 or text == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("commit=0", ""),  # ext4(5): the default
        ("commit=3600", ""),
        ("commit=3601", "commit must be a whole number from 0 to 3600"),
    ],
)
def test_numbers_of_options_have_bounds(text: str, words: str) -> None:
    problem = options.option_problem(text, ["ext4"])
    assert words in problem and bool(words) == bool(problem)


@given(st.text(max_size=20), st.sampled_from(sorted(options.KNOWN)))
def test_an_option_never_smuggles_in_another(text: str, file_system: str) -> None:
    if options.option_problem(text, [file_system]) == "":
        assert "," not in text and not set(text) & set(" \n\\%\"'")


@pytest.mark.parametrize("file_system", sorted(options.KNOWN))
def test_no_option_is_both_known_and_refused(file_system: str) -> None:
    known = set(options.KNOWN[file_system])
    assert not known & set(options.REFUSED)
    assert not known & {*options.ALWAYS, *options.COUNTING.values()}
