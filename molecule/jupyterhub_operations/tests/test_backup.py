"""Backups by themselves, by hand and back again."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

FOLDER = "/var/backups/jupyterhub"


def test_backups_are_made_in_time(host):
    host.check_output("systemctl start jupyterhub-backup")
    archives = host.check_output(f"ls {FOLDER}").split()
    assert archives
    file = host.file(f"{FOLDER}/{archives[-1]}")
    assert (file.user, file.mode) == ("root", 0o600)
    assert host.file(FOLDER).mode == 0o700
    names = host.check_output(f"tar --list --file {FOLDER}/{archives[-1]}").split()
    assert names[0] == "manifest.json"
    assert {"state/jupyterhub.sqlite", "secrets/hub.env", "secrets/cookie_secret", "tls/key.pem"} <= set(
        names
    )
    assert host.service("jupyterhub-backup.timer").is_enabled


def test_without_space_there_is_no_half_backup(host):
    small = "mount -t tmpfs -o size=4k tmpfs /var/backups/jupyterhub"
    said = host.run(
        f"unshare --mount sh -c '{small} && cd / && "
        "/opt/jupyterhub/bin/gpufarm-hub-backup /etc/jupyterhub/settings.json make "
        f"{FOLDER} 3; code=$?; ls -A {FOLDER}; exit $code'"
    )
    assert said.rc == 1
    assert "No space left on device" in said.stderr
    assert said.stdout == ""
