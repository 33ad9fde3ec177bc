# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates as servers show them: what they are for, how long, and whether a key is theirs.

``python -m gpufarm_hub.upkeep.certificate hand FOLDER FILE`` gives the proxy the certificate of a folder
(``cert.pem``, ``key.pem``), and ``... compare FOLDER FILE`` says whether it has another one;
``... take FROM FOLDER HOST`` puts a new one into the folder and has the proxy read it.
"""

from __future__ import annotations

import ipaddress
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from gpufarm_hub.files import replace

PROXY = "jupyterhub-proxy.service"


class CertificateError(Exception):
    """A certificate that must not be shown; the text says why."""


def name_of(host: str) -> x509.GeneralName:
    """Return the name or address of a host as certificates hold it (RFC 5280, 4.2.1.6)."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def is_for(certificate: x509.Certificate, host: str) -> bool:
    """Tell whether a certificate names a host itself; one with a wildcard does not."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return name_of(host) in names


def is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Tell whether a certificate must be renewed: less than a third of its time is left.

    Let's Encrypt, "Integration Guide", asks for just this, whatever the lifetime.
    """
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < lifetime / 3


def check(chain: bytes, key: bytes, now: datetime) -> x509.Certificate:
    """Refuse what a server must not show.

    Args:
        chain: certificate and what leads to its authority (PEM).
        key: private key (PEM).
        now: the time.

    Returns:
        The certificate itself.

    Raises:
        CertificateError: not PEM, key of another certificate, or not valid now.
    """
    try:
        certificate = x509.load_pem_x509_certificates(chain)[0]
        public = load_pem_private_key(key, None).public_key()
    except ValueError as error:
        raise CertificateError(f"certificate or key cannot be read ({error})") from error
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if public.public_bytes(*form) != certificate.public_key().public_bytes(*form):
        raise CertificateError("the key is that of another certificate")
    # An authority's clock may be ahead of this machine's.
    if not certificate.not_valid_before_utc - timedelta(minutes=5) <= now < certificate.not_valid_after_utc:
        raise CertificateError(
            f"it is valid from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} to "
            f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC only"
        )
    return certificate


def hand(folder: Path, file: Path) -> None:
    """Write certificate and key into one file, which the owner of its folder may read.

    Raises:
        CertificateError: they are not fit to be shown; the file is as it was.
        OSError: they cannot be read or written.
    """
    chain, key = (folder / "cert.pem").read_bytes(), (folder / "key.pem").read_bytes()
    check(chain, key, datetime.now(UTC))
    reader = file.parent.stat()
    replace(file, _together(chain, key), 0o400, (reader.st_uid, reader.st_gid))


def differs(folder: Path, file: Path) -> bool:
    """Tell whether the proxy has another certificate than the folder."""
    chain, key = (folder / "cert.pem").read_bytes(), (folder / "key.pem").read_bytes()
    return not file.exists() or file.read_bytes() != _together(chain, key)


def _together(chain: bytes, key: bytes) -> bytes:
    return chain.rstrip() + b"\n" + key


def take(source: Path, folder: Path, host: str) -> bool:
    """Put a new certificate into the folder, unless it is there already.

    Args:
        source: path of the certificate without its suffix; the key is beside it (``.crt``, ``.key``).
        folder: gets ``cert.pem`` and ``key.pem``.
        host: whom the certificate must be for.

    Returns:
        Whether it is new.

    Raises:
        CertificateError: it is not fit to be shown; the folder is as it was.
        OSError: it cannot be read or written.
    """
    # Plain concatenation: with_suffix() would take the end of a host's name for one.
    chain, key = (Path(f"{source}{suffix}").read_bytes() for suffix in (".crt", ".key"))
    if not is_for(check(chain, key, datetime.now(UTC)), host):
        raise CertificateError(f"it is not for {host}")
    if (folder / "cert.pem").exists() and (folder / "cert.pem").read_bytes() == chain:
        return False
    replace(folder / "key.pem", key)
    replace(folder / "cert.pem", chain, 0o644)
    return True


def show() -> None:
    """Have a proxy that runs read its certificate again; connections stay open.

    Raises:
        subprocess.CalledProcessError: systemd said no.
    """
    asked = subprocess.run(["/usr/bin/systemctl", "is-active", "--quiet", PROXY], check=False)
    if asked.returncode == 0:
        subprocess.run(["/usr/bin/systemctl", "reload", PROXY], check=True)


def main() -> None:
    """Run the program."""
    action, source, target, *host = sys.argv[1:]
    try:
        if action == "hand":
            hand(Path(source), Path(target))
        elif action == "compare":
            print("differs" if differs(Path(source), Path(target)) else "")
        elif take(Path(source), Path(target), *host):
            show()
    except (CertificateError, OSError) as error:
        sys.exit(f"The certificate {source} is not used: {error}.")


if __name__ == "__main__":
    main()
