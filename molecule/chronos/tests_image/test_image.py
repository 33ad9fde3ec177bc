"""The instance for all runs in a container without rights, with the site's certificate."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json


def test_the_image_runs_as_it_was_pulled(host):
    [told] = json.loads(host.check_output("docker inspect chronos"))
    assert told["State"]["Running"] and "@sha256:" in told["Config"]["Image"]
    account = host.user("chronos")
    assert told["Config"]["User"] == f"{account.uid}:{account.gid}"
    assert told["Args"][-1] == "@/etc/chronos/secrets/options"
    status = host.file(f"/proc/{told['State']['Pid']}/status").content_string
    assert f"Uid:\t{account.uid}\t{account.uid}" in status
    assert "CapBnd:\t0000000000000000" in status and "NoNewPrivs:\t1" in status


def test_it_shows_the_certificate_of_the_site(host):
    code = host.check_output(
        "curl --silent --output /dev/null --write-out '%{http_code}' --cacert /etc/chronos/ca.pem"
        ' -u "chronos:$(cat /etc/chronos/secrets/http_password)" https://c1:8444/v1/scheduler/jobs'
    )
    assert code == "200"
    shown = host.check_output(
        "openssl s_client -connect c1:8444 </dev/null 2>/dev/null | openssl x509 -noout -issuer"
    )
    assert "authority of the site" in shown


def test_no_secret_is_to_be_seen(host):
    secrets = ["s3cret-of-state", "s3cret-of-framework"]
    secrets += [
        host.check_output(f"cat /etc/chronos/secrets/{name}_password") for name in ("http", "keystore")
    ]
    seen = host.check_output("ps -eww -o args; journalctl --boot --unit chronos; systemctl show chronos")
    assert [secret for secret in secrets if secret in seen] == []
