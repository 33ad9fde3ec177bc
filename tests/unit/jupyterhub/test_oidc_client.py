"""The module oidc_client against a provider on TLS: registers, looks, updates, forgets.

The provider here answers as RFC 7591 (registration) and RFC 7592 (management) describe; the scenario of the
role asks a certified one.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import datetime
import http.server
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.modules import oidc_client
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Run = Callable[..., dict[str, Any]]


class Provider(http.server.ThreadingHTTPServer):
    """Keeps clients in memory."""

    registers = True

    def __init__(self, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.issuer = f"https://127.0.0.1:{self.server_port}/"
        self.clients: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Provider

    def log_message(self, *arguments: object) -> None:
        pass

    def answer(self, status: int, body: object = None) -> None:
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def body(self) -> dict[str, Any]:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def client(self) -> dict[str, Any] | None:
        """The client, if the request has its token."""
        found = self.server.clients.get(self.path.rpartition("/")[2])
        if found and self.headers["Authorization"] == f"Bearer {found['registration_access_token']}":
            return found
        self.answer(401, {"error": "invalid_token"})
        return None

    def handle_one_request(self) -> None:
        super().handle_one_request()
        if getattr(self, "command", None):
            self.server.requests.append(self.command)

    def do_GET(self) -> None:
        issuer = self.server.issuer
        if self.path == "/.well-known/openid-configuration":
            document = {
                "issuer": issuer,
                **{f"{name}_endpoint": f"{issuer}{name}" for name in ("authorization", "token", "userinfo")},
                "scopes_supported": ["openid", "profile"],
            }
            if self.server.registers:
                document["registration_endpoint"] = f"{issuer}register"
            self.answer(200, document)
        elif self.path.startswith("/register/"):
            if client := self.client():
                self.answer(200, client)
        else:
            self.answer(404)

    def do_POST(self) -> None:
        sent = self.body()
        if not sent["redirect_uris"]:
            self.answer(400, {"error": "invalid_redirect_uri", "error_description": "redirect_uris is empty"})
            return
        identifier = f"id-{len(self.server.clients) + 1}"
        self.server.clients[identifier] = {
            **sent,
            "client_id": identifier,
            "client_secret": f"secret-of-{identifier}",
            "registration_access_token": f"token-of-{identifier}",
            "registration_client_uri": f"{self.server.issuer}register/{identifier}",
        }
        self.answer(201, self.server.clients[identifier])

    def do_PUT(self) -> None:
        sent = self.body()
        if client := self.client():
            assert sent["client_id"] == client["client_id"] and "registration_access_token" not in sent
            client.update(sent)
            self.answer(200, client)

    def do_DELETE(self) -> None:
        if client := self.client():
            del self.server.clients[client["client_id"]]
            self.answer(204)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for 127.0.0.1 that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "provider")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "provider.pem"
    path.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path


@pytest.fixture
def provider(certificate: Path) -> Iterator[Provider]:
    server = Provider(certificate)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def run(
    provider: Provider,
    certificate: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Run the module; returns its result, that of a failure as well."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    def call(check: bool = False, **options: Any) -> dict[str, Any]:
        arguments = {
            "issuer": provider.issuer,
            "ca_certificate": certificate.read_text().partition("-----BEGIN PRIV")[0],
            "path": str(tmp_path / "client.json"),
            "client_name": "Hub",
            "redirect_uris": ["https://hub:8888/hub/oauth_callback"],
            "scopes": ["openid", "profile", "offline_access"],
            **options,
            "_ansible_check_mode": check,
            "_ansible_remote_tmp": str(tmp_path),
        }
        capsys.readouterr()
        with patch_module_args(arguments), pytest.raises(SystemExit):
            oidc_client.main()
        result = json.loads(capsys.readouterr().out)
        provider.requests, result["requests"] = [], provider.requests
        return result

    return call


@pytest.fixture
def kept(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    return lambda: json.loads((tmp_path / "client.json").read_text())


def test_registers_once(
    run: Run, provider: Provider, kept: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    first = run()
    assert first["changed"] and first["client_id"] == "id-1"
    assert first["scopes"] == ["openid", "profile"]
    assert first["provider"]["token_endpoint"] == f"{provider.issuer}token"
    assert kept()["client_secret"] == "secret-of-id-1"
    assert (tmp_path / "client.json").stat().st_mode & 0o777 == 0o600
    assert "secret-of" not in json.dumps(first) and "token-of" not in json.dumps(first)
    second = run()
    assert not second["changed"] and second["client_id"] == "id-1"
    assert second["requests"] == ["GET", "GET"]


def test_check_mode_only_looks(run: Run, provider: Provider, tmp_path: Path) -> None:
    result = run(check=True)
    assert result["changed"] and result["requests"] == ["GET"] and provider.clients == {}
    assert '"client_name": "Hub"' in result["diff"]["after"]
    assert not (tmp_path / "client.json").exists()


def test_updates_what_has_changed(run: Run, provider: Provider, kept: Callable[[], dict[str, Any]]) -> None:
    run()
    moved = ["https://new:8888/hub/oauth_callback"]
    assert run(check=True, redirect_uris=moved)["requests"] == ["GET", "GET"]
    result = run(redirect_uris=moved)
    assert result["changed"] and result["client_id"] == "id-1"
    assert provider.clients["id-1"]["redirect_uris"] == moved == kept()["requested"]["redirect_uris"]
    assert "https://hub:8888" in result["diff"]["before"]
    assert not run(redirect_uris=moved)["changed"]


def test_mends_what_somebody_has_changed_at_the_provider(run: Run, provider: Provider) -> None:
    run()
    provider.clients["id-1"]["redirect_uris"] = ["https://elsewhere/"]
    assert run()["changed"]
    assert provider.clients["id-1"]["redirect_uris"] == ["https://hub:8888/hub/oauth_callback"]


def test_registers_anew_what_the_provider_has_forgotten(
    run: Run, provider: Provider, kept: Callable[[], dict[str, Any]]
) -> None:
    run()
    provider.clients = {"id-1": {"registration_access_token": "of somebody else"}}
    result = run()
    assert result["changed"] and kept()["client_id"] == "id-2"
    assert not run()["changed"]


def test_keeps_a_token_that_was_exchanged(
    run: Run, provider: Provider, kept: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC 7592, section 5: the token may be replaced at any request; who loses it loses the client."""
    run()
    answer = Handler.answer

    def exchange(handler: Handler, status: int, body: Any = None) -> None:
        if body and "registration_access_token" in body:
            body["registration_access_token"] = "token-2"
        answer(handler, status, body)

    monkeypatch.setattr(Handler, "answer", exchange)
    assert not run()["changed"]
    assert kept()["registration_token"] == "token-2"
    assert not run()["changed"]


def test_a_client_made_by_hand_replaces_a_registered_one(
    run: Run, provider: Provider, kept: Callable[[], dict[str, Any]]
) -> None:
    run()
    result = run(client_id="mine", client_secret="given secret")
    assert result["changed"] and provider.clients == {}
    assert (kept()["client_id"], kept()["client_secret"]) == ("mine", "given secret")
    assert "given secret" not in json.dumps(result)
    assert not run(client_id="mine", client_secret="given secret")["changed"]
    assert run(client_id="mine", client_secret="another")["changed"]


def test_absent_deletes_the_client(run: Run, provider: Provider, tmp_path: Path) -> None:
    run()
    assert run(state="absent", check=True)["changed"] and provider.clients
    assert run(state="absent")["changed"]
    assert provider.clients == {} and not (tmp_path / "client.json").exists()
    assert not run(state="absent")["changed"]


def test_absent_leaves_a_client_made_by_hand_at_the_provider(run: Run) -> None:
    run(client_id="mine", client_secret="given secret")
    assert run(state="absent")["requests"] == []


def test_absent_does_not_need_the_provider(run: Run, provider: Provider, tmp_path: Path) -> None:
    run()
    path = tmp_path / "client.json"
    path.write_text(path.read_text().replace(f":{provider.server_port}/", ":1/"))
    result = run(state="absent", issuer="")
    assert result["changed"] and not path.exists()
    assert "was not deleted" in json.dumps(result["warnings"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ca_certificate": ""}, "its TLS certificate cannot be verified (self-signed certificate)"),
        ({"issuer": "https://127.0.0.1:1/"}, "Connection refused; check the URL and that the provider runs."),
        ({"issuer": "https://iam.example.invalid/"}, "its name cannot be resolved; check the URL"),
        ({"issuer": "http://iam.example.org/"}, "does not start with https://"),
        ({"redirect_uris": []}, "refused to register a client: redirect_uris is empty (HTTP status 400)"),
    ],
)
def test_says_in_one_sentence_what_is_wrong(run: Run, options: dict[str, Any], sentence: str) -> None:
    result = run(**options)
    assert result["failed"] and sentence in result["msg"]


def test_a_path_that_is_not_the_issuers(run: Run, provider: Provider) -> None:
    assert "HTTP status 404; check that its URL" in run(issuer=f"{provider.issuer}nowhere")["msg"]


def test_a_provider_without_registration(run: Run, provider: Provider) -> None:
    provider.registers = False
    assert "registers no clients by itself; register one there" in run()["msg"]
    assert run(client_id="mine", client_secret="given secret")["changed"]
