"""On the other machine everybody has their own files, and nobody those of somebody else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab.visitor import Refused

READ = "from pathlib import Path; print(Path.home().joinpath('thesis.txt').read_text())"


@pytest.fixture(autouse=True)
def new_machine(hostname):
    if hostname != "new13":
        pytest.skip("that machine is lost")


@pytest.mark.parametrize(("name", "number"), [("alice", 1001), ("bob", 1000)])
def test_everybody_has_the_own_files(host, visit, name, number):
    user = host.user(name)
    assert (user.uid, user.gid, user.expiration_date.year) == (number, number, 1970)
    assert "jupyterhub-users" in user.groups
    changed = host.check_output(f"stat --format %Z /home/{name}/thesis.txt")
    visitor = visit(name)
    visitor.spawn()
    assert visitor.execute(READ) == f"of {name}"
    visitor.stop()
    assert host.check_output(f"stat --format %Z /home/{name}/thesis.txt") == changed


def test_a_home_of_somebody_else_is_refused_and_left_as_it_is(host, visit):
    """As after a restore from an archive that has no numbers, or by a tar that has given files away."""
    host.check_output("chown carol: /home/alice")
    try:
        with pytest.raises(Refused, match=r"/home/alice belongs to the account carol \(number 1002\)"):
            visit("alice").spawn()
        assert host.file("/home/alice").user == "carol"
    finally:
        host.check_output("chown alice: /home/alice")
