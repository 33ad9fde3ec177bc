"""Slices by the Container Device Interface, and a collaborative JupyterLab of its own image."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "box13":
        pytest.skip("another machine")


def inspect(host, name: str):
    return json.loads(host.check_output(f"docker inspect jupyterhub-notebook-{name}"))[0]


def test_two_users_at_once_see_their_own_slice_and_no_other(host, visit, leases):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn(gpu="1g.10gb")
    bob.spawn(gpu="1g.10gb")
    held = leases()
    for visitor, name in ((alice, "alice"), (bob, "bob")):
        slices = visitor.slices()
        assert (slices.visible, slices.given) == ([held[name]["uuid"]], held[name]["uuid"])
        assert visitor.execute("import glob; print(len(glob.glob('/dev/nvidia-caps/*')))") == "2"
        settings = inspect(host, name)["HostConfig"]
        assert settings["Runtime"] == "runc" and not settings["Privileged"]
        [request] = settings["DeviceRequests"]
        assert request["Driver"] == "cdi"
        assert request["DeviceIDs"] == [f"nvidia.com/gpu={held[name]['uuid']}"]
    assert held["alice"]["uuid"] != held["bob"]["uuid"]
    write = "import pathlib; pathlib.Path.home().joinpath('kept').touch(); print('written')"
    assert alice.execute(write) == "written"


def test_the_collaborative_jupyterlab_is_a_container_of_its_own_image(host, visit, leases):
    alice, carol = visit("alice"), visit("carol")
    for visitor in (alice, carol):
        visitor.use_server_of("collaborative")
    alice.spawn(gpu="3g.40gb")
    assert leases().keys() == {"collaborative"}
    assert carol.running()
    assert carol.slices().visible == [leases()["collaborative"]["uuid"]]
    assert carol.execute("import getpass; print(getpass.getuser())") == "collaborative"
    container = inspect(host, "collaborative")
    assert container["Config"]["Image"] == "127.0.0.1:5000/bench/notebook:1"
    assert container["Config"]["User"] == f"{host.user('collaborative').uid}:{host.user('collaborative').gid}"
    carol.stop()
    assert leases() == {}
