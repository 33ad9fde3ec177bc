"""Accounts of the machine: who has left is out, and a machine that cannot tell says so."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pamela
import pytest
from gpufarm_hub.people import accounts, login_pam
from gpufarm_hub.people.accounts import AccountError
from gpufarm_hub.people.login_pam import PamLogin

CAROL = SimpleNamespace(name="carol")
OUT = None


class Pam:
    """PAM and the machine's groups."""

    def __init__(self) -> None:
        self.code = 0
        self.groups: frozenset[str] | None = frozenset({"gpu"})

    def check_account(self, name: str, service: str) -> None:
        if self.code:
            raise pamela.PAMError(f"[PAM Error {self.code}]", self.code)

    def groups_of(self, name: str) -> frozenset[str]:
        if self.groups is None:
            raise AccountError("gone")
        return self.groups


@pytest.fixture
def pam(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pam:
    made = Pam()
    monkeypatch.setattr(pamela, "check_account", made.check_account)
    monkeypatch.setattr(accounts, "groups_of", made.groups_of)
    monkeypatch.setattr(accounts, "uid_of_person", lambda name: 1001)
    monkeypatch.setattr(login_pam, "CLOSED", (tmp_path / "nologin",))
    return made


@pytest.fixture
def hub(pam: Pam, tmp_path: Path) -> PamLogin:
    return PamLogin(
        allowed_groups={"gpu"}, admin_groups={"wheel"}, refused_file=str(tmp_path / "refused.json")
    )


def look(hub: PamLogin) -> Any:
    return asyncio.run(hub.look_again(CAROL, None))


def test_who_leaves_or_is_closed_out_is_out(hub: PamLogin, pam: Pam) -> None:
    assert look(hub)["groups"] == ["gpu"]
    pam.groups = frozenset({"wheel"})
    assert look(hub)["admin"] is True
    pam.groups = frozenset({"gpu"})
    assert look(hub)["admin"] is False
    pam.groups = frozenset({"guests"})
    assert look(hub) is OUT
    pam.groups = frozenset({"gpu"})
    for code in (6, 7, 10, 13):  # PAM_PERM_DENIED, PAM_AUTH_ERR, PAM_USER_UNKNOWN, PAM_ACCT_EXPIRED
        pam.code = code
        assert look(hub) is OUT
    pam.code, pam.groups = 0, None
    assert look(hub) is OUT


@pytest.mark.parametrize("code", sorted(login_pam.FAILURES))
def test_a_machine_that_cannot_tell_throws_nobody_out(hub: PamLogin, pam: Pam, code: int) -> None:
    pam.code = code
    assert asyncio.run(hub.refresh_user(CAROL)) is True
    assert hub.doubt("carol").startswith("The machine that knows the users has not answered since ")
    pam.code = 0
    assert asyncio.run(hub.refresh_user(CAROL))["name"] == "carol"
    assert hub.doubt("carol") == ""


def test_while_logins_are_closed_groups_still_count(hub: PamLogin, pam: Pam, tmp_path: Path) -> None:
    (tmp_path / "nologin").touch()
    pam.code = 7  # as pam_nologin says
    assert look(hub)["groups"] == ["gpu"]
    pam.groups = frozenset()
    assert look(hub) is OUT
