"""The key of the state, encrypted with a vault password of Ansible."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from deployer_site import Site
from gpufarm.errors import BadInput
from gpufarm.state import Deployment, Store

SECRET = {"access_token": "hunter2"}


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text("correct horse\n")
    return path


@pytest.fixture
def folder(tmp_path: Path, password: Path) -> Path:
    """A state folder with a secret in it, under a vault password."""
    made = tmp_path / "state"
    Store(made, password).save(Deployment("a", "/t.yaml", "/pool", secrets=dict(SECRET)))
    return made


def vault(*words: str | Path) -> str:
    return subprocess.run(["ansible-vault", *words], capture_output=True, text=True, check=True).stdout


def test_without_the_password_the_folder_is_of_no_use(folder: Path, password: Path) -> None:
    key = folder / "key"
    assert key.read_text().startswith("$ANSIBLE_VAULT") and key.stat().st_mode & 0o077 == 0
    found = Store(folder, password).load("a")
    assert found is not None and found.secrets == SECRET
    with pytest.raises(BadInput, match="is encrypted with a vault password; name the file"):
        Store(folder).load("a")
    with pytest.raises(BadInput, match="is encrypted with a vault password"):
        Store(folder).digest("x")
    assert Store(folder).names() == ["a"] and Store(folder).held("b", []) == {}, (
        "what is no secret can be read"
    )


def test_ansible_vault_reads_and_changes_it(folder: Path, password: Path, tmp_path: Path) -> None:
    plain = vault("view", "--vault-password-file", password, folder / "key")
    assert len(plain.strip()) == 64
    digest = Store(folder, password).digest("x")
    other = tmp_path / "other"
    other.write_text("battery staple")
    vault("rekey", "--vault-password-file", password, "--new-vault-password-file", other, folder / "key")
    assert Store(folder, other).digest("x") == digest, "nothing counts as changed"
    with pytest.raises(BadInput, match="does not decrypt it; give the one that it was encrypted with"):
        Store(folder, password).load("a")
    vault("decrypt", "--vault-password-file", other, folder / "key")
    found = Store(folder).load("a")
    assert found is not None and found.secrets == SECRET


def test_a_password_for_a_key_in_clear_is_refused(tmp_path: Path, password: Path) -> None:
    Store(tmp_path).save(Deployment("a", "/t.yaml", "/pool", secrets=dict(SECRET)))
    with pytest.raises(BadInput, match=r"is not encrypted, .* ansible-vault encrypt --vault-password-file"):
        Store(tmp_path, password).load("a")
    vault("encrypt", "--vault-password-file", password, tmp_path / "key")
    found = Store(tmp_path, password).load("a")
    assert found is not None and found.secrets == SECRET


def test_a_program_may_print_the_password(folder: Path, password: Path, tmp_path: Path) -> None:
    program = tmp_path / "ask"
    program.write_text(f"#!/bin/sh\ncat {password}\n")
    program.chmod(0o700)
    found = Store(folder, program).load("a")
    assert found is not None and found.secrets == SECRET
    program.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(BadInput, match="the vault password cannot be read: "):
        Store(folder, program).load("a")
    with pytest.raises(BadInput, match=r"the vault password cannot be read: .* was not found"):
        Store(folder, tmp_path / "nothing").load("a")


def test_on_the_command_line_and_in_the_environment(folder: Path, password: Path, tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert folder == site.state
    assert site.gpufarm("status", "a").status == 0, "it shows no secret"
    refused = site.gpufarm("resume", "a")
    assert (
        refused.status == 2 and "--vault-password-file" in refused.error and "Traceback" not in refused.error
    )
    for accepted in (
        site.gpufarm("--vault-password-file", password, "resume", "a"),
        site.gpufarm("resume", "a", GPUFARM_VAULT_PASSWORD_FILE=str(password)),
    ):
        assert "/t.yaml" in accepted.error, "the next thing that is missing is the template"
