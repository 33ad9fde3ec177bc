# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of what the hub must not lose: its database, keys, certificates, leases, whose the accounts are, and
their numbers, by which files in homes belong to them.

``python -m gpufarm_hub.upkeep.backup SETTINGS make FOLDER KEEP`` writes an archive while the hub runs and
prints its path; ``... check ARCHIVE`` looks whether an archive may be restored here, and ``... restore
ARCHIVE`` does it while the hub is stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from gpufarm_hub.files import replace
from gpufarm_hub.people import numbers
from gpufarm_hub.people.accounts import AccountError
from gpufarm_hub.people.numbers import Numbers

from . import archive, database
from .archive import ArchiveError

PATTERN = "jupyterhub-*.tar.gz"
# Programs without root's rights read them.
PUBLIC = ("nodes/ca.crt", "nodes/cert.pem")
NUMBERS = "accounts/numbers.json"  # not a file of this machine, but what its accounts are


class TakenError(Exception):
    """Accounts of this machine stand in the way; the text says which."""


@dataclass(frozen=True)
class Places:
    """Where the files are.

    Attributes:
        hub: the hub's address, by which its archives are known.
        state: folder of the database and of the JSON files.
        folders: name in the archive to folder and pattern of the files that are kept.
    """

    hub: str
    state: Path
    folders: dict[str, tuple[Path, str]]

    @property
    def database(self) -> Path:
        """The hub's database."""
        return self.state / "jupyterhub.sqlite"


def places(settings_file: Path) -> Places:
    """Read where the files are from the hub's settings."""
    settings = json.loads(settings_file.read_text(encoding="utf-8"))
    state = Path(settings["state_folder"])
    return Places(
        settings["public_url"],
        state,
        {
            "state": (state, "*.json"),
            "secrets": (Path(settings["secrets_folder"]), "*"),
            "tls": (settings_file.parent / "tls", "*"),
            "nodes": (Path(settings["nodes_folder"]), "*"),
            "persons": (Path(settings["persons_file"]).parent, "*.json"),
        },
    )


def collect(ours: Places) -> dict[str, bytes]:
    """Return the contents by their names in the archive. The hub may run meanwhile.

    Raises:
        OSError: a file cannot be read.
        DatabaseError: the database is damaged.
    """
    files = {}
    for part, (folder, pattern) in ours.folders.items():
        for file in sorted(folder.glob(pattern)):
            if file.is_file() and not file.is_symlink() and file.suffix != ".new":
                files[f"{part}/{file.name}"] = file.read_bytes()
    if ours.database.exists():
        files["state/jupyterhub.sqlite"] = database.copy(ours.database)
    files[NUMBERS] = numbers.dump()
    return files


def make(ours: Places, folder: Path, keep: int) -> Path:
    """Write an archive, and delete the oldest ones.

    Args:
        ours: where the files are.
        folder: gets the archive (mode 0600).
        keep: how many stay.

    Returns:
        The archive.

    Raises:
        OSError: for instance because the disk is full; there is no half archive then.
        DatabaseError: the database is damaged.
    """
    now = datetime.now(UTC)
    content = archive.pack(collect(ours), ours.hub, version("jupyterhub"), now)
    made = folder / f"jupyterhub-{now:%Y%m%dT%H%M%S}Z.tar.gz"
    replace(made, content)
    for old in sorted(folder.glob(PATTERN))[:-keep]:
        old.unlink()
    return made


def check(ours: Places, file: Path) -> dict[str, bytes]:
    """Return the contents of an archive that may be restored here.

    Raises:
        TakenError: it may not be on this machine, whose accounts are others.
        ArchiveError: it may not, with the reason.
        DatabaseError: its database is damaged.
        OSError: it cannot be read.
    """
    files = archive.unpack(file.read_bytes(), ours.hub, version("jupyterhub"))
    for name in files:
        part = name.partition("/")[0]
        if part not in ours.folders and name != NUMBERS:
            raise ArchiveError(f"it holds {name}, which nobody here knows")
    if "state/jupyterhub.sqlite" in files:
        database.check(files["state/jupyterhub.sqlite"])
    if found := numbers.conflicts(_numbers_in(files)):
        raise TakenError(" ".join(found))
    return files


def _numbers_in(files: dict[str, bytes]) -> dict[str, Numbers]:
    """Return the numbers of accounts; none of an archive that was made before archives had these."""
    try:
        return numbers.load(files.get(NUMBERS, b"{}"))
    except ValueError as error:
        raise ArchiveError(f"its numbers of accounts are no such ({error})") from error


def restore(ours: Places, files: dict[str, bytes]) -> None:
    """Put accounts and files back; what the archive does not hold stays. Interrupted, it can be done again.

    Raises:
        AccountError: an account cannot be made.
        OSError: a file cannot be written.
    """
    numbers.restore(_numbers_in(files))
    for name, content in files.items():
        if name == NUMBERS:
            continue
        part, _slash, base = name.partition("/")
        if name == "state/jupyterhub.sqlite":
            # Pending writes of SQLite to the old database must not get into this one.
            for suffix in ("-wal", "-shm", "-journal"):
                ours.database.with_name(f"{ours.database.name}{suffix}").unlink(missing_ok=True)
        folder = ours.folders[part][0]
        folder.mkdir(exist_ok=True)  # that of an engine is there only when the engine is chosen
        if part == "nodes":
            folder.chmod(0o755)
        replace(folder / base, content, 0o644 if name in PUBLIC else 0o600)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="gpufarm_hub.upkeep.backup")
    parser.add_argument("settings", type=Path)
    actions = parser.add_subparsers(dest="action", required=True)
    making = actions.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("keep", type=int)
    for name in ("check", "restore"):
        actions.add_parser(name).add_argument("archive", type=Path)
    options = parser.parse_args()
    os.umask(0o077)
    ours = places(options.settings)
    advice = "" if options.action == "make" else " Give another archive."
    try:
        if options.action == "make":
            print(make(ours, options.folder, options.keep))
            return
        files = check(ours, options.archive)
        if options.action == "restore":
            restore(ours, files)
    except (ArchiveError, database.DatabaseError) as error:
        sys.exit(f"{getattr(options, 'archive', ours.database)} is of no use: {error}.{advice}")
    except TakenError as error:
        sys.exit(
            f"{error} Files in homes belong to numbers, so give these accounts of this machine other numbers "
            "(usermod --uid, groupmod --gid) or remove them, then restore the archive."
        )
    except AccountError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{error.filename or 'A file of the hub'} cannot be used: {error.strerror}.{advice}")


if __name__ == "__main__":
    main()
