# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metadata of an OpenID provider, a registered client, and its necessary changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

# OpenID Connect Discovery 1.0, section 4.
WELL_KNOWN = "/.well-known/openid-configuration"

# Of the provider's answer only these say how the client is managed; they are no metadata of the client and
# must not be sent back (RFC 7592, section 2.2).
MANAGEMENT_KEYS = (
    "client_id_issued_at",
    "client_secret_expires_at",
    "registration_access_token",
    "registration_client_uri",
)


class OidcError(Exception):
    """The provider's answer cannot be used; the text is one sentence."""


@dataclass(frozen=True)
class Provider:
    """The part of a discovery document that a client needs.

    Attributes:
        issuer: as the provider writes it.
        registration_endpoint: empty when the provider registers no clients by itself.
        end_session_endpoint: empty when the provider ends no sessions.
        scopes_supported: empty when the provider does not say.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    registration_endpoint: str
    end_session_endpoint: str
    scopes_supported: tuple[str, ...]

    def scopes(self, wanted: Sequence[str]) -> list[str]:
        """Return the wanted scopes that the provider knows."""
        return [scope for scope in wanted if not self.scopes_supported or scope in self.scopes_supported]


@dataclass(frozen=True)
class Client:
    """A client as it is kept in a file.

    Attributes:
        requested: the metadata asked for at the last registration or update; empty for a client made by hand.
        registration_uri: where the client is managed (RFC 7592); empty for a client made by hand.
        registration_token: bearer token for it.
    """

    issuer: str
    client_id: str
    client_secret: str
    requested: Mapping[str, Any]
    registration_uri: str
    registration_token: str

    @property
    def managed(self) -> bool:
        """Whether the client was registered here, and so is changed and deleted here."""
        return bool(self.registration_uri)

    def render(self) -> str:
        """Return the content of the file."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    def summary(self) -> str:
        """Return what a diff may show: no secrets."""
        shown = {"issuer": self.issuer, "client_id": self.client_id, **self.requested}
        return json.dumps(shown, indent=1, sort_keys=True) + "\n"


def same_issuer(one: str, other: str) -> bool:
    """Compare issuers; INDIGO IAM's ends with a slash that people leave out."""
    return one.rstrip("/") == other.rstrip("/")


def discovery_url(issuer: str) -> str:
    """Return where the discovery document is.

    Raises:
        OidcError: the issuer is no https URL (OpenID Connect Discovery 1.0, section 3, demands https).
    """
    if not issuer.startswith("https://") or len(issuer) <= len("https://"):
        raise OidcError(
            f"The identity provider's URL {issuer!r} does not start with https://; give its issuer, such as"
            " https://iam.example.org."
        )
    return issuer.rstrip("/") + WELL_KNOWN


def parse_provider(text: str, issuer: str) -> Provider:
    """Read a discovery document.

    Raises:
        OidcError: it is something else, lacks an endpoint, or belongs to another issuer.
    """
    url = discovery_url(issuer)
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise OidcError(f"{url} is not a JSON document; check that the URL is the issuer's.")
    found = document.get("issuer")
    if not isinstance(found, str) or not same_issuer(found, issuer):
        raise OidcError(f"{url} belongs to the issuer {found!r}; give that one as the provider's URL.")
    needed = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint")
    missing = [name for name in needed if not document.get(name)]
    if missing:
        raise OidcError(f"{url} does not name {', '.join(missing)}; is it an OpenID provider?")
    return Provider(
        issuer=found,
        authorization_endpoint=document["authorization_endpoint"],
        token_endpoint=document["token_endpoint"],
        userinfo_endpoint=document["userinfo_endpoint"],
        registration_endpoint=document.get("registration_endpoint", ""),
        end_session_endpoint=document.get("end_session_endpoint", ""),
        scopes_supported=tuple(document.get("scopes_supported", ())),
    )


def metadata(client_name: str, redirect_uris: Sequence[str], scopes: Sequence[str]) -> dict[str, Any]:
    """Return the metadata of a confidential web client with the authorization code flow (RFC 7591, 2)."""
    return {
        "client_name": client_name,
        "redirect_uris": sorted(redirect_uris),
        "scope": " ".join(scopes),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_post",
    }


def parse_client(text: str, path: str) -> Client:
    """Read the file of a client.

    Raises:
        OidcError: it is not such a file.
    """
    try:
        return Client(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise OidcError(f"{path} does not hold a registered client; remove it to register anew.") from error


def parse_registration(
    text: str, issuer: str, requested: Mapping[str, Any], previous: Client | None = None
) -> Client:
    """Read a provider's answer to a registration, a read or an update.

    Args:
        previous: the client as it was; the provider may leave out what has not changed (RFC 7592, section 3).

    Raises:
        OidcError: the answer names no client.
    """
    answer = parse_answer(text, issuer)
    try:
        return Client(
            issuer=issuer,
            client_id=answer["client_id"],
            client_secret=answer.get("client_secret") or (previous.client_secret if previous else ""),
            requested=dict(requested),
            registration_uri=answer.get("registration_client_uri")
            or (previous.registration_uri if previous else ""),
            registration_token=answer.get("registration_access_token")
            or (previous.registration_token if previous else ""),
        )
    except KeyError as error:
        raise OidcError(f"{issuer} registered a client but did not tell its {error}.") from error


def parse_answer(text: str, issuer: str) -> dict[str, Any]:
    """Return the provider's JSON object.

    Raises:
        OidcError: it is something else.
    """
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise OidcError(f"{issuer} answered to a client registration with something else than JSON.")
    return answer


def needs_update(client: Client, answer: Mapping[str, Any], desired: Mapping[str, Any]) -> bool:
    """Tell whether the client must be updated: something else is wanted now, or its redirects were changed.

    Other metadata is not compared with the provider's, which may grant less than it was asked for.
    """
    redirects = answer.get("redirect_uris", [])
    return dict(client.requested) != dict(desired) or sorted(redirects) != desired["redirect_uris"]


def update_request(answer: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole metadata to send: an update replaces everything (RFC 7592, section 2.2)."""
    kept = {key: value for key, value in answer.items() if key not in MANAGEMENT_KEYS}
    return {**kept, **desired}
