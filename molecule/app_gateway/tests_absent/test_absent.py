"""Nothing of the gateway is left."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any


def test_nothing_is_left(host: Any) -> None:
    for path in ("/etc/app-gateway", "/var/lib/app-gateway", "/opt/gpufarm", "/run/app-gateway"):
        assert not host.file(path).exists, path
    assert not host.user("app-gateway").exists and not host.user("app-gateway-routes").exists
    assert host.run("systemctl cat app-gateway app-gateway-routes").rc != 0
    assert not host.socket("tcp://443").is_listening and not host.socket("tcp://80").is_listening


def test_the_haproxy_of_the_site_goes_on(host: Any) -> None:
    assert host.service("haproxy").is_enabled
    assert host.check_output("curl --silent http://127.0.0.1:8089/") == "site"
