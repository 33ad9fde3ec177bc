"""Rules of PAM for a node of Slurm: who gets in, and who gets a session of systemd."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm import logins
from hypothesis import given
from hypothesis import strategies as st

ACCOUNT = "account required pam_permit.so\n"
SESSION = "session required pam_unix.so\nsession\toptional\tpam_systemd.so \n"
SETTINGS: dict[str, Any] = {
    "logins": "jobs",
    "administrators": ["sudo"],
    "name": "n1",
    "login": [],
    "sshd": ["usepam yes", "pamservicename sshd"],
    "pam": {"account": ACCOUNT, "session": SESSION},
}


def planned(**changes: Any) -> dict[str, Any]:
    return logins.plan({**SETTINGS, **changes})


def reached(rules: Sequence[str], uid: int, groups: set[str], service: str = "sshd") -> list[str]:
    """Return the modules that are asked for an account, with its rules, as Linux-PAM does."""
    found, place = [], 0
    while place < len(rules):
        control, _, module = re.fullmatch(r"(\[.*?\]|\w+)(\s+)(.*)", rules[place]).groups()  # type: ignore[union-attr]
        name, *words = module.split()
        place += 1
        if name != "pam_succeed_if.so":
            found.append(name)
            yes = True
        elif words[1] == "uid":
            yes = uid < int(words[3])
        elif words[1] == "user":
            yes = bool(groups & {*words[3].split(":")})
        else:
            yes = service in words[3].split(":")
        leap = re.search(r"success=(\d+)" if "success" in control else r"default=(\d+)", control)
        if control == "requisite" and not yes:
            return [*found, "refused"]
        place += int(leap[1]) if leap and (yes or "success" not in control) else 0
    assert place == len(rules)  # PAM refuses a leap over the end
    return found


groups = st.lists(st.sampled_from(["sudo", "wheel", "users"]), unique=True)
services = st.sampled_from([*logins.SERVICES, "cron", "atd", "login", "systemd-user", "other"])


@given(groups, st.sets(st.sampled_from(["sudo", "users", "staff"])), st.integers(0, 70000), services)
def test_nobody_but_administrators_gets_in_elsewhere_or_has_a_session(
    administrators: list[str], own: set[str], uid: int, service: str
) -> None:
    rules = logins.profile(administrators, sessions=True)
    exempt = uid < 1000 or bool(own & {*administrators})
    asked = reached(rules["account"], uid, own, service)
    expected = ["pam_slurm_adopt.so"] if service in logins.SERVICES else ["refused"]
    assert asked == ([] if exempt else expected)
    assert ("pam_systemd.so" in reached(rules["session"], uid, own, service)) == exempt


def test_a_failure_of_slurm_lets_nobody_in() -> None:
    (rule,) = [one for one in logins.profile([], sessions=True)["account"] if "pam_slurm_adopt.so" in one]
    assert rule.startswith("required ")
    assert {"action_adopt_failure=deny", "action_generic_failure=deny"} <= {*rule.split()}
    # In other services a user's environment would reach the module (pam_slurm_adopt.c, check_pam_service).
    assert "service=" not in rule and "action_no_jobs" not in rule


def test_a_machine_without_sessions_of_systemd_gets_none() -> None:
    done = planned(pam={"account": ACCOUNT, "session": "session required pam_unix.so\n"})
    assert "pam_systemd" not in done["profile"] and "Session:" not in done["profile"]


def followed(profile: str, **more: str) -> dict[str, str]:
    """Return what pam-auth-update makes of a profile, with more lines at the ends."""
    blocks = {kind: re.search(rf"\n{kind}:\n((\t.*\n)*)", profile) for kind in ("Account", "Session")}
    texts = {"account": ACCOUNT, "session": "session required pam_unix.so\n"}
    return {
        kind.lower(): texts[kind.lower()]
        + re.sub(r"^\t", f"{kind.lower()}\t", found[1] if found else "", flags=re.MULTILINE)
        + more.get(kind.lower(), "")
        for kind, found in blocks.items()
    }


@given(groups)
def test_what_is_followed_already_stays(administrators: list[str]) -> None:
    first = planned(administrators=administrators)
    assert not first["applied"]
    again = planned(administrators=administrators, pam=followed(first["profile"]))
    assert again == {**first, "applied": True}


@pytest.mark.parametrize(
    "changes",
    [
        {"administrators": ["wheel"]},
        {"administrators": []},
        # Somebody has enabled the profile of systemd again.
        {"pam": followed(planned()["profile"], session="session optional pam_systemd.so\n")},
        {"pam": {**followed(planned()["profile"]), "account": ACCOUNT}},
    ],
)
def test_what_differs_is_applied_again(changes: dict[str, Any]) -> None:
    assert not planned(**{"pam": followed(planned()["profile"]), **changes})["applied"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"administrators": ["sudo", "domain admins"]}, "slurm_node_administrators has 'domain admins'"),
        ({"administrators": ["a:b"]}, "'a:b', which is no name"),
        ({"pam": {"account": "", "session": ""}}, "n1 has no /etc/pam.d/common-account"),
        ({"sshd": ["usepam no", "pamservicename sshd"]}, "sshd of n1 has usepam no and would let in"),
        ({"sshd": ["usepam yes", "pamservicename other"]}, "pamservicename other"),
        ({"login": ["1000", "ada", "ada users"]}, "as ada and would be kept out"),
        ({"login": ["1000", "ada", "ada"], "administrators": []}, "slurm_node_administrators (empty)"),
    ],
)
def test_what_would_not_keep_users_out_or_keeps_the_administrator_out_is_a_problem(
    changes: dict[str, Any], words: str
) -> None:
    (found,) = logins.problems({**SETTINGS, **changes})
    assert words in found
    assert not [*logins.problems({**SETTINGS, **changes, "logins": "all"})]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sshd": []},
        {"sshd": ["usepam yes"]},  # an older sshd has no other name for PAM
        {"login": ["0", "root", "root"]},
        {"login": ["1000", "ada", "ada sudo"]},
        {"login": ["1000", "ada", "ada"], "administrators": ["ada"]},
    ],
)
def test_what_keeps_users_out_is_no_problem(changes: dict[str, Any]) -> None:
    assert not [*logins.problems({**SETTINGS, **changes})]
