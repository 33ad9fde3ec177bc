# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role slurm_rest ends with an error where the running interface is not as it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from harness.cases import CASES
from harness.stubs import has, said

PING = "Verify | Ping the controllers over HTTPS"


@pytest.mark.parametrize(
    ("task", "answer", "words"),
    [
        (
            "Verify | Get a token",
            {"rc": 1, "stdout": "", "stderr": "Plugin not loaded"},
            "host2 gives no token (Plugin not loaded); see 'journalctl -u slurmctld'",
        ),
        (PING, {"status": 503}, "reaches no controller (status 503)"),
        (PING, {"status": -1}, "reaches no controller (status -1)"),
        (
            PING,
            {"status": 200, "json": {"pings": [{"pinged": "DOWN"}]}},
            "reaches no controller (status 200)",
        ),
        (
            "Verify | Ping the controllers without a token",
            {"status": 200},
            "answers a request without a token by the status 200 and not by 401",
        ),
    ],
)
def test_an_interface_that_is_not_as_it_should_be_is_an_error(
    task: str, answer: Mapping[str, Any], words: str
) -> None:
    run = CASES["slurm_rest"].with_answers({task: answer}).run("slurm_rest")
    assert run.failed and words in run.refusal.replace("\n", " ")


def test_one_controller_of_several_is_enough() -> None:
    pings = {"status": 200, "json": {"pings": [{"pinged": "DOWN"}, {"pinged": "UP"}]}}
    assert not CASES["slurm_rest"].with_answers({PING: pings}).run("slurm_rest").failed


def test_the_token_of_the_role_is_in_no_output_and_no_command() -> None:
    token = "SLURM_JWT=header.claims.signature"
    said = {"rc": 0, "stdout": token, "stderr": ""}
    run = CASES["slurm_rest"].with_answers({"Verify | Get a token": said}).run("slurm_rest")
    with_token = [call for call in run.calls if "header.claims.signature" in str(call.args)]
    assert [call.action for call in with_token] == ["ansible.builtin.uri"]
    assert all(call.no_log for call in with_token)


@pytest.mark.parametrize("there", [True, False])
def test_a_run_that_was_killed_after_the_packages_is_no_service_of_the_site(there: bool) -> None:
    """The package enables its service, before the role has configured it."""
    enabled = 2 * "ActiveState=inactive\nUnitFileState=\n\n" + "ActiveState=inactive\nUnitFileState=enabled"
    case = CASES["slurm_rest"].with_answers(
        {
            "Units | Query the units": said(enabled),
            "gpufarm.cluster.path_info": has(*(["/etc/gpufarm/slurm-rest"] if there else [])),
        }
    )
    checked = case.run("slurm_rest", entry="validate")
    assert ("is there without this role" in checked.refusal) != there
    assert bool(checked.failed) != there
