# SPDX-License-Identifier: GPL-3.0-or-later
"""An issuer of tokens on this machine, with TLS, that also makes tokens as attackers do."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import html
import json
import secrets
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import NameOID
from joserfc.jwk import ECKey, OctKey, RSAKey

CLIENT, SECRET = "paas", "client-secret"
# Made once, as that takes a while.
KEY = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "other"})
ANN: dict[str, Any] = {
    "sub": "ann",
    "groups": ["physics"],
    "preferred_username": "ann",
    "email": "ann@example.org",
}


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for this machine that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    public, private = folder / "cert.pem", folder / "key.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    private.chmod(0o600)
    return public, private


def signature(text: bytes, algorithm: str, key: Any) -> bytes:
    """Sign (RFC 7518, sections 3.3 and 3.4), by another library than the one that verifies."""
    if algorithm.startswith("ES"):
        numbers = decode_dss_signature(key.sign(text, ec.ECDSA(hashes.SHA256())))
        return b"".join(number.to_bytes(32, "big") for number in numbers)
    return key.sign(text, padding.PKCS1v15(), hashes.SHA512() if "512" in algorithm else hashes.SHA256())


def encoded(value: Any) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


class Handler(BaseHTTPRequestHandler):
    issuer: Issuer

    def log_message(self, *_what: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(dict(self.headers), b"")

    def do_POST(self) -> None:
        self.answer(dict(self.headers), self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, headers: dict[str, str], body: bytes) -> None:
        status, content, more = self.issuer.answer(self.path, headers, body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class Issuer:
    """The issuer.

    Attributes:
        url: its name.
        key: RSA key of its signatures.
        asked: paths that it was asked for.
        people: claims of userinfo by access token.
        opaque: claims of the introspection by access token.
        accounts: claims of those who can sign in, by name.
        codes: request for each code that was not exchanged yet, and who has signed in.
        more: claims that ID tokens get, whatever is right; None takes one away.
        changes: answers by path that replace its own.
    """

    def __init__(self, folder: Path, *, slash: bool = True) -> None:
        self.ca_file, key = certificate(folder)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), {"issuer": self}))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca_file, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.root = f"https://localhost:{self.server.server_address[1]}"
        self.url = self.root + ("/" if slash else "")
        self.key = KEY
        self.ec_key = ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"})
        self.published: list[dict[str, Any]] = [
            self.key.as_dict(private=False),
            self.ec_key.as_dict(private=False),
        ]
        self.asked: list[str] = []
        self.people: dict[str, dict[str, Any]] = {}
        self.opaque: dict[str, dict[str, Any]] = {}
        self.accounts: dict[str, dict[str, Any]] = {"ann": ANN}
        self.codes: dict[str, tuple[dict[str, str], str]] = {}
        self.more: dict[str, Any] = {}
        self.changes: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        self.asked.append(path)
        if path in self.changes:
            return self.changes[path]
        found: dict[str, Any] | None = None
        if path == "/.well-known/openid-configuration":
            endpoints = {"jwks_uri": "jwks", "userinfo_endpoint": "userinfo"}
            endpoints |= {"introspection_endpoint": "introspect"}
            endpoints |= {"authorization_endpoint": "authorize", "token_endpoint": "token"}
            found = {name: f"{self.root}/{end}" for name, end in endpoints.items()} | {"issuer": self.url}
        elif path == "/jwks":
            found = {"keys": self.published}
        elif path == "/userinfo":
            found = self.people.get(headers.get("Authorization", "").removeprefix("Bearer "))
        elif path == "/introspect":
            login = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
            if headers.get("Authorization") == f"Basic {login}":
                token = urllib.parse.parse_qs(body.decode())["token"][0]
                found = {"active": True, **self.opaque[token]} if token in self.opaque else {"active": False}
        elif path.startswith("/authorize?"):
            return self.authorize(path)
        elif path == "/token":
            form = dict(urllib.parse.parse_qsl(body.decode()))
            return self.exchange(form, headers.get("Authorization", ""))
        return (200, json.dumps(found).encode(), {}) if found is not None else (401, b"", {})

    def authorize(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        """Ask who signs in, and lead back; a person here needs no password."""
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
        person = query.pop("person", "")
        if person not in self.accounts:
            links = (
                f'<li><a href="{html.escape(f"{path}&person={name}")}">{name}</a></li>'
                for name in self.accounts
            )
            page = f"<!doctype html><title>Sign in</title><ul>{''.join(links)}</ul>"
            return 200, page.encode(), {"Content-Type": "text/html"}
        return 302, b"", {"Location": self.approved(query, person)}

    def approved(self, query: dict[str, str], person: str) -> str:
        """Make a code, and the address to which the browser is led with it (RFC 6749, RFC 7636)."""
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT
        assert "openid" in query["scope"].split()
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = (query, person)
        answer = {"code": code, "state": query["state"], "iss": self.url}
        return f"{query['redirect_uri']}?{urllib.parse.urlencode(answer)}"

    def exchange(self, form: dict[str, str], login: str) -> tuple[int, bytes, dict[str, str]]:
        known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if login != f"Basic {known}":
            return 401, b'{"error": "invalid_client"}', {}
        query, person = self.codes.pop(form.get("code", ""), ({}, ""))
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        right = (
            form.get("grant_type") == "authorization_code"
            and query.get("redirect_uri") == form.get("redirect_uri")
            and query.get("code_challenge") == encoded(challenge)
        )
        if not person or not right:
            return 400, b'{"error": "invalid_grant"}', {}
        claims = self.accounts[person]
        access = self.token(**claims)
        self.people[access] = claims
        about = {"groups": None, "email": None, "preferred_username": None, "sub": claims["sub"]}
        own = {**about, "aud": CLIENT, "nonce": query["nonce"], **self.more}
        found = {"access_token": access, "token_type": "Bearer", "id_token": self.token(**own)}
        return 200, json.dumps(found).encode(), {}

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Claims of a token of Ann; None takes one away."""
        now = int(time.time())
        found = {"iss": self.url, "iat": now, "exp": now + 600, **ANN, **changes}
        return {name: value for name, value in found.items() if value is not None}

    def token(self, header: dict[str, Any] | None = None, key: Any = None, **changes: Any) -> str:
        """Sign a token."""
        given = {"alg": "RS256", "kid": "first", **(header or {})}
        head = {name: value for name, value in given.items() if value is not None}
        start = f"{encoded(head)}.{encoded(self.claims(**changes))}"
        return f"{start}.{encoded(signature(start.encode(), head['alg'], (key or self.key).private_key))}"

    def forged(self, header: dict[str, Any], secret: bytes = b"", **changes: Any) -> str:
        """Sign a token with a shared secret, or not at all."""
        start = f"{encoded(header)}.{encoded(self.claims(**changes))}"
        if not secret:
            return f"{start}."
        return f"{start}.{encoded(hmac.new(secret, start.encode(), 'sha256').digest())}"


def shared_key(secret: bytes) -> OctKey:
    return OctKey.import_key(secret)


@contextmanager
def issuer(folder: Path, *, slash: bool = True) -> Iterator[Issuer]:
    made = Issuer(folder, slash=slash)
    try:
        yield made
    finally:
        made.close()
