"""The hub is new; its users' notebooks are not."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lab import visitor


@pytest.fixture
def older():
    return json.loads(Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"], "older.json").read_text())


def test_the_kernel_still_remembers(visit, older):
    kernel, _pids = older
    alice = visit("alice")
    assert alice._http.get(f"{alice.hub}/hub/api/").json()["version"] == "6.1.1"
    assert alice.running()
    alice._http.get(f"{alice.hub}/user/alice/")
    with alice._channels("/user/alice/", kernel) as channels:
        assert visitor._run(channels, "print(remembered)", 60) == "42"
    alice.stop()
    alice.spawn()
    assert alice.execute("print(6 * 7)") == "42"
    alice.stop()


def test_proxy_and_notebook_were_not_restarted(host, older):
    _kernel, (proxy, _notebook) = older
    assert host.check_output("systemctl show --property=MainPID --value jupyterhub-proxy") == proxy


def test_the_database_was_kept_before_it_was_changed(host):
    archive = host.check_output("ls -t /var/backups/jupyterhub | head -1")
    manifest = json.loads(
        host.check_output(f"tar --extract --to-stdout --file /var/backups/jupyterhub/{archive} manifest.json")
    )
    assert manifest["release"] == "5.4.6"
    assert "state/jupyterhub.sqlite" in manifest["files"]


def test_an_archive_of_the_older_hub_can_be_restored(host):
    archive = host.check_output("ls -t /var/backups/jupyterhub | head -1")
    host.run_expect(
        [0],
        "/opt/jupyterhub/bin/gpufarm-hub-backup "
        f"/etc/jupyterhub/settings.json check /var/backups/jupyterhub/{archive}",
    )
