"""Nothing of what was set up for operators is left, but the backups."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    assert host.check_output("ls /etc/systemd/system | grep jupyterhub || true") == ""
    assert host.check_output("systemctl list-units --all --plain --no-legend 'jupyterhub*'") == ""
    assert "jupyterhub" not in host.check_output("nft list tables")
    assert not host.file("/var/lib/jupyterhub-acme").exists
    assert not host.user("jupyterhub-acme").exists


def test_backups_and_users_files_are_kept(host):
    assert host.check_output("ls /var/backups/jupyterhub")
    assert host.file("/home/former/thesis.txt").exists
