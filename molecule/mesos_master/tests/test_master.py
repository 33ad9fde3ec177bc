"""The master runs with the options that were meant, and lets nobody in without a password."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

CURL = "curl --silent --cacert /srv/tls/ca.pem"
API = "https://127.0.0.1:5050/master/api/v1"


def call(host, kind):
    return json.loads(
        host.check_output(
            f"{CURL} --user operator:$(cat /etc/mesos-master/secrets/principals/operator)"
            f' --json \'{{"type": "{kind}"}}\' {API}'
        )
    )[kind.lower()]


def test_it_runs_with_the_options_that_were_meant(host):
    flags = {one["name"]: one["value"] for one in call(host, "GET_FLAGS")["flags"]}
    assert flags["quorum"] == "1"
    assert flags["cluster"] == "bench"
    assert flags["authenticate_agents"] == flags["authenticate_http_readwrite"] == "true"
    rules = json.loads(host.file(flags["acls"]).content_string)
    assert rules["register_frameworks"] == [
        {"principals": {"values": ["marathon"]}, "roles": {"type": "ANY"}}
    ]


def test_weights_and_quotas_are_set(host):
    assert call(host, "GET_WEIGHTS")["weight_infos"] == [{"role": "physics", "weight": 2.0}]
    configs = call(host, "GET_QUOTA")["status"]["configs"]
    assert configs == [{"role": "alice", "limits": {"gpus": {"value": 2.0}}}]


def test_nobody_gets_in_without_a_password(host):
    status = "--output /dev/null --write-out %{http_code}"
    assert host.check_output(f"{CURL} {status} {API}") == "401"
    assert host.check_output(f"{CURL} {status} --user operator:wrong {API}") == "401"
    assert host.run("curl --silent --max-time 5 http://127.0.0.1:5050/master/health").rc != 0


def test_no_secret_is_to_be_seen(host):
    folder = "/etc/mesos-master/secrets"
    assert host.file(folder).mode == 0o700
    principals = host.check_output(f"ls {folder}/principals").split()
    assert principals == ["agent", "chronos", "marathon", "operator"]
    secrets = [host.file(f"{folder}/principals/{name}").content_string for name in principals]
    secrets.append(host.file("/var/lib/mesos-master/zookeeper").content_string)
    assert len(set(secrets)) == 5 and {len(one) for one in secrets} == {43}
    seen = host.check_output("cat /proc/*/cmdline /etc/mesos-master/environment; journalctl --boot")
    assert not [one for one in secrets if one in seen]
    assert host.file(f"{folder}/credentials.json").mode == 0o400
    assert host.file(f"{folder}/tls.key").mode == 0o400


def test_it_runs_as_an_account_with_no_rights(host):
    process = host.check_output("systemctl show --property MainPID --value mesos-master")
    assert host.check_output("ps -o user= -p %s", process) == "mesos"
