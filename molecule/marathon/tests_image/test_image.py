"""Both instances run in containers without rights, with the site's certificate, and know what they knew."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

CURL = 'curl --silent --cacert /etc/marathon/ca.pem -u "marathon:$(cat /etc/marathon/secrets/http_password)"'


def test_the_image_runs_as_it_was_pulled(host):
    [told] = json.loads(host.check_output("docker inspect marathon"))
    assert told["State"]["Running"] and "@sha256:" in told["Config"]["Image"]
    account = host.user("marathon")
    assert told["Config"]["User"] == f"{account.uid}:{account.gid}"
    status = host.file(f"/proc/{told['State']['Pid']}/status").content_string
    assert f"Uid:\t{account.uid}\t{account.uid}" in status
    assert "CapBnd:\t0000000000000000" in status and "NoNewPrivs:\t1" in status


def test_both_show_the_certificate_of_the_site_and_have_one_leader(host):
    told = {host.check_output(f"{CURL} https://{name}:8443/v2/leader") for name in ("m1", "m2")}
    assert len(told) == 1 and json.loads(told.pop())["leader"] in ("m1:8443", "m2:8443")
    shown = host.check_output(
        "openssl s_client -connect $(hostname):8443 </dev/null 2>/dev/null | openssl x509 -noout -issuer"
    )
    assert "authority of the site" in shown


def test_the_apps_are_there(host):
    apps = json.loads(host.check_output(f"{CURL} https://m1:8443/v2/apps"))["apps"]
    assert ("/ada/train", 1) in [(app["id"], app["tasksRunning"]) for app in apps]


def test_no_secret_is_to_be_seen(host):
    secrets = ["s3cret-of-state", "s3cret-of-framework"]
    secrets += [
        host.check_output(f"cat /etc/marathon/secrets/{name}_password") for name in ("http", "keystore")
    ]
    seen = host.check_output("ps -eww -o args; journalctl --boot --unit marathon; systemctl show marathon")
    assert [secret for secret in secrets if secret in seen] == []
