# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of things that roles make, as short texts that can be compared."""

from __future__ import annotations

import fnmatch
import grp
import hashlib
import os
import pwd
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ..._host.io import timed

# Larger files count by their size and times.
CONTENT_UP_TO = 1 << 20  # bytes
ANSWER_PATIENCE = 30.0  # seconds
SHORT = 100  # letters
NOTHING = "absent"
# The kernel makes these files when they are read, so they have no times; of a folder the names count.
KERNEL = ("/proc/", "/sys/")


def states(things: Mapping[str, Iterable[str]]) -> dict[str, dict[str, str]]:
    """Return the state of each thing.

    Args:
        things: names by kind: `paths` (files; folders stand for all below them), `units` of systemd,
            `packages` (patterns of a shell too), `reads` (paths that others write, too), `users`,
            `groups`, `mounts` (mount points), `answers` (command lines, whose words are separated by
            blanks; their state is the exit status), and `outputs` (the same; what they print counts, too).

    Returns:
        A text for each name of each kind that is known.
    """
    return {
        kind: _READERS[kind](list(names)) if names else {}
        for kind, names in things.items()
        if kind in _READERS
    }


def are_there(things: Mapping[str, Iterable[str]]) -> bool:
    """Return whether any path of these exists; units, packages and accounts may be those of others."""
    return any(_path(name) != NOTHING for name in things.get("paths", ()))


def _paths(names: list[str]) -> dict[str, str]:
    return {name: _path(name) for name in names}


def _reads(names: list[str]) -> dict[str, str]:
    """As of paths; of a link what it leads to counts, too, which others may write as well."""
    return {
        name: f"{state} {_path(os.path.realpath(name))}" if state.startswith("l") else state
        for name, state in _paths(names).items()
    }


def _path(name: str) -> str:
    try:
        seen = os.lstat(name)
        if stat.S_ISDIR(seen.st_mode):
            tree = hashlib.sha256()
            for line in _tree(name):
                tree.update(f"{line}\n".encode("utf-8", "surrogateescape"))
            return f"{_about(seen)} {tree.hexdigest()}"
        if stat.S_ISLNK(seen.st_mode):
            return f"{_about(seen)} {os.readlink(name)}"  # noqa: PTH115  # as text, which may be no path
        if stat.S_ISREG(seen.st_mode) and seen.st_size <= CONTENT_UP_TO:
            return f"{_about(seen)} {hashlib.sha256(Path(name).read_bytes()).hexdigest()}"
        return f"{_about(seen)} {_times(seen)}"
    except (FileNotFoundError, NotADirectoryError):
        return NOTHING
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _about(seen: os.stat_result) -> str:
    return f"{stat.filemode(seen.st_mode)} {seen.st_uid}:{seen.st_gid}"


def _times(seen: os.stat_result) -> str:
    """Size and times; the last one changes with content, owner and permissions."""
    return f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns}"


def _tree(folder: str) -> Iterator[str]:
    """Return a line for each entry below a folder, without what Python compiles."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name == "__pycache__":
            continue
        seen = entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            yield f"{entry.path} {_about(seen)}"
            yield from _tree(entry.path)
        else:
            yield f"{entry.path} {_about(seen)} {'' if entry.path.startswith(KERNEL) else _times(seen)}"


def _units(names: list[str]) -> dict[str, str]:
    """Whether systemd starts each unit at boot, and how it does now."""
    command = [
        "systemctl",
        "show",
        "--property=Id,LoadState,UnitFileState,ActiveState,NeedDaemonReload",
        "--",
    ]
    found = _told([*command, *names]).split("\n\n")
    if len(found) != len(names):
        return dict.fromkeys(names, "cannot be read")
    return {name: _unit(text) for name, text in zip(names, found)}


def _unit(text: str) -> str:
    facts = dict(line.partition("=")[::2] for line in text.splitlines())
    if facts.get("LoadState") == "not-found":
        return "not-found"
    words = [facts.get("UnitFileState") or "static", facts.get("ActiveState", "unknown")]
    return ", ".join([*words, *(["not reloaded"] if facts.get("NeedDaemonReload") == "yes" else [])])


def _packages(names: list[str]) -> dict[str, str]:
    told = _told(
        ["dpkg-query", "--show", "--showformat", "${Package}\t${db:Status-Abbrev}${Version}\n", *names]
    )
    found = dict(line.partition("\t")[::2] for line in told.splitlines())
    matches = {name: sorted(fnmatch.filter(found, name)) for name in names}
    return {name: ", ".join(f"{one} {found[one]}" for one in matches[name]) or NOTHING for name in names}


def _told(command: list[str]) -> str:
    """Return what a program prints; nothing if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ANSWER_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip("\n")


def _users(names: list[str]) -> dict[str, str]:
    """Numbers, home, shell and groups of each account, and whether it is locked or has another password."""
    lines = Path("/etc/shadow").read_text(encoding="utf-8", errors="replace").splitlines() if names else []
    locks = {line.partition(":")[0]: hashlib.sha256(line.encode()).hexdigest() for line in lines}
    return {name: _user(name, locks.get(name, "")) for name in names}


def _user(name: str, lock: str) -> str:
    try:
        known = pwd.getpwnam(name)
    except KeyError:
        return NOTHING
    groups = sorted(os.getgrouplist(name, known.pw_gid))
    return f"{known.pw_uid}:{known.pw_gid} {known.pw_dir} {known.pw_shell} {groups} {lock}"


def _groups(names: list[str]) -> dict[str, str]:
    return {name: _group(name) for name in names}


def _group(name: str) -> str:
    try:
        return str(grp.getgrnam(name).gr_gid)
    except KeyError:
        return NOTHING


def _mounts(names: list[str]) -> dict[str, str]:
    """Source, type and options of what is mounted at each path; the last mount counts (proc(5))."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    found = {words[1]: f"{words[0]} {words[2]} {words[3]}" for words in map(str.split, lines)}
    return {name: found.get(name.replace(" ", "\\040"), NOTHING) for name in names}


def _answers(names: list[str]) -> dict[str, str]:
    return {name: _answer(name)[0] for name in names}


def _outputs(names: list[str]) -> dict[str, str]:
    return {name: " ".join(_answer(name)).strip() for name in names}


def _answer(command: str) -> tuple[str, str]:
    """Return how a command ended, and what it printed: one short line as it is, or else a digest."""
    try:
        done = timed.run(command.split(), ANSWER_PATIENCE)
    except OSError as error:
        return f"cannot be run: {error.strerror}", ""
    if done.status is None:
        return "no answer in time", ""
    text = done.output.strip()
    if len(text) > SHORT or not text.isprintable():
        text = hashlib.sha256(text.encode()).hexdigest()
    return str(done.status), text


_READERS: Mapping[str, Callable[[list[str]], dict[str, str]]] = {
    "answers": _answers,
    "groups": _groups,
    "mounts": _mounts,
    "outputs": _outputs,
    "packages": _packages,
    "paths": _paths,
    "reads": _reads,
    "units": _units,
    "users": _users,
}
KINDS = tuple(_READERS)
