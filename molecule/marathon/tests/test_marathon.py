"""Two instances serve HTTPS behind one password, one leads, and no secret is to be seen."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

CURL = "curl --silent --cacert /etc/marathon/ca.pem"
LOGIN = '-u "marathon:$(cat /etc/marathon/secrets/http_password)"'


def test_both_answer_with_the_same_leader(host):
    told = {host.check_output(f"{CURL} {LOGIN} https://{name}:8443/v2/leader") for name in ("m1", "m2")}
    assert len(told) == 1 and json.loads(told.pop())["leader"] in ("m1:8443", "m2:8443")


def test_strangers_are_turned_away_and_plain_http_is_closed(host):
    status = "--output /dev/null --write-out '%{http_code}'"
    assert host.check_output(f"{CURL} {status} https://m1:8443/v2/apps") == "401"
    assert host.check_output(f"{CURL} {status} -u marathon:marathon https://m1:8443/v2/apps") == "401"
    assert not host.socket("tcp://0.0.0.0:8080").is_listening


def test_secrets_are_to_be_read_by_nobody_else(host):
    found = host.check_output("find /etc/marathon/secrets -printf '%f %U %m\\n' | sort").splitlines()
    modes = {line.split()[0]: line.split()[2] for line in found}
    assert modes.pop("secrets") == "700"
    assert set(modes.values()) == {"600"}
    assert modes.keys() >= {"http_password", "environment", "keystore.p12", "key.pem", "mesos_secret"}
    owners = {line.split()[0]: line.split()[1] for line in found}
    assert owners["environment"] == owners["http_password"] == "0" != owners["keystore.p12"]
    assert host.run("su -s /bin/sh nobody -c 'cat /etc/marathon/secrets/environment'").rc != 0


def test_no_secret_is_in_the_list_of_processes_or_the_journal(host):
    secrets = ["s3cret-of-state", "s3cret-of-framework"]
    for name in ("http_password", "keystore_password"):
        secrets.append(host.check_output("cat /etc/marathon/secrets/%s", name))
    seen = host.check_output(
        "ps -eww -o args; journalctl -u marathon; systemctl show marathon; cat /etc/marathon/environment"
    )
    assert [secret for secret in secrets if secret in seen] == []


def test_the_secret_for_mesos_has_no_newline(host):
    assert host.file("/etc/marathon/secrets/mesos_secret").content == b"s3cret-of-framework"


def test_the_service_runs_with_the_least_rights(host):
    process = host.process.get(comm="python3", user="marathon")
    status = host.file(f"/proc/{process.pid}/status").content_string
    assert "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
    assert host.service("marathon").is_enabled


def test_the_state_belongs_to_marathon_alone(host):
    script = (
        "from kazoo.client import KazooClient as K; c = K('m1:2181'); c.start(); c.get('/marathon/state')"
    )
    assert "NoAuthError" in host.run(f'python3 -c "{script}"').stderr
