"""The identity provider's own certificate authority and server certificate, made once per bench."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lab.system import write_atomically

LIFETIME = dt.timedelta(days=365)
RENEW_BEFORE = dt.timedelta(days=30)
NOT_A_CA = x509.BasicConstraints(ca=False, path_length=None)


def ensure_certificates(state_dir: Path, address: str) -> tuple[Path, str, str]:
    """Make or reuse a certificate authority and a server certificate for one address.

    Args:
        state_dir: folder of the bench; gets iam-ca.{crt,key} and iam-server.{crt,key} (keys 0600).
        address: IP address that the server certificate is valid for (subjectAltName, RFC 5280 4.2.1.6).

    Returns:
        The path of the authority's certificate, the server's certificate (PEM), the server's key (PEM).
    """
    ca_file = state_dir / "iam-ca.crt"
    ca_key_file = state_dir / "iam-ca.key"
    server_file = state_dir / "iam-server.crt"
    server_key_file = state_dir / "iam-server.key"
    if not (_fresh(ca_file) and ca_key_file.exists()):
        _make_authority(ca_file, ca_key_file)
        server_file.unlink(missing_ok=True)
    if not (_fresh(server_file, address) and server_key_file.exists()):
        _make_server(ca_file, ca_key_file, server_file, server_key_file, address)
    return ca_file, server_file.read_text(), server_key_file.read_text()


def _fresh(file: Path, address: str | None = None) -> bool:
    if not file.exists():
        return False
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    if certificate.not_valid_after_utc - RENEW_BEFORE < dt.datetime.now(dt.UTC):
        return False
    if address is None:
        return True
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return ipaddress.ip_address(address) in names.get_values_for_type(x509.IPAddress)


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _make_authority(ca_file: Path, key_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = "gpufarm bench authority"
    certificate = (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    _store(key, certificate, key_file, ca_file)


def _make_server(ca_file: Path, ca_key_file: Path, file: Path, key_file: Path, address: str) -> None:
    authority = x509.load_pem_x509_certificate(ca_file.read_bytes())
    authority_key = serialization.load_pem_private_key(ca_key_file.read_bytes(), password=None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    certificate = (
        _builder(address, "gpufarm bench authority", key.public_key())
        .add_extension(NOT_A_CA, critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    _store(key, certificate, key_file, file)


def _store(
    key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate, key_file: Path, file: Path
) -> None:
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_atomically(key_file, pem.decode(), 0o600)
    write_atomically(file, certificate.public_bytes(serialization.Encoding.PEM).decode(), 0o644)
