"""Both instances run the new version with the new flags, the app is there, and nothing of what is off now."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

CURL = 'curl --silent --cacert /etc/marathon/ca.pem -u "marathon:$(cat /etc/marathon/secrets/http_password)"'


def test_the_new_version_runs(host):
    unit = host.check_output("systemctl show --property ExecStart marathon")
    assert "/opt/marathon/marathon-1.11.25/bin/marathon" in unit
    environment = host.file("/etc/marathon/environment").content_string
    assert "MARATHON_DISABLE_MAINTENANCE_MODE=\n" in environment
    assert "TASK_LAUNCH_TIMEOUT" not in environment and "MARATHON_ZK=" not in environment


def test_the_app_has_outlived_upgrade_and_leader(host):
    apps = json.loads(host.check_output(f"{CURL} https://m1:8443/v2/apps"))["apps"]
    assert [(app["id"], app["tasksRunning"]) for app in apps] == [("/ada/train", 1), ("/ben/train", 0)]


def test_what_masters_with_logins_and_tls_needed_is_gone_and_what_the_site_gave_is_not(host):
    found = host.check_output("ls /etc/marathon/secrets").split()
    assert found == [
        "cert.pem",
        "environment",
        "http_password",
        "key.pem",
        "keystore.p12",
        "keystore_password",
    ]
    assert host.file(f"/srv/tls/{host.check_output('hostname -s')}.key").exists
