# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command gpufarm-home: make the home of a user on first use and set what the user may have."""

from __future__ import annotations

import argparse
import json
import os
import pwd
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import _quota as quota
from ..._host.io import timed
from ..._mounts.table import Mount, parse
from ..program import SETTINGS
from . import make
from . import number as shared_home_number
from .make import HomeError

# Seconds that the file system has; a login waits so long at most when it hangs.
PATIENCE = 20.0
QUOTA_PATIENCE = 10.0
MOUNT_PATIENCE = 15.0
QUICK = 5.0
_FAILED = ("systemctl", "is-failed", "--quiet")
# Says that this is the process that touches the file system.
INSIDE = "GPUFARM_HOME_INSIDE"


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="gpufarm-home", description="Make the home of a user, and set what the user may have there."
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("user", nargs="?", metavar="USER", help="make this user's home unless it is there")
    what.add_argument("--pam", action="store_true", help="of the user who logs in (for pam_exec)")
    what.add_argument("--all", action="store_true", help="set the limits of all homes that are there")
    what.add_argument("--number", metavar="USER", help="print the user id for a new account of this name")
    what.add_argument("--check", action="store_true", help="tell whether homes can be made and limited")
    parser.add_argument("--person", default="", help="whose account it is; nobody else gets its home")
    return parser.parse_args(words)


def _mount(settings: Mapping[str, Any]) -> str:
    """Return the mount point of the file system that homes are on.

    A mount that failed at boot is tried again; one that somebody has undone stays undone.

    Raises:
        HomeError: it is not mounted.
    """
    # An upgrade replaces this program before its settings.
    unit = settings.get("mounted_again")
    if unit and settings["path"] not in _mounts() and timed.run([*_FAILED, unit], QUICK).status == 0:
        timed.run(["systemctl", "start", unit], MOUNT_PATIENCE)
    return make.place_of(settings, _mounts()).path


def _mounts() -> dict[str, Mount]:
    return parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace"))


def _limit(account: pwd.struct_passwd, settings: Mapping[str, Any], place: str) -> None:
    limit = quota.limit_of(account.pw_name, settings)
    words = quota.command(account.pw_uid, limit, place, settings["by_lustre"])
    _run(words, f"The quota of {account.pw_name} cannot be set")


def _run(words: Sequence[str], what: str) -> str:
    """Return what a program wrote.

    Raises:
        HomeError: it failed, or did not end in time.
    """
    try:
        done = timed.run(words, QUOTA_PATIENCE)
    except OSError as error:
        raise HomeError(f"{what}: {words[0]}: {error.strerror}.") from error
    if done.status != 0:
        reason = (
            "no answer in time" if done.status is None else " ".join((done.errors or done.output).split())
        )
        raise HomeError(f"{what}: {reason.rstrip('.')}.")
    return done.output


def _make(user: str, person: str, settings: Mapping[str, Any]) -> None:
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise HomeError(f"There is no account {user} on this machine.") from None
    if not make.is_ours(account, settings["path"]):
        return
    place = _mount(settings)
    if person:
        shared_home_number.check(account, person, settings)
    make.ensure(account, settings)
    if person:
        shared_home_number.write_down(account, person, settings)
    if settings["limits"]:
        _limit(account, settings, place)


def _limit_all(settings: Mapping[str, Any]) -> None:
    place = _mount(settings)
    for account in make.accounts_of(settings["path"]):
        _limit(account, settings, place)


def _check(settings: Mapping[str, Any]) -> None:
    place = _mount(settings)
    make.try_out(settings)
    if not settings["limits"]:
        return
    words = quota.state_command(place, settings["by_lustre"])
    try:
        done = timed.run(words, QUOTA_PATIENCE)
    except OSError as error:
        raise HomeError(f"Quotas need the program {words[0]}: {error.strerror}.") from error
    if done.status is None or not quota.counts(done.status, done.output, settings["by_lustre"]):
        why = " ".join((done.errors or done.output or "no answer").split()).rstrip(".")
        raise HomeError(
            f"The file system at {place} does not count what users have, so quotas do not work: {why}."
        )


def _work(arguments: argparse.Namespace, settings: Mapping[str, Any]) -> None:
    if arguments.all:
        _limit_all(settings)
    elif arguments.number:
        _mount(settings)
        number = shared_home_number.number_of(arguments.number, arguments.person, settings)
        sys.stdout.write(f"{number}\n")
    elif arguments.check:
        _check(settings)
    else:
        user = os.environ.get("PAM_USER", "") if arguments.pam else arguments.user
        _make(user, arguments.person, settings)


def _inside(arguments: argparse.Namespace) -> int:
    try:
        _work(arguments, json.loads(Path(SETTINGS).read_text(encoding="utf-8")))
    except HomeError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    except (OSError, ValueError) as error:
        sys.stdout.write(f"The homes of this machine cannot be used: {error}.\n")
        return 1
    return 0


def main() -> int:
    """Run the command; return its exit status. Errors are one sentence on its output.

    The work is done by a child that is left behind when the file system hangs.
    """
    os.umask(0o022)
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"  # PAM gives none
    arguments = _arguments(sys.argv[1:])
    if os.environ.get(INSIDE):
        return _inside(arguments)
    os.environ[INSIDE] = "yes"
    done = timed.run([sys.executable, "-E", "-s", *sys.argv], PATIENCE)
    if done.status is None:
        sys.stdout.write(
            "The homes of this machine do not answer: look at 'findmnt' and the journal of the machine.\n"
        )
        return 1
    sys.stdout.write(done.output)
    sys.stderr.write(done.errors)
    return done.status
