"""SSH public keys: those that ssh-keygen makes are read, and everything else is refused in words."""

from __future__ import annotations

import base64
import contextlib
import subprocess
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._ssh.keys import (
    KeyProblem,
    parse_key,
    parse_keys,
)
from hypothesis import given
from hypothesis import strategies as st


def ssh_keygen(folder: Path, kind: str, bits: int) -> Path:
    path = folder / f"{kind}-{bits}"
    command = ["ssh-keygen", "-q", "-t", kind, "-b", str(bits), "-N", "", "-C", "ada@desk", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def encoded(*parts: bytes) -> str:
    return base64.b64encode(b"".join(map(string, parts))).decode()


ED25519 = "ssh-ed25519 " + encoded(b"ssh-ed25519", bytes(range(32)))


@pytest.mark.parametrize(("kind", "bits"), [("ed25519", 256), ("rsa", 2048), ("ecdsa", 256), ("ecdsa", 521)])
def test_what_ssh_keygen_makes_is_read(tmp_path: Path, kind: str, bits: int) -> None:
    path = ssh_keygen(tmp_path, kind, bits)
    line = path.with_suffix(".pub").read_text().strip()
    assert parse_key(line).line() == line
    with pytest.raises(KeyProblem, match="is a private key"):
        parse_keys(path.read_text())


def test_keys_of_security_keys_are_read() -> None:
    kind = "sk-ssh-ed25519@openssh.com"
    assert parse_key(f"{kind} {encoded(kind.encode(), bytes(32), b'ssh:')}").kind == kind


def test_empty_lines_remarks_and_repetitions_are_left_out() -> None:
    keys = parse_keys(f"# mine\n\n  {ED25519} desk \n{ED25519} lap top\r\n")
    assert [key.line() for key in keys] == [f"{ED25519} desk"]


def test_short_rsa_keys_are_refused(tmp_path: Path) -> None:
    line = ssh_keygen(tmp_path, "rsa", 1024).with_suffix(".pub").read_text()
    with pytest.raises(KeyProblem, match="1024 bits"):
        parse_keys(line)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ssh-dss " + encoded(b"ssh-dss"), "is a DSA key"),
        ("---- BEGIN SSH2 PUBLIC KEY ----", "RFC 4716"),
        ("PuTTY-User-Key-File-3: ssh-ed25519", "is a private key"),
        ("~/.ssh/id_ed25519.pub", "does not start with a type of key"),
        ("ssh-ed25519", "is damaged"),
        ("ssh-ed25519 AAAA!", "is damaged"),
        (ED25519[:-4], "is damaged"),
        ("ssh-ed25519 " + encoded(b"ssh-ed25519", bytes(31)), "is damaged"),
        ("ssh-rsa " + ED25519.split()[1], "is damaged"),
        ("ecdsa-sha2-nistp256 " + encoded(b"ecdsa-sha2-nistp256", b"nistp384", bytes(65)), "is damaged"),
        (f"{ED25519} a\x07b", "cannot be shown"),
        (f'command="/bin/date" {ED25519}', "the option 'command'"),
        (f"no-pty,restrict {ED25519}", "the option 'no-pty,restrict'"),
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(text: str, words: str) -> None:
    with pytest.raises(KeyProblem, match=words) as refusal:
        parse_keys(text)
    assert "AAAA" not in str(refusal.value)


@pytest.mark.parametrize(
    "options", ["no-pty", 'command="echo \\"a b\\"",from="192.0.2.0/24"', 'restrict,expiry-time="20301231"']
)
def test_options_where_they_are_allowed(options: str) -> None:
    assert parse_key(f"{options} {ED25519} desk", allow_options=True).line() == f"{options} {ED25519} desk"


@pytest.mark.parametrize("options", ["nopty", 'command="echo', "no-pty,", 'run="x",no-pty'])
def test_options_that_sshd_does_not_know_are_refused(options: str) -> None:
    with pytest.raises(KeyProblem, match="does not start with a type of key"):
        parse_key(f"{options} {ED25519}", allow_options=True)


@given(st.text(), st.booleans())
def test_any_text_is_read_or_refused(text: str, allow_options: bool) -> None:
    try:
        keys = parse_keys(text, allow_options)
    except KeyProblem:
        return
    assert parse_keys("\n".join(key.line() for key in keys), allow_options) == keys


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    text = "ssh-ed25519 " + base64.b64encode(data).decode()
    with contextlib.suppress(KeyProblem):
        assert len(base64.b64decode(parse_key(text).encoded)) == 51
