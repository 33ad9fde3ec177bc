"""Lost data is restored, and users' files were never touched."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat
from pathlib import Path


def test_the_hub_knows_its_users_and_keys(host, visit):
    restored = host.file("/etc/jupyterhub/secrets/cookie_secret")
    assert restored.content == host.file("/root/cookie_secret").content
    assert restored.mode == 0o600
    visit("bob")


def test_what_was_there_is_kept_aside(host):
    assert len(host.check_output("ls /var/backups/jupyterhub").split()) >= 2


def test_the_fetched_archive_is_nobody_elses():
    folder = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"], "backups")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (archive,) = folder.iterdir()
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600


def test_users_files_are_as_they_were(host):
    assert host.file("/home/former/thesis.txt").content_string == "mine\n"
