"""Quotas of homes that are there follow the settings of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from harness.host import Host
from harness.life import on, run

DISK: dict[str, Any] = {"shared_home_kind": "local", "shared_home_source": "UUID=1-2"}
LIMITED: dict[str, Any] = {"shared_home_quota": "1T"}
LIMIT = ["/usr/local/sbin/gpufarm-home", "--all"]


def limits(host: Host, **given: Any) -> int:
    """Run the role; return how many times it sets the limits of all homes."""
    one = run("shared_home", host, {**DISK, **given})
    assert not one.failed, one.refusal
    return [call.args.get("argv") for call in one.calls].count(LIMIT)


@pytest.mark.parametrize("changed", [{"shared_home_quota": ""}, {"shared_home_quota": "2T"}])
def test_limits_that_change_are_set_once(changed: dict[str, Any]) -> None:
    host = Host()
    limits(host, **LIMITED)
    assert limits(host, **{**LIMITED, **changed}) == 1
    assert limits(host, **{**LIMITED, **changed}) == 0


def test_where_nobody_was_limited_no_limit_is_set() -> None:
    host = Host()
    assert limits(host) == 0
    assert limits(host, shared_home_options=["noatime"]) == 0


@pytest.mark.parametrize("first", [{}, LIMITED])
@pytest.mark.parametrize("step", ["Mount the homes, now and at boot", "Set the limits of existing homes"])
def test_limits_are_set_by_the_run_after_one_that_failed(step: str, first: dict[str, Any]) -> None:
    host, then = Host(), {} if first else LIMITED
    limits(host, **first)
    failing = {f"Service | {step}": {"failed": True, "rc": 1, "msg": "the machine is out of order"}}
    assert on(host, "shared_home").with_answers(failing).run("shared_home", {**DISK, **then}).failed
    assert limits(host, **then) == 1
    assert limits(host, **then) == 0
