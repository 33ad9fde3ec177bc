# SPDX-License-Identifier: GPL-3.0-or-later
"""Access tokens: those of accepted issuers are taken, and no other one, whatever an attacker writes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from doubles.issuer import ANN, CLIENT, OTHER_KEY, SECRET, Issuer, issuer, shared_key
from gpufarm.serve import provider
from gpufarm.serve.identity import LONGEST, Identity
from gpufarm.serve.people import User
from gpufarm.serve.refusals import NoAnswer, Unauthorized
from gpufarm.serve.settings import Issuer as Trusted
from joserfc.jwk import RSAKey


@pytest.fixture
def iam(tmp_path: Path) -> Iterator[Issuer]:
    with issuer(tmp_path / "iam") as made:
        yield made


@pytest.fixture
def evil(tmp_path: Path) -> Iterator[Issuer]:
    with issuer(tmp_path / "evil") as made:
        made.key = OTHER_KEY
        made.published[:] = [OTHER_KEY.as_dict(private=False) | {"kid": "first"}]
        yield made


def trusted(iam: Issuer, **changes: Any) -> Trusted:
    return replace(Trusted(iam.url, administrators="admins", ca_file=iam.ca_file), **changes)


def who(iam: Issuer, token: str, needed: tuple[str, ...] = (), **changes: Any) -> User:
    return Identity([trusted(iam, **changes)], needed).user(f"Bearer {token}")


def test_a_token_of_the_issuer_is_taken(iam: Issuer) -> None:
    found = who(iam, iam.token())
    assert found == User(iam.url, "ann", frozenset({"physics"}))
    assert not found.administrator
    assert found.claims["email"] == "ann@example.org"
    assert who(iam, iam.token(groups=["admins"])).administrator
    assert who(iam, iam.token({"alg": "ES256", "kid": "ec"}, iam.ec_key)).subject == "ann"


def test_the_word_bearer_may_be_written_in_any_way(iam: Issuer) -> None:
    identity = Identity([trusted(iam)])
    for word in ("Bearer", "bearer", "BEARER "):
        assert identity.user(f"{word} {iam.token()}").subject == "ann"


@pytest.mark.parametrize("kind", ["JWT", "at+jwt", "application/at+jwt"])
def test_each_type_of_an_access_token_is_taken(iam: Issuer, kind: str) -> None:
    assert who(iam, iam.token({"typ": kind})).subject == "ann"


def test_a_token_that_names_no_key_is_verified_with_each(iam: Issuer) -> None:
    iam.published[:0] = [OTHER_KEY.as_dict(private=False)]
    for _ in range(2):
        assert who(iam, iam.token({"kid": None})).subject == "ann"
        iam.published.reverse()


def signed_by_another(iam: Issuer) -> str:
    return iam.token(key=OTHER_KEY)


def with_a_key_in_the_header(iam: Issuer) -> str:
    return iam.token({"jwk": OTHER_KEY.as_dict(private=False), "kid": "other"}, OTHER_KEY)


def unsigned(algorithm: str) -> Any:
    return lambda iam: iam.forged({"alg": algorithm, "kid": "first"})


def public_key_as_secret(form: str) -> Any:
    """The public key as the secret of an HMAC, in each form in which a program might have it."""

    def attack(iam: Issuer) -> str:
        if form == "jwk":
            secret = json.dumps(iam.key.as_dict(private=False)).encode()
        else:
            kind = serialization.PublicFormat.SubjectPublicKeyInfo
            coding = serialization.Encoding.PEM if form == "pem" else serialization.Encoding.DER
            secret = iam.key.public_key.public_bytes(coding, kind)
        return iam.forged({"alg": "HS256", "kid": "first"}, secret)

    return attack


def cut(iam: Issuer) -> str:
    return iam.token().rpartition(".")[0] + "."


def swapped(iam: Issuer) -> str:
    head, _claims, signature = iam.token().split(".")
    return f"{head}.{iam.token(sub='root').split('.')[1]}.{signature}"


ATTACKS = {
    "another key": signed_by_another,
    "jwk header": with_a_key_in_the_header,
    "none": unsigned("none"),
    "None": unsigned("None"),
    "no signature": unsigned("RS256"),
    "confusion, PEM": public_key_as_secret("pem"),
    "confusion, DER": public_key_as_secret("der"),
    "confusion, JWK": public_key_as_secret("jwk"),
    "no signature any more": cut,
    "claims of another token": swapped,
    "EC algorithm, RSA key": lambda iam: iam.token({"alg": "ES256", "kid": "first"}, iam.ec_key),
    "other algorithm": lambda iam: iam.token({"alg": "RS512"}),
    "unknown critical header": lambda iam: iam.token({"crit": ["exp"], "exp": 1}),
    "kid is a list": lambda iam: iam.forged({"alg": "RS256", "kid": ["first"]}, b"x"),
    "kid is a path": lambda iam: iam.forged({"alg": "RS256", "kid": "../../dev/null"}, b"x"),
    "algorithm is a map": lambda iam: iam.forged({"alg": {"RS256": 1}, "kid": "first"}, b"x"),
    "expired": lambda iam: iam.token(exp=int(time.time()) - 60),
    "no expiry": lambda iam: iam.token(exp=None),
    "expiry is a text": lambda iam: iam.token(exp="2999-01-01"),
    "expiry is true": lambda iam: iam.token(exp=True),
    "expiry without end": lambda iam: iam.token(exp=float("inf")),
    "not yet": lambda iam: iam.token(nbf=int(time.time()) + 600),
    "made in the future": lambda iam: iam.token(iat=int(time.time()) + 600),
    "other issuer": lambda iam: iam.token(iss="https://other.example.org/"),
    "issuer without its slash": lambda iam: iam.token(iss=iam.root),
    "issuer is a list": lambda iam: iam.token(iss=[iam.url]),
    "no issuer": lambda iam: iam.token(iss=None),
    "no subject": lambda iam: iam.token(sub=None),
    "empty subject": lambda iam: iam.token(sub=""),
    "long subject": lambda iam: iam.token(sub="a" * 256),
    "subject is a number": lambda iam: iam.token(sub=1),
    "subject of two lines": lambda iam: iam.token(sub="ann\nroot"),
    "ID token": lambda iam: iam.token(nonce="n"),
    "of a sign-out": lambda iam: iam.token({"typ": "logout+jwt"}),
    "encrypted": lambda iam: iam.token({"typ": "JWE"}),
    "type is a number": lambda iam: iam.token({"typ": 5}),
    "event": lambda iam: iam.token(events={"http://schemas.openid.net/event/backchannel-logout": {}}),
    "another key, unnamed": lambda iam: iam.token({"kid": None}, OTHER_KEY),
    "huge": lambda iam: iam.token(more="a" * LONGEST),
    "opaque": lambda _iam: "abcdefgh",
    "empty parts": lambda _iam: "..",
    "JSON of endless depth": lambda iam: ".".join(["W" * 9000, "W" * 3000, "AA"]),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_no_other_token_is_taken(iam: Issuer, attack: Any) -> None:
    with pytest.raises(Unauthorized) as refused:
        who(iam, attack(iam))
    assert refused.value.message.endswith(("again", "one", "tokens", "clocks", "token", "person"))


NO_TOKEN = [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer a b", "Bearer ä", "x"]


@pytest.mark.parametrize("header", NO_TOKEN)
def test_a_header_without_a_token_is_refused(iam: Issuer, header: str | None) -> None:
    with pytest.raises(Unauthorized):
        Identity([trusted(iam)]).user(header)


@pytest.mark.parametrize("name", ["jku", "x5u"])
def test_keys_that_a_token_names_are_never_fetched(iam: Issuer, evil: Issuer, name: str) -> None:
    token = iam.token({name: f"{evil.root}/jwks", "kid": "other"}, OTHER_KEY)
    with pytest.raises(Unauthorized):
        who(iam, token)
    assert evil.asked == []


def test_an_issuer_that_is_not_in_the_settings_is_not_asked(iam: Issuer, evil: Issuer) -> None:
    with pytest.raises(Unauthorized):
        who(iam, evil.token())
    assert evil.asked == []


def test_one_issuer_cannot_speak_for_another(iam: Issuer, evil: Issuer) -> None:
    identity = Identity([trusted(iam), trusted(evil)])
    assert identity.user(f"Bearer {evil.token()}").issuer == evil.url
    with pytest.raises(Unauthorized):
        identity.user(f"Bearer {evil.token(iss=iam.url)}")


@pytest.mark.parametrize("audience", [None, "other", ["other"], [], {"paas": 1}, "paas2"])
def test_a_token_for_another_service_is_refused(iam: Issuer, audience: Any) -> None:
    with pytest.raises(Unauthorized, match="another service"):
        who(iam, iam.token(aud=audience), audience=("paas",))


@pytest.mark.parametrize("audience", ["paas", ["other", "paas"]])
def test_a_token_for_this_service_is_taken(iam: Issuer, audience: Any) -> None:
    assert who(iam, iam.token(aud=audience), audience=("paas",)).subject == "ann"


def test_groups_come_from_userinfo_where_the_token_has_none(iam: Issuer) -> None:
    token = iam.token(groups=None)
    iam.people[token] = ANN | {"groups": ["physics", "admins", 7, "", "a\nb"]}
    found = who(iam, token)
    assert found.groups == {"physics", "admins"}
    assert found.administrator


def test_claims_that_inputs_need_come_from_userinfo(iam: Issuer) -> None:
    token = iam.token(preferred_username=None)
    iam.people[token] = ANN
    assert who(iam, token, ("preferred_username",)).claims["preferred_username"] == "ann"


def test_userinfo_of_another_user_is_refused(iam: Issuer) -> None:
    token = iam.token(groups=None)
    iam.people[token] = ANN | {"sub": "root", "groups": ["admins"]}
    with pytest.raises(Unauthorized, match="another user"):
        who(iam, token)


def test_a_token_that_userinfo_refuses_was_revoked(iam: Issuer) -> None:
    with pytest.raises(Unauthorized):
        who(iam, iam.token(groups=None))


def test_a_token_without_a_scope_for_userinfo_has_no_groups(iam: Issuer) -> None:
    iam.changes["/userinfo"] = (403, b"", {})
    assert who(iam, iam.token(groups=None)).groups == frozenset()


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(SECRET + "\n")
    return path


def test_opaque_tokens_are_introspected(iam: Issuer, secret_file: Path) -> None:
    iam.opaque |= {"good": ANN, "old": ANN | {"exp": 1}, "foreign": ANN | {"iss": "https://x"}}
    iam.opaque["for"] = ANN | {"aud": "x"}
    settings = {"opaque": "introspection", "client_id": CLIENT, "secret_file": secret_file}
    assert who(iam, "good", **settings).subject == "ann"
    for token in ("bad", "old", "foreign"):
        with pytest.raises(Unauthorized):
            who(iam, token, **settings)
    with pytest.raises(Unauthorized):
        who(iam, "for", audience=("paas",), **settings)
    secret_file.write_text("wrong")
    with pytest.raises(NoAnswer, match="client_secret_file"):
        who(iam, "good", **settings)


@pytest.mark.parametrize("end", [".x.y", ".a.b.c.d"])
def test_a_damaged_token_is_shown_to_no_issuer(iam: Issuer, secret_file: Path, end: str) -> None:
    settings = {"opaque": "introspection", "client_id": CLIENT, "secret_file": secret_file}
    with pytest.raises(Unauthorized, match="cannot be read"):
        who(iam, "abc" + end, **settings)
    assert iam.asked == []


def test_opaque_tokens_are_shown_to_userinfo(iam: Issuer) -> None:
    iam.people["good"] = ANN
    assert who(iam, "good", opaque="userinfo").groups == {"physics"}
    with pytest.raises(Unauthorized):
        who(iam, "bad", opaque="userinfo")


def test_answers_are_kept_for_a_while(iam: Issuer) -> None:
    identity = Identity([trusted(iam)])
    token = iam.token(groups=None)
    iam.people[token] = ANN
    for _ in range(5):
        identity.user(f"Bearer {token}")
        identity.user(f"Bearer {iam.token()}")
    assert iam.asked.count("/userinfo") == iam.asked.count("/jwks") == 1


def test_new_keys_are_found_and_attackers_cannot_make_us_ask_at_will(
    iam: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = Identity([trusted(iam)])
    identity.user(f"Bearer {iam.token()}")
    iam.published.append(OTHER_KEY.as_dict(private=False))
    for number in range(5):
        with pytest.raises(Unauthorized):
            identity.user(f"Bearer {iam.token({'kid': f'x{number}'})}")
    assert iam.asked.count("/jwks") == 1
    monkeypatch.setattr(provider, "PAUSE", 0.0)
    assert identity.user(f"Bearer {iam.token({'kid': 'other'}, OTHER_KEY)}").subject == "ann"


@pytest.mark.filterwarnings("ignore:Key size")
def test_short_keys_and_shared_ones_are_left_out(iam: Issuer) -> None:
    secret = b"s" * 32
    short = rsa.generate_private_key(65537, 1024)
    iam.key = RSAKey.import_key(short)
    iam.published[:] = [
        iam.key.as_dict(private=False) | {"kid": "first"},
        shared_key(secret).as_dict() | {"kid": "first"},
        {"kty": "RSA", "kid": "broken", "n": "!"},
        {},
    ]
    with pytest.raises(NoAnswer, match="no keys"):
        who(iam, iam.forged({"alg": "HS256", "kid": "first"}, secret), algorithms=("HS256",))
    with pytest.raises(NoAnswer, match="no keys"):
        who(iam, iam.token())


UNREACHABLE = {
    "gone": (500, b"", {}),
    "redirect": (302, b"", {"Location": "https://other.example.org/"}),
    "no JSON": (200, b"<html>", {}),
    "list": (200, b"[]", {}),
    "huge": (200, b'{"a": "' + b"a" * 1_100_000 + b'"}', {}),
    "other name": (200, b'{"issuer": "https://other.example.org/"}', {}),
    "no TLS": (200, b'{"issuer": "URL", "jwks_uri": "http://localhost/jwks"}', {}),
    "a file": (200, b'{"issuer": "URL", "jwks_uri": "file:///etc/passwd"}', {}),
}


@pytest.mark.parametrize("status", [400, 401, 403])
@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks"])
def test_an_issuer_that_refuses_to_tell_its_keys_is_no_mistake_of_the_user(
    iam: Issuer, path: str, status: int
) -> None:
    iam.changes[path] = (status, b"", {})
    with pytest.raises(NoAnswer, match="refuses to tell its keys"):
        who(iam, iam.token())


def test_endpoints_that_are_refused_are_no_missing_scope(iam: Issuer) -> None:
    iam.changes["/.well-known/openid-configuration"] = (403, b"", {})
    with pytest.raises(NoAnswer, match="refuses"):
        who(iam, "opaque", opaque="userinfo")


@pytest.mark.parametrize("keys", [[], [{}], "none"])
def test_no_keys_replace_no_good_ones(iam: Issuer, monkeypatch: pytest.MonkeyPatch, keys: Any) -> None:
    identity = Identity([trusted(iam)])
    identity.user(f"Bearer {iam.token()}")
    iam.changes["/jwks"] = (200, json.dumps({"keys": keys}).encode(), {})
    monkeypatch.setattr(provider, "KEPT", 0.0)
    assert identity.user(f"Bearer {iam.token(sub='bob')}").subject == "bob"
    assert iam.asked.count("/jwks") == 2


@pytest.mark.parametrize("answer", UNREACHABLE.values(), ids=UNREACHABLE.keys())
def test_an_issuer_that_answers_wrongly_is_told(iam: Issuer, answer: Any) -> None:
    status, body, headers = answer
    body = body.replace(b"URL", iam.url.encode())
    iam.changes["/.well-known/openid-configuration"] = (status, body, headers)
    with pytest.raises(NoAnswer, match="issuer"):
        who(iam, iam.token())


def test_the_certificate_of_an_issuer_is_verified(iam: Issuer) -> None:
    with pytest.raises(NoAnswer, match="CERTIFICATE_VERIFY_FAILED"):
        who(iam, iam.token(), ca_file=None)


def test_keys_are_kept_while_the_issuer_is_away(iam: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = Identity([trusted(iam)])
    identity.user(f"Bearer {iam.token()}")
    iam.changes["/.well-known/openid-configuration"] = (500, b"", {})
    monkeypatch.setattr(provider, "KEPT", 0.0)
    assert identity.user(f"Bearer {iam.token(sub='bob')}").subject == "bob"
    monkeypatch.setattr(provider, "LONGEST_KEPT", 0.0)
    with pytest.raises(NoAnswer):
        identity.user(f"Bearer {iam.token(sub='eve')}")
