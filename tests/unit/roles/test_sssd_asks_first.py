"""A directory that refuses the new settings leaves certificate, configuration and PAM as they were."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from harness import CASES
from harness.certificates import CERTIFICATE

SETTINGS = {"sssd_ca_file": CERTIFICATE}


def paths(problems: list[str]) -> set[str]:
    """Return what the role writes or runs outside of packages and records, by destination or first word."""
    told: dict[str, Any] = {"problems": problems, "person": "ada", "groups": []}
    run = CASES["sssd"].with_answers({"gpufarm.cluster.sssd_directory_info": told}).run("sssd", SETTINGS)
    assert bool(run.failed) == bool(problems)
    changing = [call for call in run.calls if not call.asks]
    return {
        str(call.args.get("dest") or call.args.get("folder") or call.args.get("argv", [""])[0])
        for call in changing
        if call.action not in ("ansible.builtin.apt", "gpufarm.cluster.role_record")
    } - {""}


def test_nothing_but_packages_comes_before_the_answer_of_the_directory() -> None:
    written = paths([])
    assert {"/etc/sssd/gpufarm-ca.pem", "/etc/sssd", "/usr/share/pam-configs"} <= written
    refused = paths(["The directory cannot be asked: ldaps://ldap.example.org: no answer within 20 seconds"])
    assert not refused & {
        "/etc/sssd/gpufarm-ca.pem",
        "/etc/sssd",
        "/usr/share/pam-configs",
        "pam-auth-update",
    }


def test_a_group_for_logins_that_the_machine_has_is_refused_before_anything_is_written() -> None:
    told = {"problems": [], "person": "ada", "groups": ["users"]}
    case = CASES["sssd"].with_answers({"gpufarm.cluster.sssd_directory_info": told})
    assert not case.run("sssd", {"sssd_login_groups": ["gpu-users"]}).failed
    run = case.run("sssd", {"sssd_login_groups": ["users"]})
    assert "host1: sssd_login_groups has 'users', a name for groups of the machine" in run.refusal
    assert not any(call.action == "gpufarm.cluster.secret_files" for call in run.calls)
