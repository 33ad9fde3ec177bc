"""Certificates and their keys in files of this process, for variables that name such files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAMES = ("host1.example.org", "gpu1.example.org", "apps.example.org")
_folder = TemporaryDirectory(prefix="gpufarm-certificates-")


def _key(name: str) -> tuple[str, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = Path(_folder.name) / name
    path.write_bytes(text)
    return str(path), key


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, days: int, names: tuple[str, ...] = NAMES
) -> str:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAMES[0])])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + timedelta(days=days))
    )
    if names:
        alternative = x509.SubjectAlternativeName([x509.DNSName(one) for one in names])
        builder = builder.add_extension(alternative, critical=False)
    made = builder.sign(key, hashes.SHA256())
    path = Path(_folder.name) / name
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return str(path)


def _same_key(name: str, key: ec.EllipticCurvePrivateKey) -> str:
    """Return the path of a file with a key in another encoding, so that it has another text."""
    path = Path(_folder.name) / name
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return str(path)


KEY, _private = _key("hub-key.pem")
SAME_KEY = _same_key("same-key.pem", _private)
PUBLIC_PEM = (
    _private.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode()
)
CERTIFICATE = _certificate("hub.pem", _private, 1000)
NAMELESS_CERTIFICATE = _certificate("nameless.pem", _private, 1000, names=())
OTHER_CERTIFICATE = _certificate("longer.pem", _private, 2000)
EXPIRED_KEY, _private = _key("old-key.pem")
EXPIRED = _certificate("old.pem", _private, -1)
OTHER_KEY, _private = _key("other-key.pem")
