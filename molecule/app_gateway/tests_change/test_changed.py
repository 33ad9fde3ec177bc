"""The other certificate is shown; what was made here, and the password of the old Marathon, are gone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any


def test_the_provided_certificate_is_shown(host: Any) -> None:
    shown = host.check_output(
        "openssl s_client -connect localhost:443 </dev/null 2>/dev/null"
        " | openssl x509 -noout -subject -nameopt RFC2253"
    )
    assert shown == "subject=CN=provided"
    assert not host.file("/etc/app-gateway/tls/self-signed.key").exists


def test_the_program_knows_the_ports(host: Any) -> None:
    assert json.loads(host.check_output("cat /etc/app-gateway/routes.json"))["ports"] == [10000, 10010]
    assert json.loads(host.check_output("cat /run/app-gateway-routes/status.json"))["failure"] == ""


def test_what_the_old_marathon_needed_is_gone(host: Any) -> None:
    found = host.check_output("find /etc/app-gateway -type f -printf '%P\\n' | sort").split()
    assert found == ["haproxy.cfg", "routes.json", "tls/gateway.pem"]
