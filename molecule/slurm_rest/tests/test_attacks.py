"""Without a token of the cluster nobody learns or does anything."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import time
from contextlib import suppress

import pytest
from conftest import API, PORT, Rest, made, on
from testinfra.host import Host

PATHS = (
    f"/slurm/{API}/ping",
    f"/slurm/{API}/jobs",
    f"/slurm/{API}/diag",
    f"/slurmdb/{API}/config",
    "/openapi",
    "/openapi/v3",
    "/openapi.json",
    f"/slurm/{API}/nothing",
)
ACCOUNTS = ("gpufarm-slurm-rest", "gpufarm-slurm-proxy")
UNITS = ("slurmrestd", "gpufarm-slurm-proxy")


def test_a_token_of_the_cluster_is_taken(rest: Rest, key: bytes) -> None:
    """So the others below are refused for what is wrong with them alone."""
    now = int(time.time())
    token = made(key, iat=now, exp=now + 600, sun="alice")
    for path in (f"/slurm/{API}/ping", "/openapi/v3", f"/slurmdb/{API}/associations"):
        assert rest.ask(path, token)[0] == 200, path


def test_bad_tokens_are_refused_and_told_nothing(rest: Rest, bad: dict[str, dict[str, str]]) -> None:
    for name, headers in bad.items():
        for path in PATHS:
            status, text = rest.ask(path, headers=headers)
            assert status == 401, (name, path, text)
            assert not any(word in text for word in ("ctl", "24.11", "slurm", "Slurm", "n1")), (name, path)


def test_nothing_is_done_for_bad_tokens(rest: Rest, bad: dict[str, dict[str, str]]) -> None:
    before = on("ctl", "squeue", "--noheader", "--states=all", "--format=%i")
    for name, headers in bad.items():
        body = {"script": "#!/bin/sh\ntrue\n", "job": {"environment": ["A=b"]}}
        assert rest.ask(f"/slurm/{API}/job/submit", method="POST", body=body, headers=headers)[0] == 401, name
    assert on("ctl", "squeue", "--noheader", "--states=all", "--format=%i") == before


def test_two_headers_of_one_name_are_refused(rest: Rest, tokens: dict[str, str]) -> None:
    for first, second in (("alice", "bob"), ("bob", "alice")):
        connection = http.client.HTTPSConnection(rest.address, PORT, context=rest.context, timeout=60)
        connection.putrequest("GET", f"/slurm/{API}/jobs")
        connection.putheader("X-SLURM-USER-TOKEN", tokens[first])
        connection.putheader("X-SLURM-USER-TOKEN", tokens[second])
        connection.endheaders()
        assert connection.getresponse().status == 401
        connection.close()


def test_users_get_tokens_of_their_own_for_a_day_at_most() -> None:
    def asked(*words: str) -> str:
        try:
            return on("ctl", "runuser", "-u", "alice", "--", "scontrol", "token", *words)
        except subprocess.CalledProcessError as error:
            return f"refused: {error}"

    assert asked("lifespan=86400").startswith("SLURM_JWT=")
    for words in (["lifespan=86401"], ["lifespan=infinite"], ["username=bob"], ["username=root"]):
        assert asked(*words).startswith("refused"), words


def test_other_paths_and_large_requests_are_refused(rest: Rest, tokens: dict[str, str]) -> None:
    for path in ("/", "/metrics", "/token", "/openapi/", "/slurmx/", "/..%2ftoken"):
        assert rest.ask(path, tokens["alice"])[0] in (400, 404), path
    body = {"script": "#" * (9 << 20), "job": {}}
    # The answer may come before the end of the request.
    with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
        assert rest.ask(f"/slurm/{API}/job/submit", tokens["alice"], "POST", body)[0] == 413
    assert rest.ask(f"/slurm/{API}/ping", tokens["alice"])[0] == 200


def test_a_controller_that_is_away_is_told_from_a_bad_token(rest: Rest, tokens: dict[str, str]) -> None:
    on("ctl", "systemctl", "stop", "slurmctld")
    try:
        status, text = rest.ask(f"/slurm/{API}/ping", tokens["alice"])
    finally:
        on("ctl", "systemctl", "start", "slurmctld")
    assert (status, text) == (503, "The controller of Slurm does not answer.\n")
    assert rest.ask(f"/slurm/{API}/ping", tokens["alice"])[0] == 200


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_tls_and_plain_http_are_refused(rest: Rest) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection((rest.address, PORT)) as connection, pytest.raises(ssl.SSLError):
        old.wrap_socket(connection)
    plain = http.client.HTTPConnection(rest.address, PORT, timeout=60)
    plain.request("GET", f"/slurm/{API}/ping")
    assert plain.getresponse().status == 400


def test_slurmrestd_is_reached_by_the_proxy_alone(host: Host) -> None:
    listeners = host.check_output("ss --no-header --listening --tcp --numeric --processes")
    assert "slurmrestd" not in listeners and f":{PORT}" in listeners
    assert host.check_output("stat --format='%U %a' /run/gpufarm-slurmrestd") == "gpufarm-slurm-rest 750"
    reach = "import socket; socket.socket(socket.AF_UNIX).connect('/run/gpufarm-slurmrestd/socket')"
    assert host.run("python3 -c %s", reach).rc == 0
    assert host.run("runuser -u nobody -- python3 -c %s", reach).rc != 0
    assert "rest_auth/jwt" in host.check_output("ps -C slurmrestd -o args=")


def test_the_machine_has_no_key_of_the_cluster(host: Host) -> None:
    for path in ("/etc/munge", "/etc/slurm/secrets", "/etc/slurm/slurmctld-jwt.key"):
        assert not host.file(path).exists
    assert "jwt_key" not in host.file("/etc/gpufarm/slurm-rest/slurm.conf").content_string


def test_users_read_no_key() -> None:
    for path in ("/etc/slurm/slurmctld-jwt.key", "/etc/slurm/slurmdbd-jwt.key"):
        assert on("ctl", "stat", "--format=%U %a", path).strip() == "slurm 600"
    assert on("ctl", "stat", "--format=%U %a", "/etc/slurm/secrets/jwt.key").strip() == "root 600"


@pytest.mark.parametrize("unit", UNITS)
def test_units_are_confined_and_start_at_boot(host: Host, unit: str) -> None:
    assert host.service(unit).is_running and host.service(unit).is_enabled
    main = host.check_output("systemctl show --property=MainPID --value %s", unit)
    status = host.file(f"/proc/{main}/status").content_string
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    owner = host.check_output("stat --format=%%U /proc/%s", main)
    assert owner == dict(zip(UNITS, ACCOUNTS, strict=True))[unit]
    proxy = host.run("runuser -u %s -- cat /etc/gpufarm/slurm-rest/proxy.pem", ACCOUNTS[0])
    assert proxy.rc != 0


def test_nothing_of_tokens_is_in_the_journal(host: Host, rest: Rest, tokens: dict[str, str]) -> None:
    assert rest.ask(f"/slurm/{API}/ping", tokens["alice"])[0] == 200
    journal = host.check_output("journalctl --no-pager --output=cat")
    assert "GET" in journal and tokens["alice"].split(".")[2] not in journal
