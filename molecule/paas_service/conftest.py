"""The service as people see it, with tokens of the bench's identity provider."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import testinfra
from testinfra.host import Host

from lab.patience import PATIENCE
from lab.tokens import access_token
from lab.visitor import trust

ROOT = Path(__file__).parents[2]
PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ann@desk"


class Paas:
    """The service of a machine.

    Attributes:
        template: text of the template that it offers.
    """

    def __init__(
        self, url: str, authority: str, iam: Mapping[str, str], passwords: Mapping[str, str]
    ) -> None:
        self.url, self._iam, self._passwords = url, iam, passwords
        self._context = trust(authority, Path(iam["ca_file"]).read_text())
        own = ROOT / "tests/integration/tosca/served/accounts.yaml"
        self.template = own.read_text().replace("../../../../tosca", "..")

    def client(self, token: str = "", headers: Mapping[str, str] | None = None) -> httpx.Client:
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(
            base_url=self.url, verify=self._context, headers={**given, **(headers or {})}, timeout=60
        )

    def user(self, name: str) -> httpx.Client:
        return self.client(self._token(name))

    @functools.cache  # noqa: B019  (lives as long as the tests)
    def _token(self, name: str) -> str:
        return access_token(self._iam["url"], self._context, name, self._passwords[name])

    def begun(self, client: httpx.Client) -> str:
        users = [{"os_user_name": "ann", "os_user_ssh_public_key": PUBLIC}]
        answer = client.post("/deployments", json={"template": self.template, "parameters": {"users": users}})
        assert answer.status_code == 201, answer.text
        return answer.json()["uuid"]

    def deployed(self, client: httpx.Client) -> str:
        own = self.begun(client)
        self.ended(client, own, "CREATE_COMPLETE")
        return own

    def ended(self, client: httpx.Client, own: str, status: str) -> None:
        end = time.monotonic() + PATIENCE
        while (found := client.get(f"/deployments/{own}").json())["status"].endswith("IN_PROGRESS"):
            assert time.monotonic() < end, found
            time.sleep(0.5)
        assert found["status"] == status, (found, client.get(f"/deployments/{own}/log").text)


@pytest.fixture
def paas(host: Host, facts: dict[str, Any], bench: dict[str, Any], passwords: dict[str, str]) -> Paas:
    port = 8443 if host.file("/etc/gpufarm-serve-proxy/nginx.conf").contains("listen 8443") else 443
    authority = host.file("/etc/gpufarm-serve-proxy/self-signed.crt").content_string
    return Paas(f"https://{facts['address']}:{port}", authority, bench["iam"], passwords)


@pytest.fixture
def machine(bench: dict[str, Any]) -> Host:
    """The machine of the pool."""
    return testinfra.get_host(f"ssh://machine?ssh_config={bench['ssh_config']}")
