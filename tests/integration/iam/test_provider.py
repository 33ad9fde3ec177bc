"""The identity provider on hosts of both suites, used as a client and its users do."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from lab.pages import parse
from lab.patience import PATIENCE
from lab.visitor import trust

pytestmark = pytest.mark.bench

CALLBACK = "https://service.example.org/hub/oauth_callback"
LAST_START = "cat /proc/sys/kernel/random/boot_id; systemctl show -P ActiveEnterTimestampMonotonic iam"
SCOPE = "openid profile email offline_access wlcg wlcg.groups"


def lab(bench: str, *arguments: str) -> str:
    done = subprocess.run(["lab", "--bench", bench, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


class Provider:
    """The provider of one bench: its address, users and certificate."""

    def __init__(self, bench: str) -> None:
        self.bench = bench
        iam = json.loads(lab(bench, "status", "--json"))["iam"]
        self.url: str = iam["url"]
        self.users_file = Path(iam["users_file"])
        self.context = trust(Path(iam["ca_file"]).read_text())

    def browser(self) -> httpx.Client:
        return httpx.Client(verify=self.context, trust_env=False, timeout=PATIENCE)

    def register(self) -> dict[str, str]:
        with self.browser() as http:
            answer = http.post(
                f"{self.url}/iam/api/client-registration",
                json={
                    "client_name": "A service",
                    "redirect_uris": [CALLBACK],
                    "grant_types": ["authorization_code", "refresh_token"],
                    "scope": SCOPE,
                },
            )
        assert answer.status_code == 201, answer.text
        return answer.json()


def follow(http: httpx.Client, response: httpx.Response) -> httpx.Response:
    """Follow redirects as long as they stay at the provider."""
    while response.next_request and not str(response.next_request.url).startswith(CALLBACK):
        response = http.send(response.next_request)
    return response


def sign_in(
    provider: Provider, client: dict[str, str], user: str, decision: str = "approve"
) -> httpx.QueryParams:
    """A whole visit with PKCE, as JupyterHub starts it; returns what the callback is given."""
    verifier = secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    password = json.loads(provider.users_file.read_text())[user]["password"]
    with provider.browser() as http:
        page = follow(
            http,
            http.get(
                f"{provider.url}/authorize",
                params={
                    "response_type": "code",
                    "client_id": client["client_id"],
                    "redirect_uri": CALLBACK,
                    "scope": SCOPE,
                    "state": "s",
                    "code_challenge": challenge,
                    "code_challenge_method": "S256",
                },
            ),
        )
        for identifier, values in (("login", {"username": user, "password": password}), (decision, {})):
            form = parse(page.text).form(identifier)
            assert form, page.text
            page = follow(http, http.post(page.url.join(form.action), data=values))
    assert page.next_request, page.text
    return page.next_request.url.params.set("verifier", verifier)


def tokens(provider: Provider, client: dict[str, str], answer: httpx.QueryParams) -> dict[str, str]:
    with provider.browser() as http:
        response = http.post(
            f"{provider.url}/token",
            data={
                "grant_type": "authorization_code",
                "code": answer["code"],
                "redirect_uri": CALLBACK,
                "code_verifier": answer["verifier"],
            },
            auth=(client["client_id"], client["client_secret"]),
        )
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    bench = f"iam-{request.param}"
    lab_up(bench, request.param)
    yield Provider(bench)
    lab(bench, "down")


def lab_up(bench: str, suite: str) -> None:
    spec = json.dumps({"hosts": [{"name": "iam", "suite": suite, "iam": True}]})
    subprocess.run(["lab", "--bench", bench, "up", "--spec", "-"], input=spec, text=True, check=True)


def test_discovery_names_the_paths_of_indigo_iam(provider: Provider) -> None:
    with provider.browser() as http:
        found = http.get(f"{provider.url}/.well-known/openid-configuration").json()
    assert found["issuer"] == provider.url
    paths = {
        key: found[key].removeprefix(provider.url) for key in found if key.endswith(("_endpoint", "_uri"))
    }
    assert paths == {
        "authorization_endpoint": "/authorize",
        "token_endpoint": "/token",
        "userinfo_endpoint": "/userinfo",
        "jwks_uri": "/jwk",
        "introspection_endpoint": "/introspect",
        "revocation_endpoint": "/revoke",
        "registration_endpoint": "/iam/api/client-registration",
        "end_session_endpoint": "/logout",
    }


def test_groups_reach_the_client_in_both_forms(provider: Provider) -> None:
    client = provider.register()
    given = tokens(provider, client, sign_in(provider, client, "bob"))
    with provider.browser() as http:
        user = http.get(
            f"{provider.url}/userinfo", headers={"Authorization": f"Bearer {given['access_token']}"}
        ).json()
    assert user["preferred_username"] == "bob"
    assert user["groups"] == ["ml-infn-users", "ml-infn"]
    assert user["wlcg.groups"] == ["/ml-infn-users", "/ml-infn"]
    payload = given["id_token"].split(".")[1]
    assert json.loads(base64.urlsafe_b64decode(payload + "=="))["groups"] == user["groups"]


def test_access_tokens_are_signed_and_have_no_groups(provider: Provider) -> None:
    client = provider.register()
    given = tokens(provider, client, sign_in(provider, client, "bob"))
    with provider.browser() as http:
        keys = KeySet.import_key_set(http.get(f"{provider.url}/jwk").json())
    claims = jwt.decode(given["access_token"], keys, algorithms=["RS256"]).claims
    assert (claims["iss"], claims["client_id"]) == (provider.url, client["client_id"])
    assert claims["exp"] - claims["iat"] == given["expires_in"]
    assert "groups" not in claims


def test_a_client_gets_the_scopes_that_it_asks_for_with_a_refresh_token(provider: Provider) -> None:
    client = provider.register()
    given = tokens(provider, client, sign_in(provider, client, "bob"))
    assert set(given["scope"].split()) == set(SCOPE.split())
    assert given["refresh_token"]


def test_groups_are_listed_in_pages_for_those_who_have_a_token(provider: Provider) -> None:
    client = provider.register()
    given = tokens(provider, client, sign_in(provider, client, "alice"))
    place, headers = f"{provider.url}/iam/group/search", {"Authorization": f"Bearer {given['access_token']}"}
    with provider.browser() as http:
        pages = [
            http.get(place, params={"startIndex": start, "itemsPerPage": 2}, headers=headers).json()
            for start in (1, 3)
        ]
        assert http.get(place).status_code == 401
    assert [page["totalResults"] for page in pages] == [3, 3]
    listed = [group["displayName"] for page in pages for group in page["Resources"]]
    assert listed == ["cms", "ml-infn", "ml-infn-users"]


def test_a_user_who_denies_sends_the_client_away(provider: Provider) -> None:
    answer = sign_in(provider, provider.register(), "alice", decision="deny")
    assert answer["error"] == "access_denied"


def test_a_client_can_be_changed_and_removed(provider: Provider) -> None:
    client = provider.register()
    headers = {"Authorization": f"Bearer {client['registration_access_token']}"}
    place = client["registration_client_uri"]
    with provider.browser() as http:
        kept = {"client_id", "client_secret", "client_name", "grant_types", "scope"}
        body = {key: client[key] for key in kept} | {"redirect_uris": [f"{CALLBACK}/new"]}
        assert http.put(place, headers=headers, json=body).json()["redirect_uris"] == [f"{CALLBACK}/new"]
        assert http.get(place, headers=headers).json()["redirect_uris"] == [f"{CALLBACK}/new"]
        assert http.delete(place, headers=headers).status_code == 204
        assert http.get(place, headers=headers).status_code == 401


def test_clients_users_and_certificates_survive_a_reboot(provider: Provider) -> None:
    client = provider.register()
    passwords = provider.users_file.read_text()
    before = lab(provider.bench, "exec", "iam", "--", "sh", "-c", LAST_START)
    subprocess.run(
        ["lab", "--bench", provider.bench, "exec", "iam", "--", "systemctl", "reboot"], check=False
    )
    wait_for_new_start(provider, before)
    assert tokens(provider, client, sign_in(provider, client, "alice"))["access_token"]
    suite = provider.bench.removeprefix("iam-")
    lab_up(provider.bench, suite)
    assert provider.users_file.read_text() == passwords


def wait_for_new_start(provider: Provider, before: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done = subprocess.run(
            ["lab", "--bench", provider.bench, "exec", "iam", "--", "sh", "-c", LAST_START],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode == 0 and done.stdout not in (before, "") and not done.stdout.endswith("\n0\n"):
            return
        time.sleep(0.5)
    raise TimeoutError("the provider did not come back within 300 s")


def test_secrets_can_be_read_by_root_only(provider: Provider) -> None:
    folder = provider.users_file.parent
    open_to_others = [
        file.name for file in folder.glob("iam-*") if file.stat().st_mode & 0o077 and file.suffix != ".crt"
    ]
    assert open_to_others == []
    listing = lab(provider.bench, "exec", "iam", "--", "stat", "-c", "%a", "/etc/iam/config.json", "/etc/iam")
    assert listing.split() == ["600", "700"]
