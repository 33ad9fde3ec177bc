# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of PAM that let users into a node of Slurm only while they have a job there. No I/O.

Sources: pam_slurm_adopt.c and pam_slurm_adopt.html of Slurm 24.11, pam.conf(5), pam_succeed_if(8),
pam-auth-update(8) of Debian.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Accounts of persons begin there (Debian Policy 9.2.2).
FIRST_USER = 1000
# Services of PAM that are open to users. sshd takes them into their job; the others start programs where they
# are called, in the job, or ask for a password only. All else would start programs outside of jobs: cron, at,
# a console, the user's own manager of systemd.
SERVICES = ("sshd", "su", "su-l", "sudo", "sudo-i", "passwd", "chfn", "chsh", "jupyterhub")
# In every other service the module does nothing, as programs of a user could lead it astray.
ADOPT = "pam_slurm_adopt.so action_adopt_failure=deny action_generic_failure=deny"


def problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what keeps users without jobs from being kept out, or keeps out the administrator.

    Args:
        settings: variables of the role slurm_node without its name; also `name` of the machine, `login`, the
            lines number, name and groups of the account that the run logged in with (empty if unknown),
            `sshd`, the lines of `sshd -T` (empty without sshd), and `pam`, the texts of common-account and
            common-session (empty if there are none).
    """
    if settings["logins"] != "jobs":
        return
    name, groups = settings["name"], settings["administrators"]
    for wrong in (group for group in groups if not re.fullmatch(r"[^\s:\[\]]+", group)):
        yield f"slurm_node_administrators has {wrong!r}, which is no name; give names without spaces."
    if not settings["pam"]["account"]:
        yield (
            f"{name} has no /etc/pam.d/common-account, so this role cannot keep out users without a job; do"
            " that yourself, and set slurm_node_logins to all."
        )
    for line, value in (("usepam", "yes"), ("pamservicename", "sshd")):
        found = [words[1] for words in map(str.split, settings["sshd"]) if words[:1] == [line]]
        if found and found != [value]:
            yield (
                f"sshd of {name} has {line} {found[0]} and would let in users without a job; set it to"
                f" {value}, or slurm_node_logins to all."
            )
    if len(settings["login"]) == 3:
        number, login, own = settings["login"]
        if int(number) >= FIRST_USER and not {*own.split()} & {*groups}:
            yield (
                f"This run has logged in to {name} as {login} and would be kept out, as {login} is in no"
                f" group of slurm_node_administrators ({', '.join(groups) or 'empty'}); add one of"
                f" {', '.join(own.split())}."
            )


def profile(administrators: Sequence[str], sessions: bool) -> dict[str, list[str]]:
    """Return the rules by their kinds, `account` and `session`.

    Args:
        administrators: groups whose members get in without a job.
        sessions: whether the machine opens sessions of systemd, which take a process out of its job.
    """
    account = [f"requisite pam_succeed_if.so quiet service in {':'.join(SERVICES)}", f"required {ADOPT}"]
    session = ["[default=1] pam_permit.so", "optional pam_systemd.so"]
    return {
        "account": [*_exempt(administrators, over=len(account)), *account],
        # Users skip the last rule, administrators the one before it.
        "session": [*_exempt(administrators, over=1), *session] if sessions else [],
    }


def _exempt(administrators: Sequence[str], over: int) -> list[str]:
    """Return rules by which system accounts and administrators skip some that follow."""
    tests = [f"uid < {FIRST_USER}"]
    if administrators:
        tests.append(f"user ingroup {':'.join(administrators)}")
    return [
        f"[success={over + left} default=ignore] pam_succeed_if.so quiet {test}"
        for left, test in zip(reversed(range(len(tests))), tests, strict=True)
    ]


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `profile`, the text for pam-auth-update(8), and `applied`, whether PAM follows it already.

    Args:
        settings: as for `problems`.
    """
    there = {kind: _rules(kind, text) for kind, text in settings["pam"].items()}
    sessions = [rule for rule in there["session"] if "pam_systemd.so" in rule.split()]
    rules = profile(settings["administrators"], bool(sessions))
    return {
        "profile": _text(rules),
        "applied": len(sessions) <= 1 and all(_holds(there[kind], rules[kind]) for kind in rules),
    }


def _rules(kind: str, text: str) -> list[str]:
    lines = (line.split(None, 1) for line in text.splitlines())
    return [" ".join(words[1].split()) for words in lines if words[:1] == [kind] and words[1:]]


def _holds(there: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether rules are there one after the other, and no others of the same modules after them."""
    return any([*there[start : start + len(wanted)]] == [*wanted] for start in range(len(there) + 1))


def _text(rules: Mapping[str, Sequence[str]]) -> str:
    lines = [
        "Name: Users of a node of Slurm only while they have a job there",
        "Default: no",
        "Priority: 0",
        "Conflicts: systemd slurm slurm-adopt",
    ]
    for kind, own in rules.items():
        if own:
            name = kind.capitalize()
            lines += ["Session-Interactive-Only: yes"] if kind == "session" else []
            lines += [f"{name}-Type: Additional", f"{name}:", *(f"\t{rule}" for rule in own)]
    return "\n".join(lines) + "\n"
