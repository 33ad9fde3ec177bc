# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that measure as an account without rights, in a folder of their own."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..._host.io import timed
from ..part import NotMeasured

USER = "nobody"


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder of the account, which goes with all that is in it."""
    with tempfile.TemporaryDirectory(prefix="gpufarm-benchmark-", dir="/var/tmp") as own:
        account = pwd.getpwnam(USER)
        os.chown(own, account.pw_uid, account.pw_gid)
        yield Path(own)


def run_as(own: Path, environment: Mapping[str, str], words: Sequence[str], seconds: float) -> str:
    """Run a program as the account, and return what it prints.

    Args:
        own: folder that it begins in.
        environment: beside what each account has.
        words: program and arguments.
        seconds: after which it is ended.

    Raises:
        NotMeasured: it failed.
    """
    whole = {"HOME": "/", "USER": USER, "PATH": "/usr/bin:/bin", "LC_ALL": "C", **environment}
    as_user = ["runuser", "--user", USER, "--", "env", "--ignore-environment", f"--chdir={own}"]
    return run([*as_user, *(f"{name}={value}" for name, value in whole.items()), *words], seconds, words[0])


def run(words: Sequence[str], seconds: float, name: str = "") -> str:
    """Run a program, and return what it prints.

    Args:
        words: program and arguments.
        seconds: after which it is ended.
        name: of the program in messages, if it is another that starts it.

    Raises:
        NotMeasured: it failed.
    """
    name = name or words[0]
    try:
        answer = timed.run(words, seconds)
    except OSError as error:
        raise NotMeasured(f"{name} cannot be started: {error.strerror}.") from error
    if answer.status is None:
        raise NotMeasured(f"{name} did not end within {seconds:.0f} s.")
    if answer.status:
        told = " ".join((answer.errors or answer.output).split())[-600:]
        raise NotMeasured(f"{name} failed: {told or 'it says nothing'}.")
    return answer.output
