"""The hub's certificate: made, renewed, taken, and handed to the proxy."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store
from gpufarm_hub.upkeep import acme, authority, certificate
from gpufarm_hub.upkeep.certificate import CertificateError

NOW = datetime.now(UTC).replace(microsecond=0)


def read(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


@pytest.mark.parametrize("host", ["hub.example.org", "10.1.2.3", "2001:db8::1"])
def test_an_authority_signs_for_the_host(tmp_path: Path, host: str) -> None:
    assert authority.ensure(tmp_path, host, NOW) == ["authority", "certificate"]
    assert modes(tmp_path) == {"ca-key.pem": 0o600, "key.pem": 0o600, "ca.crt": 0o644, "cert.pem": 0o644}
    store = Store([read(tmp_path / "ca.crt")])
    # As strict as browsers are (CA/Browser Forum's profile of RFC 5280).
    PolicyBuilder().store(store).time(NOW).build_server_verifier(certificate.name_of(host)).verify(
        read(tmp_path / "cert.pem"), []
    )
    assert authority.ensure(tmp_path, host, NOW) == []


def test_a_certificate_is_renewed_in_time_and_the_authority_stays(tmp_path: Path) -> None:
    authority.ensure(tmp_path, "hub.example.org", NOW)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert authority.missing(tmp_path, "hub.example.org", NOW + timedelta(days=59)) == []
    later = NOW + timedelta(days=61)
    assert authority.ensure(tmp_path, "hub.example.org", later) == ["certificate"]
    after = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert {name for name in before if before[name] != after[name]} == {"cert.pem", "key.pem"}
    assert read(tmp_path / "cert.pem").not_valid_after_utc == later + timedelta(days=90)


def test_another_host_or_a_damaged_file_gets_a_new_certificate(tmp_path: Path) -> None:
    authority.ensure(tmp_path, "hub.example.org", NOW)
    assert authority.missing(tmp_path, "other.example.org", NOW) == ["certificate"]
    (tmp_path / "key.pem").write_text("half")
    assert authority.missing(tmp_path, "hub.example.org", NOW) == ["certificate"]
    (tmp_path / "ca-key.pem").unlink()
    assert authority.missing(tmp_path, "hub.example.org", NOW) == ["authority", "certificate"]


def test_the_proxy_gets_certificate_and_key_in_one_file_of_its_own(tmp_path: Path) -> None:
    source, target = tmp_path / "tls", tmp_path / "run"
    source.mkdir()
    target.mkdir()
    os.chown(target, 4711, 4712)
    authority.ensure(source, "hub.example.org", NOW)
    file = target / "tls.pem"
    assert certificate.differs(source, file)
    certificate.hand(source, file)
    assert not certificate.differs(source, file)
    assert (file.stat().st_uid, file.stat().st_gid, stat.S_IMODE(file.stat().st_mode)) == (4711, 4712, 0o400)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)
    before = file.read_bytes()
    authority.ensure(source, "other.example.org", NOW)
    (source / "key.pem").write_bytes((source / "ca-key.pem").read_bytes())
    with pytest.raises(CertificateError, match="the key is that of another certificate"):
        certificate.hand(source, file)
    assert file.read_bytes() == before


@pytest.fixture
def got(tmp_path: Path) -> Path:
    """Return the path, without suffix, of a certificate that a client has got."""
    authority.ensure(tmp_path, "hub.example.org", NOW)
    (tmp_path / "cert.pem").rename(tmp_path / "hub.example.org.crt")
    (tmp_path / "key.pem").rename(tmp_path / "hub.example.org.key")
    return tmp_path / "hub.example.org"


def test_a_new_certificate_is_taken_once(got: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    folder.mkdir()
    assert certificate.take(got, folder, "hub.example.org")
    assert modes(folder) == {"cert.pem": 0o644, "key.pem": 0o600}
    assert not certificate.take(got, folder, "hub.example.org")


@pytest.mark.parametrize(
    ("suffix", "content", "sentence"),
    [
        (".crt", "", "cannot be read"),
        (".key", "-----BEGIN", "cannot be read"),
        (".key", None, "is that of another certificate"),
    ],
)
def test_what_is_not_fit_to_be_shown_is_not_taken(
    got: Path, tmp_path: Path, suffix: str, content: str | None, sentence: str
) -> None:
    other = (tmp_path / "ca-key.pem").read_text()
    Path(f"{got}{suffix}").write_text(other if content is None else content)
    with pytest.raises(CertificateError, match=sentence):
        certificate.take(got, tmp_path, "hub.example.org")
    assert not (tmp_path / "cert.pem").exists()


def test_a_certificate_of_somebody_else_is_not_taken(got: Path, tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"it is not for www\.example\.org"):
        certificate.take(got, tmp_path, "www.example.org")


@pytest.mark.parametrize("days", [-2, 91])
def test_a_certificate_out_of_its_time_is_refused(got: Path, days: int) -> None:
    chain, key = (Path(f"{got}{suffix}").read_bytes() for suffix in (".crt", ".key"))
    with pytest.raises(CertificateError, match=r"it is valid from .* UTC only"):
        certificate.check(chain, key, NOW + timedelta(days=days))


def settings_of_acme(tmp_path: Path) -> dict[str, str]:
    return {
        "directory": "https://acme.example.org/dir",
        "email": "operator@example.org",
        "host": "hub.example.org",
        "folder": str(tmp_path / "letsencrypt-prod"),
        "webroot": str(tmp_path / "webroot"),
        "shown": str(tmp_path / "cert.pem"),
    }


def test_the_client_is_asked_only_when_there_is_something_to_do(got: Path, tmp_path: Path) -> None:
    settings = settings_of_acme(tmp_path)
    assert acme.command(settings, NOW)[-1] == "run"
    certificates = tmp_path / "letsencrypt-prod" / "certificates"
    certificates.mkdir(parents=True)
    for suffix in (".crt", ".key"):
        Path(f"{got}{suffix}").rename(certificates / f"hub.example.org{suffix}")
    assert acme.command(settings, NOW) == []
    assert not acme.is_shown(settings)
    certificate.take(certificates / "hub.example.org", tmp_path, "hub.example.org")
    assert acme.is_shown(settings)
    asked = acme.command(settings, NOW + timedelta(days=61))
    assert "renew" in asked
    assert "--server=https://acme.example.org/dir" in asked


@pytest.mark.parametrize("suffix", [".crt", ".key"])
@pytest.mark.parametrize("content", ["", "-----BEGIN CERTIFICATE-----\nMII", None])
def test_a_certificate_that_cannot_be_shown_is_got_anew(
    got: Path, tmp_path: Path, suffix: str, content: str | None
) -> None:
    """The client writes its files in place, so a full disk or a crash leaves a part of one, or none."""
    settings = settings_of_acme(tmp_path)
    certificates = tmp_path / "letsencrypt-prod" / "certificates"
    certificates.mkdir(parents=True)
    for name in (".crt", ".key"):
        Path(f"{got}{name}").rename(certificates / f"hub.example.org{name}")
    damaged = certificates / f"hub.example.org{suffix}"
    if content is None:
        damaged.unlink()
    else:
        damaged.write_text(content)
    assert acme.command(settings, NOW)[-1] == "run"


def test_names_of_notebooks_are_certified_when_they_are_wanted(tmp_path: Path) -> None:
    host, names = "hub.example.org", ["*.notebooks.example.org"]
    authority.ensure(tmp_path, host, NOW)
    assert authority.ensure(tmp_path, host, NOW, names) == ["certificate"]
    assert authority.missing(tmp_path, host, NOW, names) == []
    shown = x509.load_pem_x509_certificate((tmp_path / "cert.pem").read_bytes())
    assert all(certificate.is_for(shown, name) for name in (host, *names))
