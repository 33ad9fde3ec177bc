"""Files of the identity provider: certificates that clients accept, users whose passwords stay."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from lab.iam.certificates import ensure_certificates
from lab.iam.users import ensure_logins, users_of

ADDRESS = "10.77.3.12"


def handshake(state: Path, certificate: str, key: str, name: str) -> None:
    """A TLS handshake in memory between the server and a client that trusts the authority alone."""
    (state / "chain.pem").write_text(certificate + key)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(state / "chain.pem")
    client_context = ssl.create_default_context(cafile=str(state / "iam-ca.crt"))
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=name)
    waiting = [client, server]
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue
    assert waiting == []


def test_a_client_that_trusts_the_authority_accepts_the_server_at_its_address(tmp_path: Path) -> None:
    _, certificate, key = ensure_certificates(tmp_path, ADDRESS)
    handshake(tmp_path, certificate, key, ADDRESS)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path, certificate, key, "10.77.3.13")


def test_certificates_stay_until_the_address_changes(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path, ADDRESS)
    authority = first[0].read_bytes()
    assert ensure_certificates(tmp_path, ADDRESS) == first
    other = ensure_certificates(tmp_path, "10.77.4.12")
    assert other[1] != first[1]
    assert other[0].read_bytes() == authority


def test_keys_and_passwords_are_for_their_owner_alone(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, ADDRESS)
    ensure_logins(tmp_path / "iam-users.json")
    secret = {file.name for file in tmp_path.iterdir() if file.stat().st_mode & 0o077 == 0}
    assert secret == {"iam-ca.key", "iam-server.key", "iam-users.json"}


def test_passwords_are_random_and_stay(tmp_path: Path) -> None:
    logins = ensure_logins(tmp_path / "one.json")
    assert ensure_logins(tmp_path / "one.json") == logins
    passwords = [login["password"] for login in logins.values()]
    passwords += [login["password"] for login in ensure_logins(tmp_path / "two.json").values()]
    assert len(set(passwords)) == len(passwords)
    assert min(map(len, passwords)) >= 12


def test_a_person_keeps_their_subject_whatever_the_password(tmp_path: Path) -> None:
    one, two = (users_of(ensure_logins(tmp_path / name)) for name in ("one.json", "two.json"))
    assert [user["sub"] for user in one] == [user["sub"] for user in two]
    assert len({user["sub"] for user in one}) == len(one)
