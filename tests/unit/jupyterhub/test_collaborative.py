"""The collaborative JupyterLab at a real hub: who may start, use and stop it, and what it holds."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from gpufarm_hub.people.accounts import AccountError, Persons
from gpufarm_hub.spawning import collaborative, form
from gpufarm_hub.spawning.docker_spawner import DockerSliceSpawner
from hub_process import Browser, HubProcess, slices
from traitlets.config import Config

SETTINGS = {"venv": "/opt/shared", "groups": ["students"], "use_gpu": True, "profile": "1g.10gb", "image": ""}
SERVER = "/users/collaborative/server"


def login_at(process: HubProcess, owner: str = "collaborative") -> dict[str, str]:
    """Return what the server of a user asks the hub with, when somebody comes by whom it does not know."""
    ports = json.loads((process.folder / "ports.json").read_text())
    place = next(port for port, name in ports.items() if name == owner)
    return {
        "client_id": f"jupyterhub-user-{owner}",
        "redirect_uri": f"http://127.0.0.1:{place}/user/{owner}/oauth_callback",
        "response_type": "code",
        "state": "x",
        "code_challenge": "x" * 43,
        "code_challenge_method": "S256",
    }


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    limits = [{"name": "shared", "users": ["collaborative"], "slices": 1, "servers": 2}]
    hub = HubProcess(tmp_path_factory.mktemp("hub"), limits, SETTINGS)
    hub.partition([*slices(2), *slices(1, "3g.40gb")])
    hub.start()
    yield hub
    hub.kill()


def start(browser: Browser, **fields: str) -> list[str]:
    """Send the form of the collaborative JupyterLab; return what the hub complains about."""
    answer = browser.http.post(
        f"/hub/spawn/collaborative?_xsrf={browser.xsrf}", data=fields, follow_redirects=False
    )
    if answer.is_error:
        return [answer.text]
    for _ in range(100):
        if browser.api("GET", "/users/collaborative").json()["servers"].get("", {}).get("ready"):
            return []
    return ["it did not start"]


def test_members_share_one_server_and_its_slice(process: HubProcess) -> None:
    first, second, bob = (Browser(process, name) for name in ("student1", "student2", "bob"))
    assert "It is stopped." in first.page("/hub/home").text
    page = first.page("/hub/collaborative")
    assert page.url.path == "/hub/spawn/collaborative"
    assert '<option value="1g.10gb" selected>' in page.text
    assert "3g.40gb" not in page.text
    assert start(first, gpu="1g.10gb") == []
    assert "It runs and holds 1g.10gb." in second.page("/hub/home").text
    asked = second.http.get("/hub/spawn/collaborative", follow_redirects=False)
    place = urlsplit(asked.headers["location"])
    assert (place.path, place.port in range(21000, 21200)) == ("/user/collaborative/", True)
    environment = json.loads((process.folder / "jupyterhub-notebook-collaborative.service.env").read_text())
    assert environment["PATH"].startswith("/opt/shared/bin:")
    assert environment["CUDA_VISIBLE_DEVICES"] == "MIG-1g.10gb-0"
    # Its members' own slices are other ones.
    assert second.spawn(gpu="1g.10gb").messages == []
    seen = bob.api("GET", "/gpufarm/slices").json()["slices"]
    holders = [[one["user"] for one in piece["holders"]] for piece in seen]
    assert holders == [
        ["collaborative"],
        ["student2"],
        [],
    ]
    second.stop()
    assert second.api("DELETE", SERVER).status_code in (202, 204)
    assert process.audit()[-1] == ("returned", "collaborative")


def test_only_what_is_offered_is_given(process: HubProcess) -> None:
    first = Browser(process, "student1")
    assert "choose 1g.10gb or no GPU" in start(first, gpu="3g.40gb")[0]


def test_who_is_in_none_of_its_groups_is_told_so(process: HubProcess) -> None:
    alice = Browser(process, "alice")
    assert 'id="collaborative"' not in alice.page("/hub/home").text
    refused = alice.page("/hub/collaborative")
    assert refused.status_code == 403
    assert "members of groups that your account is not in (students)" in refused.text
    for method, path in (("POST", SERVER), ("DELETE", SERVER), ("GET", "/users/collaborative")):
        assert alice.api(method, path).status_code == 404
    assert alice.queue("collaborative").status_code == 404
    assert alice.page("/hub/spawn/collaborative").status_code == 404


def test_a_stranger_who_has_its_address_is_told_whom_it_is_for(process: HubProcess) -> None:
    first, alice = Browser(process, "student1"), Browser(process, "alice")
    address = "/hub/user/collaborative/lab/tree/shared.ipynb"
    stopped = alice.page(address)
    assert stopped.status_code == 404
    assert "nothing at this address that your account may open" in stopped.text
    assert start(first) == []
    running = alice.http.get("/hub/api/oauth2/authorize", params=login_at(process))
    assert running.status_code == 403
    assert "members of groups that your account is not in (students)" in running.text
    assert "Server at" not in running.text
    first.api("DELETE", SERVER).raise_for_status()
    assert first.spawn().messages == []
    other = alice.http.get("/hub/api/oauth2/authorize", params=login_at(process, "student1"))
    assert (other.status_code, "belongs to somebody else" in other.text) == (403, True)
    first.stop()


def test_administrators_open_it_and_stop_it(process: HubProcess) -> None:
    """Its pages have an origin of their own, so they cannot use the administrator's rights."""
    first, bob = Browser(process, "student1"), Browser(process, "bob")
    assert bob.page("/hub/collaborative").status_code == 200
    assert start(first) == []
    for browser in (first, bob):
        answer = browser.http.get(
            "/hub/api/oauth2/authorize", params=login_at(process), follow_redirects=False
        )
        assert answer.status_code == 302
        assert answer.headers["location"].startswith(f"{login_at(process)['redirect_uri']}?code=")
    assert bob.api("DELETE", SERVER).status_code in (202, 204)


def test_nobody_logs_in_as_its_account(process: HubProcess) -> None:
    persons = Persons(process.folder / "persons.json")
    with pytest.raises(AccountError, match="belongs to another person"):
        persons.bind("collaborative", "https://iam.example.org/", "somebody")


def test_without_groups_it_is_for_everybody(tmp_path: Path) -> None:
    c: Any = Config()
    c.JupyterHub.load_roles, c.JupyterHub.extra_handlers, c.JupyterHub.template_vars = [], [], {}
    c.JupyterHub.tornado_settings = {}
    c.JupyterHub.services = [{"name": "plots", "oauth_no_confirm": True}, {"name": "gpufarm-keeper"}]
    settings = {"persons_file": str(tmp_path / "persons.json"), "collaborative": {**SETTINGS, "groups": []}}
    collaborative.configure(c, settings, desk=None)  # type: ignore[arg-type]
    assert c.JupyterHub.extra_user_scopes == collaborative.SCOPES
    assert [role["name"] for role in c.JupyterHub.load_roles] == ["gpufarm-collaborative"]
    trusted = c.JupyterHub.tornado_settings["oauth_no_confirm_list"]
    assert trusted == {"jupyterhub-user-collaborative", "service-plots"}


def test_other_users_servers_stay_as_they_are() -> None:
    spawner = SimpleNamespace(user=SimpleNamespace(name="alice"), cmd=["jupyterhub-singleuser"])
    collaborative.adapt(spawner, SETTINGS)  # type: ignore[arg-type]
    assert vars(spawner).keys() == {"user", "cmd"}
    assert spawner.cmd == ["jupyterhub-singleuser"]


def test_with_docker_only_its_own_image_is_offered() -> None:
    spawner = SimpleNamespace(user=SimpleNamespace(name="collaborative"))
    spawner.take_programs = partial(DockerSliceSpawner.take_programs, spawner)
    collaborative.adapt(spawner, {**SETTINGS, "image": "registry.example/lab:1"})  # type: ignore[arg-type]
    assert str(spawner.policy.choose("", "", [])) == "registry.example/lab:1"
    assert spawner.policy.own_from([]) == ()
    assert (spawner.use_gpu, spawner.profile) == (True, "1g.10gb")


def test_a_fixed_profile_or_none() -> None:
    assert form.check({"gpu": ""}, ["1G"], True, "1g.10gb").gpu == ""
    with pytest.raises(form.ChoiceError, match="not offered here"):
        form.check({"gpu": "7g.80gb"}, ["1G"], True, "1g.10gb")
