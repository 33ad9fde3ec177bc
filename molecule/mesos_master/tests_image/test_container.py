"""The master runs in a container, as an account with no rights, and knows what it knew."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json


def test_it_is_a_container_without_rights(host):
    told = json.loads(host.check_output("docker inspect mesos-master"))[0]
    assert told["State"]["Running"]
    assert told["Config"]["User"] == host.check_output("echo $(id -u mesos):$(id -g mesos)")
    assert told["HostConfig"]["CapDrop"] == ["ALL"]


def test_no_secret_is_to_be_seen(host):
    secrets = host.check_output("cat /etc/mesos-master/secrets/principals/* /var/lib/mesos-master/zookeeper")
    seen = host.check_output("docker inspect mesos-master; cat /proc/*/cmdline; journalctl --boot")
    length = 43
    assert len(secrets) == 5 * length
    assert not [at for at in range(0, len(secrets), length) if secrets[at : at + length] in seen]


def test_it_knows_what_it_knew(host):
    said = host.check_output(
        "curl --silent --cacert /srv/tls/ca.pem"
        " --user operator:$(cat /etc/mesos-master/secrets/principals/operator)"
        ' --json \'{"type": "GET_WEIGHTS"}\' https://127.0.0.1:5050/master/api/v1'
    )
    assert json.loads(said)["get_weights"]["weight_infos"] == [{"role": "physics", "weight": 2.0}]
