# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates between hub, proxy and the notebooks of nodes, from an authority that nobody else trusts.

``python -m gpufarm_hub.slurm.certificates FOLDER HOST`` makes the authority, and the certificate with which
the hub is known to nodes and with which hub and proxy are known to notebooks; with ``--check`` it says what
it would make.
"""

from __future__ import annotations

import argparse
import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID

from gpufarm_hub.upkeep import authority

# As long as the authority's own: who could read its key could read the authority's, and a restart of the
# proxy for a new one would end the web sockets of all users.
LIFETIME = authority.AUTHORITY_LIFETIME


def ensure(folder: Path, host: str, now: datetime) -> list[str]:
    """Make what is missing; return it, as `authority.missing` says it.

    Args:
        folder: has or gets ``ca.crt``, ``ca-key.pem``, ``cert.pem`` and ``key.pem``.
        host: name or address at which nodes reach the hub.
        now: the time.
    """
    usages = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
    return authority.ensure(folder, host, now, lifetime=LIFETIME, usages=usages)


def of_notebook(
    folder: Path, signing: str, name: str, address: str, now: datetime, lifetime: timedelta
) -> str:
    """Return the certificate of a notebook (PEM), with which it can be a server and nobody's client.

    Args:
        folder: of the authority.
        signing: request of the job (PEM, PKCS #10). Names in it do not count.
        name: of the notebook (`handover.name_of`).
        address: of its node.
        now: the time.
        lifetime: of the certificate.

    Raises:
        ValueError: the request is none, or not made with the key in it.
    """
    try:
        request = x509.load_pem_x509_csr(signing.encode())
        valid = request.is_signature_valid
    except (InvalidSignature, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("the request for a certificate cannot be read") from error
    if not valid:
        raise ValueError("the request for a certificate is not signed with its own key")
    key = request.public_key()
    names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(address))]
    usages = (ExtendedKeyUsageOID.SERVER_AUTH,)
    return authority.sign(folder, key, x509.Name([]), names, now, lifetime, usages).decode()


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="gpufarm_hub.slurm.certificates")
    parser.add_argument("folder", type=Path)
    parser.add_argument("host")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    act = authority.missing if options.check else ensure
    print(", ".join(act(options.folder, options.host, datetime.now(UTC))))


if __name__ == "__main__":
    main()
