"""Users install packages of their own over an image, which nobody else sees and a new version of it keeps."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

HAS = "import importlib.util as u; print(u.find_spec('mine') is not None)"
PIP = "[global]\nno-index = true\nfind-links = /data/wheels\n"


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "box12":
        pytest.skip("another machine")


@pytest.fixture
def pip(host):
    """The package index of alice."""
    folder = "/home/alice/.config/pip"
    host.run_expect([0], f"runuser --user alice -- mkdir -p {folder}")
    host.run_expect([0], f"runuser --user alice -- sh -c 'printf \"{PIP}\" > {folder}/pip.conf'")
    yield
    host.run_expect([0], "rm -r /home/alice/.config/pip /home/alice/.local/share/gpufarm")


def start(visitor, tag: str) -> None:
    options = {"own_image": f"127.0.0.1:5000/bench/notebook:{tag}"}
    answer = visitor._api("POST", f"/hub/api/users/{visitor._owner}/server", json=options)
    assert answer.status_code in (201, 202)
    list(visitor._progress())


@pytest.mark.usefixtures("pip")
def test_a_package_is_there_again_and_in_a_new_version_of_the_image_and_nobody_else_has_it(visit, eventually):
    alice, bob = visit("alice"), visit("bob")
    start(alice, "1")
    assert alice.execute(HAS) == "False"
    alice.execute("%pip install --quiet mine")
    assert alice.execute(HAS) == "True"
    assert alice.execute("!gpufarm-environment list") == "mine  1"
    assert "<td>mine</td><td>1</td>" in alice._sign_in("/user/alice/gpufarm/packages").text
    alice.stop()
    bob.spawn()
    assert bob.execute(HAS) == "False"
    start(alice, "1")
    assert alice.execute(HAS) == "True"
    alice.stop()
    start(alice, "3")
    assert alice.execute("import os; print(os.path.isfile('/old/news'))") == "True"
    eventually(lambda: alice.execute(HAS) == "True")
    assert "are removed" in alice.execute("!gpufarm-environment reset")
    assert alice.execute(HAS) == "False"
