# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that keep a file system from being unmounted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts.io import users as mounts_users

WAIT = "import sys; sys.stdout.write('x'); sys.stdout.flush(); sys.stdin.read()"


@pytest.mark.parametrize("how", ["folder", "file", "none"])
def test_processes_that_are_in_a_folder_or_have_a_file_open(tmp_path: Path, how: str) -> None:
    place = tmp_path / "mount"
    place.mkdir()
    (tmp_path / "mount-beside").mkdir()
    (place / "file").write_text("")
    with (
        (place / "file").open() as stream,
        subprocess.Popen(
            [sys.executable, "-c", WAIT],
            cwd=place if how == "folder" else tmp_path / "mount-beside",
            pass_fds=[stream.fileno()] if how == "file" else [],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process,
    ):
        assert process.stdout and process.stdout.read(1) == b"x"
        stream.close()
        users = mounts_users.users_of(str(place))
        process.communicate()
    found = [user for user in users if f"({process.pid}) of " in user]
    assert len(users) == len(found) == (0 if how == "none" else 1)
    assert all(user.startswith("python") for user in found)
