"""Responses of providers, and their interpretation."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils import _oidc as oidc
from hypothesis import given
from hypothesis import strategies as st

ISSUER = "https://iam.example.org/"
DOCUMENT = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}authorize",
    "token_endpoint": f"{ISSUER}token",
    "userinfo_endpoint": f"{ISSUER}userinfo",
    "registration_endpoint": f"{ISSUER}iam/api/client-registration",
    "scopes_supported": ["openid", "profile"],
}
DESIRED = oidc.metadata("Hub", ["https://hub:8888/hub/oauth_callback"], ["openid", "profile"])
# The shape of RFC 7592, section 3.
ANSWER = {
    **DESIRED,
    "client_id": "id-1",
    "client_secret": "secret-1",
    "client_id_issued_at": 1,
    "client_secret_expires_at": 0,
    "registration_access_token": "token-1",
    "registration_client_uri": f"{ISSUER}iam/api/client-registration/id-1",
    "subject_type": "public",
}


@pytest.mark.parametrize("given_issuer", [ISSUER, "https://iam.example.org"])
def test_a_slash_at_the_end_makes_no_difference(given_issuer: str) -> None:
    provider = oidc.parse_provider(json.dumps(DOCUMENT), given_issuer)
    assert provider.issuer == ISSUER
    assert oidc.discovery_url(given_issuer) == "https://iam.example.org/.well-known/openid-configuration"


@pytest.mark.parametrize(
    "url", ["", "iam.example.org", "http://iam.example.org", "https://", "file:///etc/passwd"]
)
def test_an_issuer_is_an_https_url(url: str) -> None:
    with pytest.raises(oidc.OidcError, match="does not start with https://"):
        oidc.discovery_url(url)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<html>", "is not a JSON document"),
        ("[]", "is not a JSON document"),
        (
            json.dumps({**DOCUMENT, "issuer": "https://evil.example.org"}),
            "belongs to the issuer 'https://evil",
        ),
        (json.dumps({**DOCUMENT, "issuer": None}), "belongs to the issuer None"),
        (
            json.dumps({**DOCUMENT, "token_endpoint": ""}),
            "does not name token_endpoint; is it an OpenID provider",
        ),
    ],
)
def test_what_is_no_discovery_document(text: str, sentence: str) -> None:
    with pytest.raises(oidc.OidcError, match=sentence):
        oidc.parse_provider(text, ISSUER)


@given(st.text())
def test_no_answer_leads_to_anything_but_a_sentence(text: str) -> None:
    for parse in (
        lambda: oidc.parse_provider(text, ISSUER),
        lambda: oidc.parse_client(text, "/file"),
        lambda: oidc.parse_registration(text, ISSUER, DESIRED),
    ):
        with pytest.raises(oidc.OidcError):
            parse()


def test_scopes_that_the_provider_does_not_know_are_left_out() -> None:
    known = oidc.parse_provider(json.dumps(DOCUMENT), ISSUER)
    assert known.scopes(["openid", "offline_access"]) == ["openid"]
    silent = oidc.parse_provider(json.dumps({**DOCUMENT, "scopes_supported": []}), ISSUER)
    assert silent.scopes(["openid", "offline_access"]) == ["openid", "offline_access"]


def test_a_client_survives_its_file_and_its_secrets_stay_out_of_diffs() -> None:
    client = oidc.parse_registration(json.dumps(ANSWER), ISSUER, DESIRED)
    assert oidc.parse_client(client.render(), "/file") == client
    assert client.managed
    for secret in ("secret-1", "token-1"):
        assert secret in client.render() and secret not in client.summary()


def test_what_the_provider_leaves_out_stays() -> None:
    before = oidc.parse_registration(json.dumps(ANSWER), ISSUER, DESIRED)
    after = oidc.parse_registration(json.dumps({"client_id": "id-1"}), ISSUER, DESIRED, before)
    assert after == before
    rotated = oidc.parse_registration(
        json.dumps({"client_id": "id-1", "registration_access_token": "token-2"}), ISSUER, DESIRED, before
    )
    assert (rotated.registration_token, rotated.client_secret) == ("token-2", "secret-1")


@pytest.mark.parametrize(
    ("answer", "desired", "update"),
    [
        (ANSWER, DESIRED, False),
        ({**ANSWER, "scope": "openid"}, DESIRED, False),  # the provider granted less: no endless updates
        ({**ANSWER, "redirect_uris": ["https://elsewhere/"]}, DESIRED, True),
        (ANSWER, {**DESIRED, "redirect_uris": ["https://new:8888/"]}, True),
        (ANSWER, {**DESIRED, "client_name": "New"}, True),
    ],
)
def test_when_a_registration_is_updated(
    answer: dict[str, Any], desired: dict[str, Any], update: bool
) -> None:
    client = oidc.parse_registration(json.dumps(answer), ISSUER, DESIRED)
    assert oidc.needs_update(client, answer, desired) is update


def test_an_update_sends_everything_but_what_manages_the_client() -> None:
    """RFC 7592, section 2.2: what is left out is deleted; the four values of management are not sent."""
    sent = oidc.update_request(ANSWER, {**DESIRED, "client_name": "New"})
    assert (
        sent["client_name"] == "New"
        and sent["subject_type"] == "public"
        and sent["client_secret"] == "secret-1"
    )
    assert not set(oidc.MANAGEMENT_KEYS) & set(sent)
