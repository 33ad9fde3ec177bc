"""People deploy a template on a machine of the pool with nothing but a token, and others cannot."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest
from testinfra.host import Host

KEY = "/var/lib/gpufarm-serve-worker/ssh/id_ed25519"
UNITS = ("gpufarm-serve", "gpufarm-serve-worker@1", "gpufarm-serve-worker@2", "gpufarm-serve-proxy")


def test_a_user_deploys_and_deletes(paas: Any, machine: Host) -> None:
    alice = paas.user("alice")
    own = paas.deployed(alice)
    try:
        assert "\nann:" in machine.file("/etc/passwd").content_string
        assert "accounts.configure on machine: ok" in alice.get(f"/deployments/{own}/log").text
        assert paas.user("carol").get(f"/deployments/{own}").status_code == 404
        assert paas.user("bob").get(f"/deployments/{own}").status_code == 200  # an administrator
    finally:
        alice.delete(f"/deployments/{own}")
        paas.ended(alice, own, "DELETE_COMPLETE")
    assert ":!" in next(
        line for line in machine.file("/etc/shadow").content_string.splitlines() if line.startswith("ann:")
    )


def test_strangers_are_refused(paas: Any) -> None:
    assert paas.client().get("/deployments").status_code == 401
    assert paas.client("nonsense").get("/deployments").status_code == 401
    body = {"template": paas.template, "parameters": {"users": []}}
    assert paas.user("mallory").post("/deployments", json=body).status_code == 403


def test_the_server_reads_no_key_of_the_pool(host: Host) -> None:
    for path in (KEY, "/etc/gpufarm-serve/worker/vault_password"):
        assert host.file(path).mode == 0o600 and host.file(path).user == "gpufarm-serve-worker"
        assert host.run("runuser -u gpufarm-serve -- cat %s", path).rc != 0
        assert host.run("runuser -u gpufarm-serve-worker -- cat %s", path).rc == 0


def test_nobody_else_reads_anything(host: Host) -> None:
    for path in ("/etc/gpufarm-serve/serve.yml", "/var/lib/gpufarm-serve/serve.db", KEY):
        assert host.run("runuser -u nobody -- cat %s", path).rc != 0


@pytest.mark.parametrize("unit", UNITS)
def test_units_are_confined_and_start_at_boot(host: Host, unit: str) -> None:
    assert host.service(unit).is_running and host.service(unit).is_enabled
    main = host.check_output("systemctl show --property=MainPID --value %s", unit)
    status = host.file(f"/proc/{main}/status").content_string
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    assert "Uid:\t0" not in status


def test_the_server_is_reached_by_the_proxy_only(host: Host, facts: dict[str, Any]) -> None:
    assert "127.0.0.1:8080" in host.check_output("ss --listening --tcp --numeric --no-header")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((facts["address"], 8080), 5)


def test_metrics_are_for_the_machine_itself(host: Host, paas: Any) -> None:
    told = paas.client(headers={"X-Forwarded-For": "127.0.0.1"}).get("/metrics")
    assert told.status_code == 403
    assert "gpufarm_serve_deployments" in host.check_output("curl --silent http://127.0.0.1:8080/metrics")


def connected(address: str) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection((address, 443), 60))


def test_a_silent_client_is_sent_away(facts: dict[str, Any]) -> None:
    with connected(facts["address"]) as silent:
        silent.sendall(b"POST /deployments HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        assert b" 408 " in silent.recv(100) or silent.recv(100) == b""


def test_an_address_gets_so_many_connections(facts: dict[str, Any], paas: Any) -> None:
    request = b"POST /deployments HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
    with contextlib.ExitStack() as every:
        for _ in range(20):
            every.enter_context(connected(facts["address"])).sendall(request)
        assert paas.client().get("/info").status_code == 429
    # others go on, and so does this one
    assert paas.client().get("/info").status_code == 200


def test_a_worker_that_is_told_to_reload_ends_its_run_before(
    host: Host, paas: Any, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    def mains() -> list[str]:
        command = "systemctl show --property=MainPID --value gpufarm-serve-worker@1 gpufarm-serve-worker@2"
        return host.check_output(command).split()

    alice, before = paas.user("alice"), mains()
    own = paas.begun(alice)
    try:
        eventually(lambda: bool(alice.get(f"/deployments/{own}/log").text))
        host.check_output("systemctl reload gpufarm-serve-worker@1 gpufarm-serve-worker@2")
        paas.ended(alice, own, "CREATE_COMPLETE")
        eventually(lambda: not set(before) & set(mains()) and "0" not in mains())
        told = host.check_output("journalctl --unit=%s --output=cat", "gpufarm-serve-worker@*")
        assert f"CREATE of {own}: attempt 1" in told and f"CREATE of {own}: attempt 2" not in told
    finally:
        alice.delete(f"/deployments/{own}")
        paas.ended(alice, own, "DELETE_COMPLETE")


def test_workers_tell_the_journal_what_they_do(host: Host) -> None:
    assert "is ready" in host.check_output("journalctl --unit=%s --output=cat", "gpufarm-serve-worker@1")


def test_the_service_of_the_new_package_does_not_run(host: Host) -> None:
    assert not host.service("nginx").is_enabled
    assert not host.service("nginx").is_running
