# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Homes are made on first use, and nothing else is ever touched."""

from __future__ import annotations

import errno
import os
import pwd
import stat
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.io import make
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.io.make import HomeError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="homes are made by root")
UID = 61001


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    path.chmod(0o755)
    return path


def account(parent: Path, name: str = "ada", uid: int = UID, **changes: Any) -> pwd.struct_passwd:
    home = changes.get("home", f"{parent}/{name}")
    return pwd.struct_passwd((name, "x", uid, uid, "", home, "/bin/bash"))


def settings(parent: Path, **changes: Any) -> dict[str, Any]:
    return {"path": str(parent), "types": [], "mounted": False, "create": True, **changes}


def tree(path: Path) -> dict[str, tuple[int, int, str]]:
    """Owner, mode and content of all that is below a folder."""
    return {
        str(one.relative_to(path)): (
            one.lstat().st_uid,
            stat.S_IMODE(one.lstat().st_mode),
            one.read_text() if one.is_file() and not one.is_symlink() else "",
        )
        for one in path.rglob("*")
    }


def test_a_home_is_a_copy_of_the_skeleton_and_the_users_alone(parent: Path, tmp_path: Path) -> None:
    skeleton = tmp_path / "skel"
    (skeleton / ".config").mkdir(parents=True)
    (skeleton / ".config" / "a").write_text("x")
    (skeleton / "link").symlink_to("/etc/passwd")
    owner = Path("/etc/passwd").stat().st_uid
    ada = account(parent)
    assert make.ensure(ada, settings(parent), str(skeleton)) is True
    assert {name: uid for name, (uid, _mode, _text) in tree(parent).items()} == dict.fromkeys(
        ("ada", "ada/.config", "ada/.config/a", "ada/link"), UID
    )
    assert stat.S_IMODE((parent / "ada").stat().st_mode) == 0o700
    assert Path("/etc/passwd").stat().st_uid == owner
    assert make.ensure(ada, settings(parent), str(skeleton)) is False


def test_a_home_that_is_there_is_left_as_it_is(parent: Path) -> None:
    home = parent / "ada"
    home.mkdir()
    (home / "thesis").write_text("all of it")
    (home / "of-root").write_text("planted")
    os.chown(home, UID, UID)
    home.chmod(0o750)
    before = tree(parent)
    assert make.ensure(account(parent), settings(parent)) is False
    assert tree(parent) == before


def put_link(home: Path) -> None:
    home.symlink_to("/etc")


def put_file(home: Path) -> None:
    home.write_text("mine")


def put_folder_of_another(home: Path) -> None:
    home.mkdir()
    (home / "thesis").write_text("all of it")
    os.chown(home, UID + 1, UID + 1)


@pytest.mark.parametrize(
    ("put", "words"),
    [
        (put_link, "is a symbolic link, and a home has to be a folder"),
        (put_file, "is no folder, and a home has to be a folder"),
        (put_folder_of_another, f"belongs to the user id {UID + 1}, and ada has {UID}"),
    ],
)
def test_what_is_in_the_way_is_refused_and_kept(parent: Path, put: Any, words: str) -> None:
    put(parent / "ada")
    before = tree(parent)
    with pytest.raises(HomeError, match=words):
        make.ensure(account(parent), settings(parent))
    assert tree(parent) == before


@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o1777, 0), (0o775, 0), (0o755, UID)])
def test_no_home_is_made_where_users_could_put_links(parent: Path, mode: int, owner: int) -> None:
    parent.chmod(mode)
    os.chown(parent, owner, 0)
    with pytest.raises(HomeError, match="can be written by others than root"):
        make.ensure(account(parent), settings(parent))
    assert list(parent.iterdir()) == []


def test_the_folder_of_homes_is_not_followed_elsewhere(parent: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(parent)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        make.ensure(account(link), settings(link))
    assert list(parent.iterdir()) == []


def test_a_number_that_has_a_home_under_another_name_gets_no_second(parent: Path) -> None:
    (parent / "bob").mkdir()
    os.chown(parent / "bob", UID, UID)
    with pytest.raises(HomeError, match=f"ada has the user id {UID}, to which .*/bob belongs"):
        make.ensure(account(parent), settings(parent))
    assert not (parent / "ada").exists()


def test_homes_that_the_server_makes_are_not_made_here(parent: Path) -> None:
    with pytest.raises(HomeError, match="is not there, and homes are not made here"):
        make.ensure(account(parent), settings(parent, create=False))
    assert list(parent.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "no_root_squash"),
        (errno.EPERM, "no_root_squash"),
        (errno.EDQUOT, "the file system is full"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_a_home_that_cannot_be_made_leaves_nothing(
    parent: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def chown(*_words: object, **_options: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "chown", chown)
        with pytest.raises(HomeError, match=words):
            make.ensure(account(parent), settings(parent))
        with pytest.raises(HomeError, match=words):
            make.try_out(settings(parent))
    assert list(parent.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOTEMPTY, errno.EEXIST, errno.EPERM])
def test_a_quicker_machine_wins(parent: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    chmod = Path.chmod

    def quicker(path: Path, mode: int) -> None:
        chmod(path, mode)
        (parent / "ada").mkdir(mode=0o700)
        (parent / "ada" / "first").write_text("of the other machine")
        os.chown(parent / "ada", UID, UID)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "chmod", quicker)
        patch.setattr(Path, "rename", Mock(side_effect=OSError(number, os.strerror(number))))
        assert make.ensure(account(parent), settings(parent)) is False
    assert [path.name for path in parent.iterdir()] == ["ada"]
    assert (parent / "ada" / "first").read_text() == "of the other machine"


def test_trying_out_leaves_nothing(parent: Path) -> None:
    make.try_out(settings(parent))
    assert list(parent.iterdir()) == []


@pytest.mark.parametrize(
    ("uid", "home", "ours"),
    [
        (UID, "{}/ada", True),
        (UID, "{}", False),
        (UID, "{}/../etc", False),
        (UID, "{}/..", False),
        (UID, "{}/group/ada", False),
        (UID, "/root", False),
        (0, "{}/ada", False),
        (500, "{}/ada", False),
        (65534, "{}/ada", False),
    ],
)
def test_whose_homes_are_ours(parent: Path, uid: int, home: str, ours: bool) -> None:
    one = account(parent, uid=uid, home=home.format(parent))
    assert make.is_ours(one, str(parent)) is ours


def test_where_persons_begin(tmp_path: Path) -> None:
    definitions = tmp_path / "login.defs"
    definitions.write_text("# UID_MIN 1\nUID_MIN\t\t5000\nUID_MAX 60000\n")
    assert make.first_person(definitions) == 5000
    assert make.first_person(tmp_path / "none") == 1000


TABLE = """\
20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
21 20 0:30 / /srv/home {} shared:2 - nfs4 server:/home rw
"""


@pytest.mark.parametrize(
    ("path", "types", "mounted", "words"),
    [
        ("/srv/home", ["lustre"], False, "/srv/home is not mounted"),
        ("/home", ["nfs", "nfs4"], True, "/home is not mounted"),
        ("/home", [], True, "/home is not mounted"),
    ],
)
def test_nothing_is_made_where_a_mount_is_missing(
    path: str, types: list[str], mounted: bool, words: str
) -> None:
    mounts = mount_table.parse(TABLE.format("rw"))
    with pytest.raises(HomeError, match=words):
        make.place_of({"path": path, "types": types, "mounted": mounted}, mounts)


def test_where_homes_are() -> None:
    mounts = mount_table.parse(TABLE.format("rw"))
    found = [
        make.place_of({"path": path, "types": [], "mounted": mounted}, mounts).path
        for path, mounted in (("/srv/home", True), ("/srv/home", False), ("/home", False))
    ]
    assert found == ["/srv/home", "/srv/home", "/"]
    with pytest.raises(HomeError, match="mounted read-only"):
        make.place_of(
            {"path": "/srv/home", "types": [], "mounted": True}, mount_table.parse(TABLE.format("ro"))
        )
