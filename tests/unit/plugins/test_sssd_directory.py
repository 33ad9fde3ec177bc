"""A directory is asked by ldapsearch: encrypted, with a verified certificate, no password among arguments."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._sssd.io import directory
from ansible_collections.gpufarm.cluster.plugins.module_utils._sssd.io.directory import (
    Directory,
    DirectoryError,
)

# Writes down how it was called, and answers as its place in `answers.json` says.
PROGRAM = """\
#!{python}
import json, os, sys, time
calls = {folder!r} + "/calls"
with open(calls, "a") as stream:
    print(json.dumps([sys.argv[1:], dict(os.environ), sys.stdin.read()]), file=stream)
answers = json.load(open({folder!r} + "/answers.json"))
status, output, errors, seconds = answers[len(open(calls).readlines()) - 1]
time.sleep(seconds)
sys.stdout.write(output)
sys.stderr.write(errors)
sys.exit(status)
"""
ADA = "dn: uid=ada,dc=example\nuid: ada\n\n"
AWAY = [255, "", "ldap_sasl_bind(SIMPLE): Can't contact LDAP server (-1)\n", 0]


class Ldapsearch:
    """A fake of the program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def answers(self, *answers: list[Any]) -> None:
        (self.folder / "answers.json").write_text(json.dumps(answers))

    @property
    def calls(self) -> list[tuple[list[str], dict[str, str], str]]:
        return [tuple(json.loads(line)) for line in (self.folder / "calls").read_text().splitlines()]


@pytest.fixture
def ldapsearch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ldapsearch:
    program = tmp_path / "ldapsearch"
    program.write_text(PROGRAM.format(python=sys.executable, folder=str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setattr(directory, "PROGRAM", str(program))
    return Ldapsearch(tmp_path)


def found(servers: list[str], most: int = 0) -> list[dict[str, str]]:
    asked = Directory(servers, "/etc/ca.pem", "cn=reader,dc=example", "my-secret")
    return asked.search("dc=example", "(uid=*)", ["uid"], most)


def test_a_connection_without_tls_is_encrypted_first(ldapsearch: Ldapsearch) -> None:
    ldapsearch.answers([0, ADA, "", 0], [0, ADA, "", 0])
    assert (
        found(["ldap://a.example"])
        == found(["ldaps://a.example"])
        == [{"dn": "uid=ada,dc=example", "uid": "ada"}]
    )
    plain, encrypted = ldapsearch.calls
    assert "-ZZ" in plain[0] and "-ZZ" not in encrypted[0]


def test_no_file_of_the_machine_switches_the_check_of_the_certificate_off(
    ldapsearch: Ldapsearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDAPTLS_REQCERT", "never")
    ldapsearch.answers([0, ADA, "", 0])
    found(["ldaps://a.example"])
    ((_words, environment, _input),) = ldapsearch.calls
    assert environment["LDAPTLS_REQCERT"] == "demand"
    assert environment["LDAPTLS_CACERT"] == "/etc/ca.pem"
    assert not Path(environment["HOME"]).exists()


def test_the_password_is_no_argument_and_in_no_environment(ldapsearch: Ldapsearch) -> None:
    ldapsearch.answers([0, ADA, "", 0])
    found(["ldaps://a.example"])
    ((words, environment, given),) = ldapsearch.calls
    assert given == "my-secret" and "my-secret" not in str([words, environment])


def test_the_next_server_is_asked_where_one_is_away(ldapsearch: Ldapsearch) -> None:
    ldapsearch.answers(AWAY, [0, ADA, "", 0])
    assert found(["ldaps://a.example", "ldaps://b.example"])


def test_one_entry_of_many_is_an_answer(ldapsearch: Ldapsearch) -> None:
    ldapsearch.answers([4, ADA, "Size limit exceeded (4)\n", 0])
    assert found(["ldaps://a.example"], most=1)


def test_each_server_is_told_with_its_reason_and_without_the_password(ldapsearch: Ldapsearch) -> None:
    ldapsearch.answers(AWAY, [1, "", "ldap_start_tls: Connect error (-11)\n", 0])
    with pytest.raises(DirectoryError) as told:
        found(["ldaps://a.example", "ldap://b.example"])
    words = str(told.value)
    assert "ldaps://a.example: ldap_sasl_bind(SIMPLE): Can't contact LDAP server (-1)" in words
    assert "ldap://b.example: ldap_start_tls: Connect error (-11) (does the authority" in words
    assert "my-secret" not in words


def test_a_server_that_hangs_is_given_up(ldapsearch: Ldapsearch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "ANSWERS", 1)
    monkeypatch.setattr(directory, "CONNECTS", 0)
    ldapsearch.answers([0, "", "", 600])
    with pytest.raises(DirectoryError, match=r"ldaps://a\.example: no answer within 1 seconds"):
        found(["ldaps://a.example"])


def test_accounts_are_those_of_the_files_of_the_machine() -> None:
    assert directory.accounts("passwd")["root"] == directory.accounts("group")["root"] == 0
