"""Copies go on, are whole and the same, and take nobody's place; links lead nowhere."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._staging.declared import Place, StagingError
from ansible_collections.gpufarm.cluster.plugins.module_utils._staging.io import copying, trees
from hypothesis import given
from hypothesis import strategies as st

ODD = ["plain", "-rf", "a b", 'it\'s "x"', "line\nbreak", "host:file", "*?[x]", "~root", "\udce9t\u00e9"]
# The same in each run: by chance the byte that a test damages would already be what it writes there.
BYTES = random.Random(17).randbytes(300_000)


def bring(source: Path, folder: Path, name: str, replace: bool = False) -> None:
    copying.bring(source, folder, name, 17, replace)


@pytest.fixture
def goal(tmp_path: Path) -> Path:
    folder = tmp_path / "goal"
    folder.mkdir()
    return folder


def tree(top: Path) -> Path:
    """A folder with odd names, a link inside, rights and times."""
    for name in ODD:
        (top / name / name).mkdir(parents=True)
        (top / name / name / name).write_bytes(name.encode("utf-8", "surrogateescape") * 9)
    (top / "link").symlink_to("plain/plain")
    (top / "empty").touch()
    (top / "empty").chmod(0o750)
    os.utime(top / "empty", (1_000_000_000, 1_000_000_000))
    return top


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def content(top: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(top)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(top.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("name", ODD)
def test_files_and_folders_are_copied_whatever_their_names(tmp_path: Path, goal: Path, name: str) -> None:
    source = tree(tmp_path / name)
    bring(source, goal, name)
    assert content(goal / name) == content(source) and names(goal) == [name]
    found = (goal / name / "empty").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime) == (0o750, 1_000_000_000)
    (tmp_path / "file").write_bytes(BYTES)
    (tmp_path / "file").rename(tmp_path / f"{name}.file")
    bring(tmp_path / f"{name}.file", goal, f"{name}2")
    assert (goal / f"{name}2").read_bytes() == BYTES and len(names(goal)) == 2


def test_a_copy_without_the_right_to_write_can_be_removed_by_its_user(tmp_path: Path, goal: Path) -> None:
    source = tree(tmp_path / "source")
    source.chmod(0o500)
    bring(source, goal, "copy")
    assert stat.S_IMODE((goal / "copy").stat().st_mode) == 0o700


@pytest.mark.parametrize("again", [True, False])
def test_a_copy_in_the_folder_of_a_project_has_its_group(tmp_path: Path, goal: Path, again: bool) -> None:
    group = 54321 if os.getuid() == 0 else os.getgroups()[-1]
    os.chown(goal, -1, group)
    goal.chmod(0o2770)
    source = tree(tmp_path / "source")
    (tmp_path / "file").write_bytes(BYTES)
    if again:
        (goal / ".gpufarm-17-copy" / "data" / "plain").mkdir(parents=True)
        (goal / ".gpufarm-17-copy").chmod(0o700)
    bring(source, goal, "copy")
    bring(tmp_path / "file", goal, "file")
    copies = [*goal.rglob("*")]
    assert {path.lstat().st_gid for path in copies} == {group} and len(copies) == 2 + len(
        [*source.rglob("*")]
    )
    folders = [path for path in copies if path.is_dir() and not path.is_symlink()]
    assert {path.stat().st_mode & 0o7000 for path in folders} == {stat.S_ISGID}
    assert not (goal / "file").stat().st_mode & stat.S_ISGID


@pytest.fixture
def interrupted(tmp_path: Path, goal: Path) -> Callable[[bytes], tuple[Path, int]]:
    """Leave what a killed copy has written of a file; return the file and the number of its inode."""

    def leave(written: bytes) -> tuple[Path, int]:
        source = tmp_path / "source"
        source.write_bytes(BYTES)
        partial = goal / ".gpufarm-17-copy"
        partial.mkdir(mode=0o700)
        (partial / "data").write_bytes(written)
        os.utime(partial / "data", ns=(source.stat().st_mtime_ns,) * 2)
        return source, (partial / "data").stat().st_ino

    return leave


def test_an_interrupted_copy_goes_on_where_it_was(
    goal: Path, interrupted: Callable[[bytes], tuple[Path, int]]
) -> None:
    source, inode = interrupted(BYTES[:200_000])
    bring(source, goal, "copy")
    assert (goal / "copy").read_bytes() == BYTES and names(goal) == ["copy"]
    # A copy that had begun anew would be another file.
    assert (goal / "copy").stat().st_ino == inode


@pytest.mark.parametrize(
    "written",
    [
        b"x" * 200_000,
        BYTES[:100_000] + b"\0" * 100_000,
        b"\0" * len(BYTES),
        BYTES[:-1] + bytes([BYTES[-1] ^ 1]),
        BYTES + b"more",
    ],
)
def test_damage_in_what_was_written_is_found_and_mended(
    goal: Path, interrupted: Callable[[bytes], tuple[Path, int]], written: bytes
) -> None:
    source, _inode = interrupted(written)
    bring(source, goal, "copy")
    assert (goal / "copy").read_bytes() == BYTES


def test_what_an_interrupted_copy_has_too_much_goes(tmp_path: Path, goal: Path) -> None:
    source = tree(tmp_path / "source")
    (goal / ".gpufarm-17-copy" / "data" / "plain" / "old").mkdir(parents=True)
    bring(source, goal, "copy")
    assert content(goal / "copy") == content(source) and not (goal / "copy" / "plain" / "old").exists()


def fake_rsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str) -> None:
    """Put a program in front of rsync that does something after each copy, and nothing after a comparison."""
    folder = tmp_path / "bin"
    folder.mkdir()
    real = shutil.which("rsync")
    (folder / "rsync").write_text(
        f'#!/bin/sh\n{real} "$@"\nend=$?\ncase "$*" in *--dry-run*) ;; *) {after} ;; esac\nexit $end\n'
    )
    (folder / "rsync").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_copy_that_is_damaged_again_and_again_gets_no_name(
    tmp_path: Path, goal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_rsync(tmp_path, monkeypatch, "printf x | dd of=data bs=1 seek=5 conv=notrunc status=none")
    (tmp_path / "source").write_bytes(BYTES)
    with pytest.raises(StagingError, match=r"is not the same as what was copied: >f"):
        bring(tmp_path / "source", goal, "copy")
    assert not (goal / "copy").exists()


def test_a_full_disk_is_told_at_once(tmp_path: Path, goal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = f"echo called >>{tmp_path}/calls; echo 'write failed: No space left on device (28)' >&2; end=11"
    fake_rsync(tmp_path, monkeypatch, says)
    (tmp_path / "source").write_bytes(BYTES)
    with pytest.raises(StagingError, match="No space left on device"):
        bring(tmp_path / "source", goal, "copy")
    assert (tmp_path / "calls").read_text() == "called\n"


def test_a_copy_whose_program_was_killed_is_tried_again(
    tmp_path: Path, goal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_rsync(tmp_path, monkeypatch, f"[ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; end=20; }}")
    (tmp_path / "source").write_bytes(BYTES)
    bring(tmp_path / "source", goal, "copy")
    assert (goal / "copy").read_bytes() == BYTES


def occupy_file(path: Path) -> None:
    path.write_text("theirs")


def occupy_folder(path: Path) -> None:
    path.mkdir()
    (path / "file").write_text("theirs")


def occupy_link(path: Path) -> None:
    path.symlink_to("/nowhere")


OCCUPY = pytest.mark.parametrize("occupy", [occupy_file, occupy_folder, occupy_link])


@OCCUPY
@pytest.mark.parametrize("is_folder", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_what_is_there_stays(
    tmp_path: Path,
    goal: Path,
    monkeypatch: pytest.MonkeyPatch,
    occupy: Callable[[Path], None],
    is_folder: bool,
    late: bool,
) -> None:
    source = tmp_path / "source"
    source.mkdir() if is_folder else source.write_bytes(BYTES)
    if late:
        copy = copying._copy

        def copied(*words: object) -> None:
            copy(*words)  # type: ignore[arg-type]
            occupy(goal / "copy")

        monkeypatch.setattr(copying, "_copy", copied)
    else:
        occupy(goal / "copy")
    with pytest.raises(StagingError, match="is there already and stays as it is"):
        bring(source, goal, "copy")
    found = goal / "copy"
    if occupy is occupy_link:
        assert str(found.readlink()) == "/nowhere"
    else:
        assert (found / "file" if found.is_dir() else found).read_text() == "theirs"


@OCCUPY
def test_what_is_there_makes_room_if_that_is_asked_for(
    tmp_path: Path, goal: Path, occupy: Callable[[Path], None]
) -> None:
    occupy(goal / "copy")
    source = tree(tmp_path / "source")
    bring(source, goal, "copy", replace=True)
    assert content(goal / "copy") == content(source) and names(goal) == ["copy"]


def test_a_copy_that_was_killed_before_its_end_was_noted_is_done(tmp_path: Path, goal: Path) -> None:
    source = tree(tmp_path / "source")
    bring(source, goal, "copy")
    inode = (goal / "copy").stat().st_ino
    (goal / ".gpufarm-17-copy").mkdir()
    bring(source, goal, "copy")
    assert names(goal) == ["copy"] and (goal / "copy").stat().st_ino == inode


@pytest.mark.parametrize("inside", [True, False])
def test_links_in_the_way_of_a_copy_lead_it_nowhere(tmp_path: Path, goal: Path, inside: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "source").write_bytes(BYTES)
    if inside:
        (goal / ".gpufarm-17-copy").symlink_to(elsewhere)
    else:
        goal.rmdir()
        goal.symlink_to(elsewhere)
    with pytest.raises(StagingError):
        bring(tmp_path / "source", goal, "copy")
    assert names(elsewhere) == []


def test_the_folder_of_a_copy_that_is_somebody_elses_is_not_used(
    tmp_path: Path, goal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (goal / ".gpufarm-17-copy").mkdir()
    (tmp_path / "source").write_bytes(BYTES)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    with pytest.raises(StagingError, match="belongs to somebody else"):
        bring(tmp_path / "source", goal, "copy")
    assert names(goal / ".gpufarm-17-copy") == []


FOLDERS = st.sampled_from(["a", "b", "c"])


@given(
    st.lists(FOLDERS, max_size=3),
    st.lists(st.sampled_from(["..", ".", "a", "b", ""]), min_size=1, max_size=6),
)
def test_a_link_leads_out_if_its_path_does(folder: list[str], target: list[str]) -> None:
    """Compared with how the parts are walked one by one."""
    depth, out = len(folder), target[0] == "" and len(target) > 1
    for part in target:
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        out = out or depth < 0
    told = trees.leads_out("/".join(folder) or ".", "/".join(target))
    # Walking out and in again is told as where it ends.
    assert told <= out
    if depth < 0:
        assert told


def test_a_tree_is_measured(tmp_path: Path) -> None:
    top = tree(tmp_path / "top")
    size = sum(path.stat().st_size for path in top.rglob("*") if path.is_file() and not path.is_symlink())
    assert trees.content(top, "bulk/top") == (size, 1 + len([*top.rglob("*")]))
    (tmp_path / "file").write_bytes(BYTES)
    assert trees.content(tmp_path / "file", "bulk/file") == (len(BYTES), 1)


@pytest.mark.parametrize("target", ["/etc/passwd", "../other", "a/../../x"])
def test_a_link_out_of_the_tree_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "top" / "in").mkdir(parents=True)
    (tmp_path / "top" / "link").symlink_to(target)
    with pytest.raises(
        StagingError, match="bulk/top cannot be copied: link is a symbolic link that leads out"
    ):
        trees.content(tmp_path / "top", "bulk/top")


def test_what_is_no_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    os.mkfifo(tmp_path / "top" / "pi\npe")
    with pytest.raises(StagingError, match=r"pi\\npe is neither a file nor a folder"):
        trees.content(tmp_path / "top", "bulk/top")
    with pytest.raises(StagingError, match="bulk/gone cannot be read: No such file"):
        trees.content(tmp_path / "gone", "bulk/gone")


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(trees, "mounted", lambda path: None if "away" in path else path)
    found = {name: str(tmp_path / name) for name in ("bulk", "home", "away")}
    for path in found.values():
        Path(path, "inner").mkdir(parents=True)
    return found


def test_links_between_stores_are_followed(stores: dict[str, str]) -> None:
    Path(stores["bulk"], "latest").symlink_to(Path(stores["home"], "inner"))
    assert trees.resolved(stores, Place("bulk", "latest")) == Path(stores["home"], "inner")
    assert trees.resolved(stores, Place("bulk", "latest/new")) == Path(stores["home"], "inner", "new")


@pytest.mark.parametrize(
    ("link", "path", "says"),
    [
        ("/etc", "link/passwd", "leads out of the stores, to .*/etc/passwd"),
        ("/etc", "link", "leads out of the stores"),
        ("/etc/passwd", "link", "leads out of the stores"),
        (".", "link", "leads out of the stores"),
        ("link", "link/x", "cannot be reached"),
        ("nowhere", "link/x", "cannot be reached: No such file"),
        ("../bulk2", "link/x", "leads out of the stores"),
    ],
)
def test_a_link_out_of_the_stores_is_refused(stores: dict[str, str], link: str, path: str, says: str) -> None:
    Path(f"{stores['bulk']}2").mkdir()
    Path(stores["bulk"], "link").symlink_to(link)
    with pytest.raises(StagingError, match=says):
        trees.resolved(stores, Place("bulk", path))


def test_a_store_that_is_away_is_refused(stores: dict[str, str]) -> None:
    with pytest.raises(StagingError, match="the store away is not mounted"):
        trees.resolved(stores, Place("away", "inner"))
    with pytest.raises(StagingError, match="has no store other"):
        trees.resolved(stores, Place("other", "inner"))
