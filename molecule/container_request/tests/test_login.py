"""Ada gets in through the gateway with her key and what the role told her; nobody gets in otherwise."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

SSH = "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/root/known_hosts"


@pytest.fixture
def result(host):
    return json.loads(host.file("/root/result.json").content_string)


@pytest.fixture
def login(host, result, eventually):
    """Run a command in the container, with options of ssh; `failed` is what a login says that fails."""
    place = urlsplit(result["endpoint"])
    where = f"-p {place.port} {place.username}@{place.hostname}"
    # The gateway sends nobody there before it has seen the server answer.
    eventually(lambda: host.run(f"ssh-keyscan -p {place.port} {place.hostname}").stdout != "")
    return lambda options, command: host.run(f"{SSH} {options} {where} '{command}' || echo failed")


def test_her_key_leads_into_her_home(host, login):
    done = login("-i /root/ada", "id -un; touch from-inside; pwd")
    assert done.stdout.split() == ["ada", "/home/ada"], done.stderr
    assert host.file("/home/ada/from-inside").user == "ada"
    processes = host.check_output("docker top box -eo pid,user,args").splitlines()[1:]
    assert {line.split()[1] for line in processes} == {"ada"}


def test_a_session_does_not_have_the_host_key(login):
    done = login("-i /root/ada", "env; cat /proc/*/environ")
    assert "LOGNAME=ada" in done.stdout and "PRIVATE KEY" not in done.stdout


@pytest.mark.parametrize(
    "options",
    [
        "-i /root/eve",
        "-o PubkeyAuthentication=no -o PreferredAuthentications=password,keyboard-interactive",
    ],
)
def test_strangers_and_passwords_are_turned_away(login, options):
    done = login(options, "id")
    assert done.stdout == "failed\n" and "Permission denied (publickey)" in done.stderr


def test_the_key_that_was_told_is_the_one_that_is_shown(host, result, login):
    assert login("-i /root/ada", "id -un").stdout == "ada\n"
    place = urlsplit(result["endpoint"])
    shown = host.check_output(f"ssh-keyscan -p {place.port} {place.hostname} 2>/dev/null | ssh-keygen -lf -")
    assert result["host_key_fingerprint"] in shown


def test_no_secret_is_to_be_seen(host):
    seen = host.check_output("ps -eww -o args; journalctl --boot")
    assert "PRIVATE KEY" not in seen and "a password of the bench" not in seen
