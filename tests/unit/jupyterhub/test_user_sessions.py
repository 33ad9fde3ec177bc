"""Sessions of users whose accounts the machine knows itself are kept from GPUs."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from gpufarm_hub.sharing import sessions


class Systemd:
    """Writes what `systemctl set-property` writes."""

    def __init__(self, kept: Path) -> None:
        self.kept, self.calls, self.status = kept, list[list[str]](), 0

    def __call__(self, command: list[str], **_how: object) -> subprocess.CompletedProcess[str]:
        self.calls.append(command)
        folder = self.kept / f"{command[2]}.d"
        folder.mkdir(exist_ok=True)
        for name in sessions.FILES:
            (folder / name).touch()
        return subprocess.CompletedProcess(command, self.status, "", "no bus\n")


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    systemd = Systemd(tmp_path)
    monkeypatch.setattr(sessions, "KEPT", tmp_path)
    monkeypatch.setattr(subprocess, "run", systemd)
    return systemd


def test_sessions_are_closed_once_and_opened_again(systemd: Systemd) -> None:
    sessions.close(1001)
    sessions.close(1001)
    assert systemd.calls == [["systemctl", "set-property", "user-1001.slice", *sessions.CLOSED]]
    other = systemd.kept / "user-1001.slice.d" / "50-MemoryMax.conf"
    other.touch()
    (systemd.kept / "user-1002.slice.d").mkdir()
    sessions.reopen()
    assert systemd.calls[1:] == [["systemctl", "set-property", "user-1001.slice", *sessions.OPEN]]
    assert [path.name for path in other.parent.iterdir()] == ["50-MemoryMax.conf"]


def test_a_folder_of_the_hub_alone_goes(systemd: Systemd) -> None:
    sessions.close(1001)
    sessions.reopen()
    assert list(systemd.kept.iterdir()) == []


def test_rules_that_systemd_refuses_are_told(systemd: Systemd) -> None:
    systemd.status = 1
    with pytest.raises(sessions.SessionError, match=r"^systemctl set-property user-1001\.slice: no bus$"):
        sessions.close(1001)


def test_accounts_that_the_hub_made_have_no_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grp, "getgrnam", lambda name: SimpleNamespace(gr_mem=["alice"]))
    assert not sessions.is_needed("alice") and sessions.is_needed("carol")

    def missing(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(grp, "getgrnam", missing)
    assert sessions.is_needed("alice")
