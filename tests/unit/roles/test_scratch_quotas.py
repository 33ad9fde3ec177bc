"""Quotas of areas that are there follow the settings of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from harness.host import Host
from harness.life import on as life_on
from harness.life import run

NONE: dict[str, Any] = {"scratch_quota": "", "scratch_quota_files": 0}
LIMIT = ["/opt/gpufarm/bin/gpufarm-scratch", "limit"]


def limits(host: Host, **given: Any) -> int:
    """Run the role; return how many times it sets the quotas of all areas."""
    one = run("scratch", host, given)
    assert not one.failed, one.refusal
    return [call.args.get("argv") for call in one.calls].count(LIMIT)


@pytest.mark.parametrize("changed", [NONE, {**NONE, "scratch_quota_files": 5}, {"scratch_quota": "2T"}])
def test_quotas_that_change_are_set_once(changed: dict[str, Any]) -> None:
    host = Host()
    limits(host)
    assert limits(host, **changed) == 1
    assert limits(host, **changed) == 0


def test_where_nobody_was_limited_no_quota_is_set() -> None:
    host = Host()
    assert limits(host, **NONE) == 0
    assert limits(host, **NONE, scratch_days=9) == 0
    limits(host)
    assert limits(host, **NONE, scratch_path="/srv/areas") == 0


def test_a_quota_that_cannot_be_set_is_told() -> None:
    failing = {
        "Service | Set the quotas of existing areas": {"rc": 1, "stdout": "the quota of ada cannot be set"}
    }
    one = life_on(Host(), "scratch").with_answers(failing).run("scratch", {})
    assert "the quota of ada cannot be set" in one.refusal


@pytest.mark.parametrize("changed", [{}, NONE, {"scratch_quota": "2T"}])
@pytest.mark.parametrize(
    "step", ["Warn users each day where files are removed", "Set the quotas of existing areas"]
)
def test_quotas_are_set_by_the_run_after_one_that_failed(step: str, changed: dict[str, Any]) -> None:
    host = Host()
    if changed:
        limits(host)
    failing = {f"Service | {step}": {"failed": True, "rc": 1, "msg": "the machine is out of order"}}
    assert life_on(host, "scratch").with_answers(failing).run("scratch", changed).failed
    assert limits(host, **changed) == 1
    assert limits(host, **changed) == 0
