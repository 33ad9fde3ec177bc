# SPDX-License-Identifier: GPL-3.0-or-later
"""Posts callbacks, to nothing but the hosts that the operator allows."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from gpufarm.serve.fields import https
from gpufarm.serve.settings import Settings

# Seconds that a host has for its answer.
PATIENCE = 10.0


class Poster:
    """Posts to the hosts of some settings."""

    def __init__(self, settings: Settings) -> None:
        """Prepare.

        Args:
            settings: with the hosts.
        """
        self._hosts = settings.callback_hosts
        self._private = settings.callback_private
        context = ssl.create_default_context(cafile=settings.callback_ca_file)
        self._client = httpx.Client(verify=context, timeout=PATIENCE, follow_redirects=False, trust_env=False)

    def post(self, url: str, body: Mapping[str, Any]) -> tuple[str, bool]:
        """Post a message.

        Args:
            url: where to.
            body: the object.

        Returns:
            Why it failed, empty if it did not; and whether another attempt would fail, too.
        """
        host = (urlsplit(url).hostname or "") if https(url) else ""
        if host not in self._hosts:
            return "its host is not allowed; add it to callbacks of the settings", True
        try:
            address = self._address(host, urlsplit(url).port or 443)
        except OSError as error:
            return f"{host} has no address: {error.strerror or error}", False
        if address is None:
            return f"{host} has a private address; add it to private in callbacks of the settings", True
        target = httpx.URL(url).copy_with(host=address)
        try:
            # to the address that was checked, whatever the name means by now; the certificate is the name's
            with self._client.stream(
                "POST",
                target,
                json=dict(body),
                headers={"Host": httpx.URL(url).netloc.decode()},
                extensions={"sni_hostname": host},
            ) as answer:
                status = answer.status_code
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return f"{host} does not answer: {error}", False
        if 200 <= status < 300:
            return "", False
        return f"{host} answers with status {status}", 300 <= status < 500 and status != 429

    def _address(self, host: str, port: int) -> str | None:
        """The address to connect to; None if one of the host's addresses is private and may not be."""
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        if host not in self._private and not all(map(_is_public, found)):
            return None
        return found[0]


def _is_public(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        parsed = parsed.ipv4_mapped or parsed.sixtofour or parsed
    return parsed.is_global and not parsed.is_multicast
