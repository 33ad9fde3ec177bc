"""A machine whose homes are no longer those of a cluster exports them to nobody."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from harness.host import Host
from harness.life import on
from harness.run import Run

EXPORT = "/etc/exports.d/gpufarm-homes.exports"
SERVER = "nfs-server.service"
READS = "Remove | Have the server read its exports"
DISK = {"shared_home_source": "UUID=1-2"}
LOCAL = {"shared_home_kind": "local", **DISK}
CLUSTER = {"shared_home_kind": "cluster", "shared_home_clients": [["10.0.0.2"]], **DISK}
OF_HOST1 = {"shared_home_server": "host1", **CLUSTER}


def run(host: Host, variables: dict[str, Any], *, check: bool = False, **answers: Any) -> Run:
    known = {"Export | List the exports of the server": {"stdout": "/srv/home 10.0.0.2(rw)\n"}, **answers}
    return on(host, "shared_home").with_answers(known).run("shared_home", variables, check=check)


def server() -> Host:
    host = Host()
    first = run(host, OF_HOST1)
    assert not first.failed, first.refusal
    assert "10.0.0.2(" in host.files[EXPORT].content
    assert host.units[SERVER].enabled and host.units[SERVER].running
    return host


def reads(one: Run) -> list[str]:
    """Return the steps at which the server of NFS was told to read its exports."""
    return [call.name for call in one.calls if call.args.get("argv") == ["exportfs", "-ra"]]


@pytest.mark.parametrize(
    "variables",
    [
        LOCAL,
        {"shared_home_kind": "nfs", "shared_home_source": "nfs.example.org:/export/home"},
        {"shared_home_server": "10.0.0.9", **CLUSTER},
    ],
)
def test_a_server_that_is_none_any_more_exports_nothing(variables: dict[str, Any]) -> None:
    host = server()
    one = run(host, variables)
    assert not one.failed, one.refusal
    assert len(reads(one)) == 1
    assert EXPORT not in host.files
    assert not host.units[SERVER].enabled and not host.units[SERVER].running
    again = run(host, variables)
    assert not reads(again)


def test_a_server_goes_on_to_export_what_others_have_there() -> None:
    host = server()
    other = {**on(host, "shared_home").answers["gpufarm.cluster.shared_home_info"], "exports_more": True}
    one = run(host, LOCAL, **{"gpufarm.cluster.shared_home_info": other})
    assert len(reads(one)) == 1
    assert host.units[SERVER].enabled and host.units[SERVER].running


@pytest.mark.parametrize("variables", [LOCAL, {"shared_home_state": "absent"}])
def test_a_run_that_was_killed_before_the_server_knew_is_made_up_for(variables: dict[str, Any]) -> None:
    host = server()
    killed = run(host, variables, **{READS: {"failed": True, "msg": "killed"}})
    assert killed.failed
    one = run(host, variables)
    assert not one.failed, one.refusal
    assert len(reads(one)) == 1
    assert EXPORT not in host.files


def test_a_check_of_a_server_that_is_none_any_more_changes_nothing() -> None:
    host = server()
    files = dict(host.files)
    one = run(host, LOCAL, check=True)
    assert not one.failed, one.refusal
    assert host.files == files and host.units[SERVER].running
