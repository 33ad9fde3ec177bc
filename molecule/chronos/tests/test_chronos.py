"""Two instances beside each other: ports, passwords, states, accounts of their own; no secret is seen."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

INSTANCES = pytest.mark.parametrize(("name", "port"), [("chronos", 8444), ("chronos-ada", 9444)])
OTHER = {"chronos": "chronos-ada", "chronos-ada": "chronos"}


def status(host, name, port, password_of):
    return host.check_output(
        f"curl --silent --output /dev/null --write-out '%{{http_code}}' --cacert /etc/{name}/ca.pem"
        f' -u "chronos:$(cat /etc/{password_of}/secrets/http_password)" https://c1:{port}/v1/scheduler/jobs'
    )


@INSTANCES
def test_each_has_its_own_password(host, name, port):
    assert status(host, name, port, name) == "200"
    assert status(host, name, port, OTHER[name]) == "401"


@INSTANCES
def test_secrets_are_to_be_read_by_nobody_else(host, name, port):
    modes = host.check_output("find /etc/%s/secrets -type f -printf '%%f %%m\\n'", name)
    assert {line.split()[1] for line in modes.splitlines()} == {"600"}
    assert host.run("su -s /bin/sh %s -c 'ls /etc/%s/secrets'", name, OTHER[name]).rc != 0


@INSTANCES
def test_no_secret_is_in_the_list_of_processes_or_the_journal(host, name, port):
    secrets = [
        "s3cret-of-state",
        "s3cret-of-framework",
        host.check_output("cat /etc/%s/secrets/http_password", name),
    ]
    seen = host.check_output("ps -eww -o args; journalctl -u %s; systemctl show %s", name, name)
    assert [secret for secret in secrets if secret in seen] == []


@INSTANCES
def test_it_is_started_as_the_real_one_is(host, name, port):
    unit = host.check_output("systemctl show --property ExecStart --value %s", name)
    assert (
        "/opt/java/bin/java -Xmx512m -cp /opt/chronos/chronos-3.0.2.jar"
        f" org.apache.mesos.chronos.scheduler.Main @/etc/{name}/secrets/options" in unit
    )


def test_jobs_of_nobody_in_particular_do_not_run_as_root(host):
    assert "--user nobody\n" in host.file("/etc/chronos/secrets/options").content_string
    assert "--user ada\n" in host.file("/etc/chronos-ada/secrets/options").content_string


def test_states_lie_apart_and_belong_to_chronos_alone(host):
    script = (
        "from kazoo.client import KazooClient as K; c = K('c1:2181', auth_data=[('digest',"
        " 'chronos:s3cret-of-state')]); c.start(); print(c.exists('/chronos/state') and"
        " c.exists('/chronos-ada/state') and 'both')"
    )
    assert host.check_output(f'python3 -c "{script}"') == "both"
    stranger = (
        "from kazoo.client import KazooClient as K; c = K('c1:2181'); c.start();"
        " c.get('/chronos/state/state')"
    )
    assert "NoAuthError" in host.run(f'python3 -c "{stranger}"').stderr
