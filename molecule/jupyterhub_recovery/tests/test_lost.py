"""Users work on the machine that will be lost."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest


@pytest.mark.parametrize("name", ["bob", "alice"])
def test_users_have_files_and_numbers(host, hostname, visit, name):
    if hostname != "lost13":
        pytest.skip("nobody has worked there")
    visitor = visit(name)
    visitor.spawn()
    visitor.execute(f"from pathlib import Path; Path.home().joinpath('thesis.txt').write_text('of {name}')")
    visitor.stop()
    assert host.file(f"/home/{name}/thesis.txt").uid == host.user(name).uid
