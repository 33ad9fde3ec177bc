"""After an upgrade with other settings, and after a boot: all is there, and works."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testinfra.host import Host


def test_the_database_was_copied_before_its_tables_changed(host: Host) -> None:
    version = "sqlite3 %s 'select version_num from alembic_version'"
    assert host.check_output(version, "/var/lib/gpufarm-serve/serve.db.0001") == "0001"
    assert host.check_output(version, "/var/lib/gpufarm-serve/serve.db") > "0001"


def test_earlier_programs_are_gone(host: Host) -> None:
    assert len(host.check_output("ls /opt/gpufarm-serve").split()) == 1


def test_one_worker_is_left(host: Host) -> None:
    assert host.service("gpufarm-serve-worker@1").is_running
    assert not host.service("gpufarm-serve-worker@2").is_running
    assert not host.service("gpufarm-serve-worker@2").is_enabled


def test_metrics_are_for_those_who_may(paas: Any, eventually: Callable[[Callable[[], bool]], None]) -> None:
    eventually(lambda: "gpufarm_serve_runs" in paas.client().get("/metrics").text)  # after a boot it starts


def test_what_was_there_still_is_and_quotas_hold(
    paas: Any, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    eventually(lambda: paas.client().get("/info").status_code == 200)
    alice = paas.user("alice")
    assert alice.get("/deployments?createdBy=me").json()["page"]["totalElements"] > 0
    own = paas.deployed(alice)
    try:
        body = {"template": paas.template, "parameters": {"users": []}}
        refused = alice.post("/deployments", json=body)
        assert refused.status_code == 403 and "1 deployment" in refused.text, refused.text
    finally:
        alice.delete(f"/deployments/{own}")
        paas.ended(alice, own, "DELETE_COMPLETE")
