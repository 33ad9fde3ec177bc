# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command gpufarm-scratch."""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..._host.io import timed
from ..._host.io.files import replace_file
from . import areas
from .ageing import ageing
from .areas import ScratchError

SETTINGS = Path("/etc/gpufarm/scratch.json")
# Seconds that the file system has; a login or a job waits so long at most when it hangs.
PATIENCE = 20.0
# Seconds after which a warning that is written each day is no longer true.
STALE = 3 * 86400.0
# Says that this is the process that touches the file system.
INSIDE = "GPUFARM_SCRATCH_INSIDE"

# Nobody waits for these at a login or a job, and they may take long.
_UNTIMED = (None, "ageing", "limit", "remove", "warn")

HELP = """
Areas for data of passing value, which are removed when nobody has used them for some days.

  gpufarm-scratch                  where your area is, and how long files stay
  gpufarm-scratch ageing           your files that are going to be removed, and when
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpufarm-scratch", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("ageing", help="files of yours that are going to be removed")
    commands.add_parser("login", help="make the area of the user who logs in (for pam_exec)")
    for name, text in (
        ("begin", "make the areas of a job and its user (for Slurm's prolog)"),
        ("end", "take the area of a job away (for Slurm's epilog)"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("job", type=_job)
        command.add_argument("uid", type=int)
    commands.add_parser("remove", help="remove the files of areas whose jobs have ended")
    commands.add_parser("notice", help="tell the user of this shell how many files are going to be removed")
    commands.add_parser("warn", help="write down for each user how many files are going to be removed")
    commands.add_parser("limit", help="set the quotas of all users who have areas")
    commands.add_parser("check", help="tell whether areas can be made")
    return parser


def _job(text: str) -> str:
    """Return the name of a job, its cluster's and its number.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*-[0-9]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a job, such as farm-17")
    return text


def _account(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise ScratchError(f"there is no account with the number {uid}") from None


def _tell(settings: Mapping[str, Any]) -> None:
    days = settings["days"]
    use = "used" if settings["reading_counts"] else "changed"
    stay = f"files stay for {days} days after they were last {use}" if days else "files stay"
    sys.stdout.write(f"{_own_area(settings)}: {stay}\n")


def _own_area(settings: Mapping[str, Any]) -> Path:
    return Path(settings["path"], "users", _account(os.getuid()).pw_name)


def _ageing(settings: Mapping[str, Any]) -> None:
    area = _own_area(settings)
    if not settings["days"]:
        return
    for one in ageing(area, settings["days"], settings["warning_days"], time.time()):
        # A name may have any sign, also such as terminals take for commands.
        name = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in str(area / one.path))
        sys.stdout.write(f"{one.days:5.1f} days  {name}\n")


def _login(settings: Mapping[str, Any]) -> None:
    name = os.environ.get("PAM_USER", "")
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        raise ScratchError(f"there is no account {name}") from None
    if account.pw_uid >= areas.FIRST_PERSON:
        areas.of_user(settings, account)


def _notice(settings: Mapping[str, Any]) -> None:
    note = Path(settings["path"], "warnings", _account(os.getuid()).pw_name)
    # Nobody writes warnings any more where one is old.
    if note.exists() and time.time() - note.stat().st_mtime < STALE:
        text = note.read_text(encoding="utf-8").strip()
        within = f"within {settings['warning_days']} days: gpufarm-scratch ageing"
        sys.stdout.write(f"{text} in {_own_area(settings)} are going to be removed {within}\n")


def _begin(settings: Mapping[str, Any], job: str, uid: int) -> None:
    account = _account(uid)
    areas.of_user(settings, account)
    areas.of_job(settings, job, account)


def _warn(settings: Mapping[str, Any]) -> None:
    path = Path(settings["path"])
    areas.mount_point(settings["path"])
    folder = path / "warnings"
    failed = []
    for area in sorted((path / "users").iterdir()):
        try:
            _warn_one(settings, area, folder / area.name)
        except OSError as error:
            failed.append(f"{area.name}: {error.strerror}")
    if failed:
        raise ScratchError(f"some users were not warned: {', '.join(failed)[:300]}")


def _warn_one(settings: Mapping[str, Any], area: Path, note: Path) -> None:
    owner = os.lstat(area)
    number = size = 0
    for one in ageing(area, settings["days"], settings["warning_days"], time.time()):
        number, size = number + 1, size + one.size
    if number:
        replace_file(note, f"{number} files with {size / 1e9:.1f} GB\n", 0o400)
        os.chown(note, owner.st_uid, owner.st_gid, follow_symlinks=False)
    else:
        note.unlink(missing_ok=True)


def _check(settings: Mapping[str, Any]) -> None:
    areas.mount_point(settings["path"])
    nobody = pwd.getpwnam("nobody")
    # Machines that share the file system may check at the same time.
    name = f"check-{socket.gethostname().partition('.')[0]}-{os.getpid()}"
    area = areas.of_job(settings, name, nobody)
    mine = os.lstat(area).st_uid == nobody.pw_uid
    area.rmdir()
    if not mine:
        raise ScratchError(f"{area.parent} has no areas that belong to their users")


def _remove(settings: Mapping[str, Any]) -> None:
    areas.mount_point(settings["path"])
    areas.remove(settings)


def _work(options: argparse.Namespace, settings: Mapping[str, Any]) -> None:
    if options.command == "begin":
        _begin(settings, options.job, options.uid)
    elif options.command == "end":
        areas.mount_point(settings["path"])
        areas.put_aside(settings, options.job, options.uid)
    else:
        {
            None: _tell,
            "ageing": _ageing,
            "check": _check,
            "limit": areas.limit_all,
            "login": _login,
            "notice": _notice,
            "remove": _remove,
            "warn": _warn,
        }[options.command](settings)


def _inside(options: argparse.Namespace) -> int:
    try:
        _work(options, json.loads(SETTINGS.read_text(encoding="utf-8")))
    except ScratchError as error:
        sys.stdout.write(f"No area for data of passing value: {error}.\n")
        return 1
    except (OSError, ValueError) as error:
        sys.stdout.write(f"Areas for data of passing value cannot be used: {error}.\n")
        return 1
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status. Errors are one sentence on its output.

    A child does the work for which a login or a job waits, and is left behind when the file system hangs.
    """
    os.umask(0o022)
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"  # PAM gives none
    arguments = list(sys.argv[1:] if words is None else words)
    options = _parser().parse_args(arguments)
    if os.environ.get(INSIDE) or options.command in _UNTIMED:
        return _inside(options)
    os.environ[INSIDE] = "yes"
    done = timed.run([sys.executable, "-I", sys.argv[0], *arguments], PATIENCE)
    if done.status is None:
        sys.stdout.write("No area for data of passing value: its file system does not answer.\n")
        return 1
    sys.stdout.write(done.output)
    sys.stderr.write(done.errors)
    return done.status
