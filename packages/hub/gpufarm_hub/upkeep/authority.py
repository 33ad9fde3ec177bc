# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine's own certificate authority, and the certificate of the hub that it signs.

``python -m gpufarm_hub.upkeep.authority FOLDER HOST NAME...`` makes what is missing, renews the certificate
before its time is over, and says what it did; with ``--check`` it says what it would do. The authority stays,
as users have imported it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpufarm_hub.files import replace

from . import certificate

AUTHORITY_LIFETIME = timedelta(days=3650)
# Short, as a timer renews it: a key that was lost is worth little for long.
LIFETIME = timedelta(days=90)
# Clocks of users' machines may be behind.
EARLIER = timedelta(hours=1)
# RFC 5280, appendix A.1: ub-common-name.
LONGEST_NAME = 64


def missing(folder: Path, host: str, now: datetime, others: Sequence[str] = ()) -> list[str]:
    """Return what must be made: ``authority``, ``certificate``, or nothing.

    Args:
        folder: has or gets ``ca.crt``, ``ca-key.pem``, ``cert.pem`` and ``key.pem``.
        host: whom the certificate is for.
        now: the time.
        others: further names, which may be wildcards.
    """
    if not all((folder / name).exists() for name in ("ca.crt", "ca-key.pem")):
        return ["authority", "certificate"]
    authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    try:
        chain, key = (folder / "cert.pem").read_bytes(), (folder / "key.pem").read_bytes()
        ours = certificate.check(chain, key, now)
        ours.verify_directly_issued_by(authority)
    except (OSError, ValueError, TypeError, InvalidSignature, certificate.CertificateError):
        return ["certificate"]
    fine = all(certificate.is_for(ours, name) for name in (host, *others)) and not certificate.is_due(
        ours, now
    )
    return [] if fine else ["certificate"]


def ensure(
    folder: Path,
    host: str,
    now: datetime,
    others: Sequence[str] = (),
    *,
    lifetime: timedelta = LIFETIME,
    usages: Sequence[x509.ObjectIdentifier] = (ExtendedKeyUsageOID.SERVER_AUTH,),
) -> list[str]:
    """Make what is missing.

    Args:
        folder: as for `missing`.
        host: whom the certificate is for.
        now: the time.
        others: further names, which may be wildcards.
        lifetime: of a certificate that is made.
        usages: of such a certificate (RFC 5280, 4.2.1.12).

    Returns:
        The things that were made, as `missing` says it.
    """
    wanted = missing(folder, host, now, others)
    if "authority" in wanted:
        _make_authority(folder, host, now)
    if "certificate" in wanted:
        key = generate_private_key(SECP256R1())
        names = [certificate.name_of(name) for name in (host, *others)]
        made = sign(folder, key.public_key(), _named(host), names, now, lifetime, usages)
        replace(folder / "key.pem", _pem(key))
        replace(folder / "cert.pem", made, 0o644)
    return wanted


def sign(
    folder: Path,
    key: CertificatePublicKeyTypes,
    subject: x509.Name,
    names: Sequence[x509.GeneralName],
    now: datetime,
    lifetime: timedelta,
    usages: Sequence[x509.ObjectIdentifier],
) -> bytes:
    """Return a certificate (PEM).

    Args:
        folder: of the authority.
        key: that the certificate is for.
        subject: of the certificate.
        names: that it is for.
        now: the time.
        lifetime: of it, unless the authority's own ends before.
        usages: of it (RFC 5280, 4.2.1.12).
    """
    authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    signer = load_pem_private_key((folder / "ca-key.pem").read_bytes(), None)
    assert isinstance(signer, EllipticCurvePrivateKey)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(min(now + lifetime, authority.not_valid_after_utc))
        # Critical where there is no subject (RFC 5280, 4.2.1.6).
        .add_extension(x509.SubjectAlternativeName(names), critical=not list(subject))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM)


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:LONGEST_NAME])])


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


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


def _make_authority(folder: Path, host: str, now: datetime) -> None:
    key = generate_private_key(SECP256R1())
    name = _named(f"JupyterHub of {host}")
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    # The certificate comes last: without it, all is made again.
    (folder / "ca.crt").unlink(missing_ok=True)
    replace(folder / "ca-key.pem", _pem(key))
    replace(folder / "ca.crt", made.public_bytes(Encoding.PEM), 0o644)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="gpufarm_hub.upkeep.authority")
    parser.add_argument("folder", type=Path)
    parser.add_argument("host")
    parser.add_argument("others", nargs="*")
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--show", action="store_true", help="have the proxy read a new certificate")
    options = parser.parse_args()
    act = missing if options.check else ensure
    done = act(options.folder, options.host, datetime.now(UTC), options.others)
    print(", ".join(done))
    if options.show and done:
        certificate.show()


if __name__ == "__main__":
    main()
