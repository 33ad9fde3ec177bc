# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Public part and fingerprint of a host key of SSH. No I/O."""

from __future__ import annotations

import base64
import binascii
import hashlib

# OpenSSH, PROTOCOL.key: what the format begins with.
MAGIC = b"openssh-key-v1\0"


class HostKeyProblem(ValueError):
    """A text is no private key of OpenSSH's format; it is not repeated."""


def public_key(private_key: str) -> str:
    """Return the public part of a private key, which the format has in the clear.

    Args:
        private_key: in the format of ``ssh-keygen``.

    Returns:
        Type and key, as in a file ``.pub``, without a remark.

    Raises:
        HostKeyProblem: it is none.
    """
    body = "".join(line for line in private_key.split("\n") if not line.startswith("-----"))
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data.startswith(MAGIC):
        raise HostKeyProblem("no private key in the format of OpenSSH")
    rest = data[len(MAGIC) :]
    for _part in ("cipher", "derivation of its key", "options of the derivation"):
        _text, rest = _string(rest)
    blob, _rest = _string(rest[4:])  # the four bytes say how many keys there are
    kind, _rest = _string(blob)
    return f"{kind.decode('ascii', 'replace')} {base64.b64encode(blob).decode()}"


def fingerprint(public: str) -> str:
    """Return the fingerprint of a public key, as ``ssh`` shows it when it asks whether to go on.

    Args:
        public: type and key.
    """
    digest = hashlib.sha256(base64.b64decode(public.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _string(data: bytes) -> tuple[bytes, bytes]:
    """Split off a string of RFC 4251, section 5, which has its length before it in four bytes."""
    end = 4 + int.from_bytes(data[:4], "big")
    if len(data) < end:
        raise HostKeyProblem("a private key that is cut off")
    return data[4:end], data[end:]
