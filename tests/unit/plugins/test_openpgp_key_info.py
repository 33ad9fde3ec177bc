# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of a package source: fetched if it is not installed, and verified as GnuPG tells it."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.modules import openpgp_key_info

Run = Callable[..., dict[str, Any]]


# By GnuPG 2.2.40: --quick-generate-key NAME ed25519, --armor --export, --with-colons --list-keys.
FINGERPRINT = "B2F97C92BBEAC85080675E3179C9FE43C01B89BB"
KEY = """\
-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawfZjxYJKwYBBAHaRw8BAQdAQB/sMf34tUd/v08eA16g9PRwRrBnImVqYZ8k
PqnWV7m0A09uZYiQBBMWCAA4FiEEsvl8krvqyFCAZ14xecn+Q8AbibsFAmsH2Y8C
GwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQecn+Q8AbibuY4QD+MHwRw7a7
uAufpigKkrT+M3Vf3Epo3BRngW+m2sCQzl4A/2Sj+qWFFJEdA3cfWyy4XBSdirji
i2DDXUxFb8rov1YO
=ll7l
-----END PGP PUBLIC KEY BLOCK-----
"""
OTHER_FINGERPRINT = "A791701F29AE8CD14D5CF8C0C73E298FBC99BF4D"
OTHER_KEY = """\
-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawfZjxYJKwYBBAHaRw8BAQdA3yQxxLjuVaB/blQfdoAJn9iDB6gxFP4jwnX2
eSxiHn60A1R3b4iQBBMWCAA4FiEEp5FwHymujNFNXPjAxz4pj7yZv00FAmsH2Y8C
GwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQxz4pj7yZv00y1gD6AydCQgFm
9ydpPZpWnxS6xhKngG1s/sDOyAn+BpwKXgsBAKMYNV4VVBM7EuyPEt2BnQIctLzg
hIawX7ndZLW/mPcG
=9cBf
-----END PGP PUBLIC KEY BLOCK-----
"""


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the module for the file at the address and the installed file."""

    def call(fingerprint: str, url: str = "") -> dict[str, Any]:
        arguments = {
            "url": url or (tmp_path / "key.asc").as_uri(),
            "fingerprint": fingerprint,
            "file": str(tmp_path / "installed.asc"),
            "url_setting": "role_key_url",
            "fingerprint_setting": "role_key_fingerprint",
            "_ansible_remote_tmp": str(tmp_path),
        }
        capsys.readouterr()
        with patch_module_args(arguments), pytest.raises(SystemExit):
            openpgp_key_info.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return call


def test_a_key_is_fetched_until_it_is_installed(tmp_path: Path, run: Run) -> None:
    (tmp_path / "key.asc").write_text(KEY)
    (tmp_path / "installed.asc").write_text(OTHER_KEY)
    found = run(FINGERPRINT.lower())
    assert (found["key"], found["fetched"], found["changed"]) == (KEY, True, False)
    assert (tmp_path / "installed.asc").read_text() == OTHER_KEY
    (tmp_path / "key.asc").rename(tmp_path / "installed.asc")
    found = run(FINGERPRINT)
    assert (found["key"], found["fetched"]) == (KEY, False)


def test_another_key_is_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "key.asc").write_text(OTHER_KEY)
    message = run(FINGERPRINT)["msg"]
    assert f"key.asc has the fingerprint {OTHER_FINGERPRINT}, and {FINGERPRINT} is expected; find" in message
    assert message.endswith("before you change role_key_fingerprint.")


def test_a_key_beside_the_wanted_one_is_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "key.asc").write_text(KEY + OTHER_KEY)
    assert f"has the fingerprint {FINGERPRINT} and {OTHER_FINGERPRINT}, and" in run(FINGERPRINT)["msg"]
    # Programs that skip the strange line would trust the second key.
    (tmp_path / "key.asc").write_text(KEY + OTHER_KEY.replace("\n\n", "\n?\n\n", 1))
    assert "is no OpenPGP key in ASCII armor; correct role_key_url." in run(FINGERPRINT)["msg"]


def binary(key: str) -> bytes:
    return base64.b64decode("".join(key.splitlines()[2:-2]))


def dearmored(text: str) -> bytes:
    """Return what apt 2.6 reads of a key file; source: `apt-key`, `dearmor_filename`."""
    program = (
        "awk '/^-----BEGIN/{ x = 1; } /^$/{ if (x == 1) { x = 2; }; } /^[^=-]/{ if (x == 2) { print $0; }; }"
        " /^-----END/{ exit; }' | base64 -d"
    )
    return subprocess.run(["sh", "-c", program], input=text.encode(), stdout=subprocess.PIPE).stdout


def lines(data: bytes) -> str:
    return base64.encodebytes(data).decode()


BEGIN, END = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n", "-----END PGP PUBLIC KEY BLOCK-----\n"
# The key and the beginning of a user id that ends with another key, without padding: 3 octets are 4 letters.
HEAD = (
    binary(KEY) + b"\xb4\x00" * (len(binary(KEY)) % 3) + b"\xb5" + len(binary(OTHER_KEY)).to_bytes(2, "big")
)
BESIDE = {
    "after padding": BEGIN + "\n" + lines(binary(KEY) + b"\xb4\x00") + lines(binary(OTHER_KEY)) + END,
    "after a checksum": KEY.replace("=ll7l\n", f"=ll7l{END}{lines(binary(OTHER_KEY))}"),
    "after an empty line": f"{BEGIN}\r\n{lines(HEAD)}\n{lines(binary(OTHER_KEY))}{END}",
    "in the next block": f" {BEGIN}\n{lines(HEAD)} {END}{OTHER_KEY}",
}


@pytest.mark.parametrize("text", BESIDE.values(), ids=BESIDE)
def test_a_key_that_only_apt_would_find_is_refused(tmp_path: Path, run: Run, text: str) -> None:
    assert dearmored(text).endswith(binary(OTHER_KEY))
    (tmp_path / "key.asc").write_bytes(text.encode())
    message = run(FINGERPRINT)["msg"]
    assert " is no OpenPGP key" in message and message.endswith("; correct role_key_url.")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_key_with_headers_and_without_a_checksum_is_read(tmp_path: Path, run: Run, newline: str) -> None:
    text = KEY.replace("\n\n", "\nVersion: GnuPG v2\nComment: a key\n\n").replace("=ll7l\n", "\n")
    (tmp_path / "key.asc").write_text(text, newline=newline)
    assert run(FINGERPRINT)["fetched"]


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (b"\x98\x06\x05\x00\x00\x00\x00\x01", "holds an OpenPGP key of version 5"),
        (b"\x98\x07\x04\x00", "is cut off"),
        (b"\xb4\x01a", "holds no public OpenPGP key"),
        (b"\x9b\x04", "holds a packet of unknown length"),
        (b"\xc6\xe1\x04", "holds a packet of unknown length"),
        (b"\x94\x01\x04", "holds a packet of type 5, which no public OpenPGP key has"),
        (b"\xc9\x01\x04", "holds a packet of type 9, which no public OpenPGP key has"),
        (b"no packet", "is no OpenPGP key"),
    ],
)
def test_what_is_no_key_is_refused(tmp_path: Path, run: Run, packet: bytes, reason: str) -> None:
    armor = base64.b64encode(packet).decode()
    text = f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{armor}\n-----END PGP PUBLIC KEY BLOCK-----\n"
    (tmp_path / "key.asc").write_text(text)
    message = run("0" * 40)["msg"]
    assert reason in message and message.endswith("; correct role_key_url.")


@pytest.mark.parametrize("content", [b"", b"<html>", b"\x98\x06\x04\x00\x00\x00\x00\x01"])
def test_a_key_without_armor_is_refused(tmp_path: Path, run: Run, content: bytes) -> None:
    (tmp_path / "key.asc").write_bytes(content)
    assert "key.asc is no OpenPGP key in ASCII armor; correct role_key_url." in run("0" * 40)["msg"]


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9/key.asc"])
def test_an_address_without_a_key_is_refused(run: Run, url: str) -> None:
    message = run("0" * 40, url)["msg"]
    assert "cannot be had (" in message and message.endswith("); correct role_key_url.")
