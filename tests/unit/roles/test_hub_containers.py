"""The role jupyterhub installs Podman where users may start containers in notebooks, and nowhere else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from harness import CASES, Run

CASE = CASES["jupyterhub"]
MARK = "/etc/jupyterhub/podman"


def words(run: Run) -> list[str]:
    """Return all that modules were asked for, as texts."""
    return [f"{call.action} {call.args}" for call in run.calls]


@pytest.mark.parametrize("containers", [True, False], ids=["jupyterhub-containers", "jupyterhub-none"])
def test_podman_is_installed_and_tried_where_containers_are_allowed(containers: bool) -> None:
    run = CASE.run("jupyterhub", {"jupyterhub_containers": containers})
    assert not run.failed, run.refusal
    for told in ("spawning.nested_probe', '/usr/bin/podman'", "'podman'", "'--user', '--map-root-user'"):
        assert any(told in text for text in words(run)) is containers, told
    settings: list[dict[str, Any]] = [call.args for call in run.calls if "settings.json" in str(call.args)]
    assert any(f'"containers": {str(containers).lower()}' in str(one) for one in settings)


@pytest.mark.parametrize("ours", [True, False], ids=["jupyterhub-ours", "jupyterhub-theirs"])
def test_podman_goes_with_the_hub_that_has_brought_it(ours: bool) -> None:
    answers = {"Remove | Check whether Podman came with the hub": {"found": {MARK: {}} if ours else {}}}
    run = CASE.with_answers(answers).run("jupyterhub", {"jupyterhub_state": "absent"})
    assert not run.failed, run.refusal
    removed = [call.args for call in run.calls if call.args.get("name") == "podman"]
    assert [(one["state"], one["purge"]) for one in removed] == ([("absent", True)] if ours else [])
