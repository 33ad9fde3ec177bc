# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read SSH public keys as people paste them, and refuse what is none."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

# Fields after the type in the encoded key: RFC 4253, section 6.6 (ssh-rsa); RFC 5656, section 3.1
# (ecdsa); RFC 8709, section 4 (ssh-ed25519); OpenSSH, PROTOCOL.u2f, section "SSH U2F Key formats" (sk-).
FIELDS = {
    "ssh-ed25519": ("point",),
    "ssh-rsa": ("exponent", "modulus"),
    "ecdsa-sha2-nistp256": ("curve", "point"),
    "ecdsa-sha2-nistp384": ("curve", "point"),
    "ecdsa-sha2-nistp521": ("curve", "point"),
    "sk-ssh-ed25519@openssh.com": ("point", "application"),
    "sk-ecdsa-sha2-nistp256@openssh.com": ("curve", "point", "application"),
}

# Bytes of a point, by the curve that the type names: RFC 8032, section 5.1.5; SEC 1, section 2.3.3,
# uncompressed.
POINT_BYTES = {"ed25519": 32, "nistp256": 65, "nistp384": 97, "nistp521": 133}

# NIST SP 800-131A Revision 2, table 2: shorter RSA keys are disallowed for signatures.
RSA_BITS = 2048

# sshd(8), AUTHORIZED_KEYS FILE FORMAT: the options that may stand before a key.
OPTIONS = (
    "agent-forwarding",
    "cert-authority",
    "command",
    "environment",
    "expiry-time",
    "from",
    "no-agent-forwarding",
    "no-port-forwarding",
    "no-pty",
    "no-touch-required",
    "no-user-rc",
    "no-x11-forwarding",
    "permitlisten",
    "permitopen",
    "port-forwarding",
    "principals",
    "pty",
    "restrict",
    "tunnel",
    "user-rc",
    "verify-required",
    "x11-forwarding",
)

# An option, with or without a quoted value, in which a quote is written \" (sshd(8), as above).
_OPTION = re.compile(r"""([A-Za-z0-9-]+)(="(?:[^"\\]|\\.)*")?(,|(?=[ \t]))""")


class KeyProblem(ValueError):
    """A text is no SSH public key; the message says why and what to do, and never repeats the text."""


class PublicKey(NamedTuple):
    """A line of authorized_keys: what may be done with the key, its type, the key itself, and a remark."""

    options: str
    kind: str
    encoded: str
    comment: str

    def line(self) -> str:
        """Return the line as it stands in authorized_keys."""
        return " ".join(part for part in self if part)


def parse_keys(text: str, allow_options: bool = False) -> list[PublicKey]:
    """Return the keys of a text with one key per line, without empty lines, remarks and repetitions.

    Args:
        text: lines as in authorized_keys.
        allow_options: whether options such as ``from="..."`` may stand before a key.

    Raises:
        KeyProblem: a line is no public key.
    """
    _refuse_other_formats(text)
    found: list[PublicKey] = []
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            key = parse_key(line, allow_options)
            if key.encoded not in [other.encoded for other in found]:
                found.append(key)
    return found


def parse_key(line: str, allow_options: bool = False) -> PublicKey:
    """Return the key of one line.

    Args:
        line: as in authorized_keys, without white space around it.
        allow_options: whether options may stand before the key.

    Raises:
        KeyProblem: it is no public key.
    """
    options, rest = ("", line) if line.split(None, 1)[0] in FIELDS else _split_options(line)
    if options and not allow_options:
        raise KeyProblem(
            f"has the option '{options.split('=')[0]}' before the key; give the key alone, or allow options"
        )
    kind, encoded, comment = [*rest.split(None, 2), "", "", ""][:3]
    if kind == "ssh-dss":
        raise KeyProblem(
            "is a DSA key, which OpenSSH refuses since version 7.0; make one with ssh-keygen -t ed25519"
        )
    if kind not in FIELDS:
        raise KeyProblem(
            "does not start with a type of key such as ssh-ed25519; paste the whole line of the .pub file"
        )
    _check(kind, encoded)
    if not comment.isprintable():
        raise KeyProblem("has a remark with characters that cannot be shown; remove the remark")
    return PublicKey(options, kind, encoded, comment)


def _refuse_other_formats(text: str) -> None:
    if "PRIVATE KEY" in text or "PuTTY-User-Key-File" in text:
        raise KeyProblem(
            "is a private key, which nobody else may have; make a new pair, and give the line of the file "
            "whose name ends with .pub"
        )
    # RFC 4716, section 3.1
    if "BEGIN SSH2 PUBLIC KEY" in text:
        raise KeyProblem("is in the format of RFC 4716; convert it with ssh-keygen -i -f FILE")


def _split_options(line: str) -> tuple[str, str]:
    """Return the options before a key, empty when there are none or they cannot be read, and the rest."""
    position = 0
    while True:
        match = _OPTION.match(line, position)
        if match is None or match.group(1).lower() not in OPTIONS:
            return "", line
        position = match.end()
        if not match.group(3):
            return line[:position], line[position:].strip()


def _check(kind: str, encoded: str) -> None:
    """Refuse a key whose parts are not what its type promises."""
    problem = KeyProblem(
        "is damaged, so a part of it is missing or changed; paste the whole line of the .pub file"
    )
    try:
        parts = _strings(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError):
        raise problem from None
    if len(parts) != 1 + len(FIELDS[kind]) or parts[0] != kind.encode():
        raise problem
    values = {name: parts[number] for number, name in enumerate(FIELDS[kind], 1)}
    curve = next((name for name in POINT_BYTES if name in kind), "")
    if curve and len(values["point"]) != POINT_BYTES[curve]:
        raise problem
    if "curve" in values and values["curve"] != curve.encode():
        raise problem
    if kind == "ssh-rsa":
        bits = int.from_bytes(values["modulus"], "big").bit_length()
        if bits < RSA_BITS:
            raise KeyProblem(
                f"is an RSA key of {bits} bits, which is less than {RSA_BITS}; make one with ssh-keygen -t"
                " ed25519"
            )


def _strings(data: bytes) -> list[bytes]:
    """Return the strings of RFC 4251, section 5: each has its length before it, in four bytes.

    Raises:
        ValueError: the lengths do not fit.
    """
    parts = []
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        if len(data) < end or end < 4:
            raise ValueError
        parts.append(data[4:end])
        data = data[end:]
    return parts
