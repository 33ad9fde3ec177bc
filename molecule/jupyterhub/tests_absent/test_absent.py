"""Nothing of the hub is left, and everything of its users."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "path",
    [
        "/opt/jupyterhub",
        "/etc/jupyterhub",
        "/var/lib/jupyterhub",
        "/run/jupyterhub",
        "/etc/systemd/system/jupyterhub.service",
        "/etc/systemd/system/jupyterhub-proxy.service",
        "/etc/ssh/sshd_config.d/10-gpufarm-jupyterhub.conf",
        "/etc/systemd/system/multi-user.target.wants/jupyterhub.service",
    ],
)
def test_files_are_gone(host, path):
    assert not host.file(path).exists


def test_nothing_runs(host):
    assert host.check_output("systemctl list-units --plain --no-legend 'jupyterhub*.service'") == ""
    for port in (8001, 8081, 8888, 8889):
        assert not host.socket(f"tcp://{port}").is_listening


def test_users_keep_their_files(host):
    assert host.file("/home/bob").is_directory
    assert host.file("/home/bob").user == "bob"
    assert host.file("/var/lib/jupyterhub-users/persons.json").exists
    assert not host.file("/var/lib/jupyterhub-users/persons.json").mode & 0o077


def test_accounts_stay_closed(host):
    assert host.user("olga").expiration_date is not None
    assert "jupyterhub-users" not in host.check_output("sshd -T -C user=olga,host=localhost,addr=127.0.0.1")


def test_nothing_failed(host):
    assert host.check_output("systemctl list-units --failed --plain --no-legend 'jupyterhub*'") == ""
