"""One leads, two follow; strangers neither join nor read what is not theirs; no secret is to be seen."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

SCRIPT = """
import sys
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_digest_acl
owner = KazooClient("zk1:2181,zk2:2181,zk3:2181")
owner.start()
owner.add_auth("digest", "mesos:right")
owner.create("/private", b"42", acl=[make_digest_acl("mesos", "right", all=True)])
results = {}
secret = open("/etc/zookeeper/secrets/super").read()
for name, pair in (("stranger", "mesos:wrong"), ("super", "super:" + secret)):
    one = KazooClient("zk2:2181")
    one.start()
    one.add_auth("digest", pair)
    try:
        results[name] = one.get("/private")[0].decode()
    except NoAuthError:
        results[name] = "refused"
    one.stop()
owner.delete("/private")
owner.stop()
import json
print(json.dumps(results))
"""


def test_one_leads_and_the_others_follow(host):
    modes = [
        host.check_output(f"exec 3<>/dev/tcp/zk{number}/2181; printf srvr >&3; grep ^Mode <&3")
        for number in (1, 2, 3)
    ]
    assert sorted(modes) == ["Mode: follower", "Mode: follower", "Mode: leader"]


@pytest.mark.parametrize("word", ["stat", "conf", "envi", "dump"])
def test_other_words_are_not_answered(host, word):
    said = host.check_output(f"exec 3<>/dev/tcp/127.0.0.1/2181; printf {word} >&3; cat <&3")
    assert "not in the whitelist" in said


def test_nodes_are_for_those_who_know_the_password(host):
    if host.check_output("hostname -s") != "zk1":
        pytest.skip("the client is on zk1")
    found = host.run("python3 -c %s", SCRIPT)
    assert json.loads(found.stdout) == {"stranger": "refused", "super": "42"}, found.stderr


def test_secrets_are_the_same_everywhere_and_hidden(host):
    folder = host.file("/etc/zookeeper/secrets")
    assert folder.mode == 0o700
    for name in ("quorum", "super", "jaas.conf", "java.options"):
        assert host.file(f"/etc/zookeeper/secrets/{name}").mode == 0o600
    secret = host.file("/etc/zookeeper/secrets/quorum").content_string
    assert len(secret) == 43
    assert secret in host.file("/etc/zookeeper/secrets/jaas.conf").content_string
    arguments = host.check_output("tr '\\0' ' ' < /proc/$(systemctl show -P MainPID zookeeper)/cmdline")
    assert "QuorumPeerMain" in arguments and "super:" not in arguments and secret not in arguments
    assert host.run("grep --recursive --files-with-matches %s /var/log /run/log", secret).stdout == ""


def test_it_runs_as_a_user_with_no_rights_and_opens_no_administration_port(host):
    assert host.check_output("ps -o user= -p $(systemctl show -P MainPID zookeeper)") == "zookeeper"
    assert not host.socket("tcp://8080").is_listening
