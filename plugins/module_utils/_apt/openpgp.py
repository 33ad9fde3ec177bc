# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingerprints of OpenPGP keys, read from the text itself, so that no machine needs GnuPG to check one.

Source: RFC 4880, "4.2. Packet Headers", "6.2. Forming ASCII Armor", "12.2. Key IDs and Fingerprints".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator

PUBLIC_KEY = 6  # tag of a primary key; subkeys have their own
# Tags of what a public key consists of: signature, primary key, user id, subkey, user attribute.
TAGS = {2, PUBLIC_KEY, 13, 14, 17}
# Nothing but this is a block. apt is less strict: it begins after the first empty line, leaves out lines that
# begin with "=", and goes on after padding, so that it would find keys in a block that are not found here.
ARMOR = re.compile(
    r"^-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(?:[^\r\n]+: [^\r\n]*\r?\n)*\r?\n"
    r"((?:[A-Za-z0-9+/]+={0,2}\r?\n)+)"
    r"(?:=[A-Za-z0-9+/]{4}[ \t]*\r?\n)?(?:[ \t]*\r?\n)*-----END PGP",
    re.MULTILINE,
)


class KeyFileError(ValueError):
    """A text is not the key that is wanted; the message says what it is instead, as the end of a sentence."""


class WrongKeyError(KeyFileError):
    """A text holds a key that is not the one that is wanted."""


def verify(text: str, fingerprint: str) -> None:
    """Check that a text holds one key, and that it is the right one.

    Args:
        text: the contents of a key file in ASCII armor.
        fingerprint: that of the primary key, in hexadecimal digits.

    Raises:
        KeyFileError: it holds another key, several keys or none.
    """
    found = fingerprints(text)
    if found != [fingerprint.upper()]:
        raise WrongKeyError(
            f"has the fingerprint {' and '.join(found)}, and {fingerprint.upper()} is expected"
        )


def fingerprints(text: str) -> list[str]:
    """Return the fingerprints of the primary keys in a text, as upper-case hexadecimal digits.

    Args:
        text: the contents of a key file in ASCII armor.

    Raises:
        KeyFileError: there is no such key in it.
    """
    armored = ARMOR.findall(text)
    # A program that reads a block which is skipped here would trust a key that nobody compared.
    if not armored or text.count("-----BEGIN") != len(armored):
        raise KeyFileError("is no OpenPGP key in ASCII armor")
    try:
        found = [_fingerprint(key) for block in armored for key in _primary_keys(block)]
    except (IndexError, binascii.Error) as error:
        raise KeyFileError("is no OpenPGP key, or is cut off") from error
    if not found:
        raise KeyFileError("holds no public OpenPGP key")
    return found


def _primary_keys(block: str) -> Iterator[bytes]:
    binary = base64.b64decode("".join(block.split()), validate=True)
    for tag, body in _packets(binary):
        if tag not in TAGS:
            raise KeyFileError(f"holds a packet of type {tag}, which no public OpenPGP key has")
        if tag == PUBLIC_KEY:
            yield body


def _fingerprint(body: bytes) -> str:
    if body[0] != 4:
        raise KeyFileError(f"holds an OpenPGP key of version {body[0]}, and only version 4 can be checked")
    framed = b"\x99" + len(body).to_bytes(2, "big") + body
    return hashlib.sha1(framed).hexdigest().upper()  # noqa: S324 - the standard defines the fingerprint so


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and body of each packet.

    Raises:
        IndexError: a packet is cut off.
    """
    at = 0
    while at < len(data):
        header = data[at]
        if not header & 0x80:
            raise KeyFileError("is no OpenPGP key")
        if header & 0x40:
            tag, (length, at) = header & 0x3F, _new_length(data, at + 1)
        else:
            tag, octets = (header >> 2) & 0x0F, 1 << (header & 3)
            if octets == 8:
                raise KeyFileError("holds a packet of unknown length, which no OpenPGP key has")
            length, at = int.from_bytes(data[at + 1 : at + 1 + octets], "big"), at + 1 + octets
        if at + length > len(data):
            raise IndexError
        yield tag, data[at : at + length]
        at += length


def _new_length(data: bytes, at: int) -> tuple[int, int]:
    """Return the length of a packet in the new format, and where its body begins."""
    first = data[at]
    if first < 192:
        return first, at + 1
    if first < 224:
        return ((first - 192) << 8) + data[at + 1] + 192, at + 2
    if first == 255:
        return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
    raise KeyFileError("holds a packet of unknown length, which no OpenPGP key has")
