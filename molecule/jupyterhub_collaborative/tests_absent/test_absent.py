"""The hub goes on without the collaborative JupyterLab, and its files are kept."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_it_is_gone(host):
    assert not host.service("jupyterhub-notebook-collaborative").is_running
    assert not host.file("/opt/jupyterhub-collaborative").exists


def test_its_files_are_kept(host):
    assert host.file("/home/collaborative/shared.txt").content_string == "from alice"
    assert '"collaborative"' in host.file("/var/lib/jupyterhub-users/persons.json").content_string


def test_the_hub_goes_on(host):
    assert host.service("jupyterhub").is_running
    assert host.run("curl --fail --silent http://127.0.0.1:8081/hub/api/").rc == 0
