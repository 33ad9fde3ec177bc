"""The login of users is gone, the users are not."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest


@pytest.mark.parametrize("path", ["/etc/pam.d/jupyterhub", "/etc/jupyterhub", "/opt/jupyterhub"])
def test_files_are_gone(host, path):
    assert not host.file(path).exists


@pytest.mark.parametrize("name", ["alice", "dora", "carol"])
def test_users_keep_their_files(host, name):
    assert host.file(f"/home/{name}").user == name
