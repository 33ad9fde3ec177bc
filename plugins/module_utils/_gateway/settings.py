# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the role app_gateway. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

# RFC 1123, 2.1; an address is one as well.
HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?|[0-9a-f:]+")
GROUP = re.compile(r"[A-Za-z0-9._-]+")
ACCOUNT = re.compile(r"[^\s:]+")
PORTS = re.compile(r"([1-9][0-9]{0,4})-([1-9][0-9]{0,4})")
# Ports below are for services that belong to root.
LOWEST = 1024


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``problems``, everything that is wrong with settings, one sentence each.

    Args:
        settings: the role's variables without ``app_gateway_``.
    """
    return {"problems": [*_marathon(settings), *_apps(settings), *_ports(settings), *_certificate(settings)]}


def _marathon(settings: Mapping[str, Any]) -> Iterator[str]:
    urls = settings["marathon_urls"]
    if not urls:
        yield "app_gateway_marathon_urls is empty; give the URL of each server, such as https://master1:8443."
    for url in urls:
        if not _is_server(url):
            yield f"app_gateway_marathon_urls has {url}, not a URL such as https://master1:8443; correct it."
    if len({urlsplit(url).scheme for url in urls if _is_server(url)}) > 1:
        yield "app_gateway_marathon_urls has some with and some without TLS; give all of them alike."
    user = settings["marathon_user"]
    if user and not ACCOUNT.fullmatch(user):
        yield "app_gateway_marathon_user has a space or a colon, which no account has; correct it."
    if user and any(urlsplit(url).scheme == "http" for url in urls if _is_server(url)):
        yield (
            "app_gateway_marathon_user is given, and app_gateway_marathon_urls has a URL without TLS, so the "
            "password could be read on the way; use https."
        )


def _is_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and (parts.port or 1) > 0
            and parts.path in ("", "/")
            and not (parts.query or parts.fragment or parts.username)
            and not re.search(r"\s", url)
        )
    except ValueError:
        return False


def _apps(settings: Mapping[str, Any]) -> Iterator[str]:
    if not settings["groups"]:
        yield "app_gateway_groups is empty, so no app would be served; name one, such as external."
    for group in settings["groups"]:
        if not GROUP.fullmatch(group):
            yield f"app_gateway_groups has {group!r}; use letters, digits, dots, dashes and underscores only."
    if not HOST.fullmatch(settings["public_host"].lower()):
        yield f"app_gateway_public_host is {settings['public_host']!r}, no name of a machine; correct it."


def _ports(settings: Mapping[str, Any]) -> Iterator[str]:
    https, http = settings["https_port"], settings["http_port"]
    if not 1 <= https <= 65535:
        yield f"app_gateway_https_port is {https}; choose a port from 1 to 65535."
    if not 0 <= http <= 65535:
        yield f"app_gateway_http_port is {http}; choose a port up to 65535, or 0 for none."
    if https == http:
        yield f"app_gateway_https_port and app_gateway_http_port are both {https}; choose two ports."
    match = PORTS.fullmatch(settings["service_ports"])
    first, last = map(int, match.groups()) if match else (0, 0)
    if not LOWEST <= first <= last <= 65535:
        yield (
            f"app_gateway_service_ports is {settings['service_ports']!r}; give two ports from {LOWEST} to "
            "65535, such as 10000-20000."
        )
    for name, port in (("https_port", https), ("http_port", http)):
        if match and first <= port <= last:
            yield f"app_gateway_{name} ({port}) is among app_gateway_service_ports; keep them apart."
    if not 100 <= settings["max_connections"] <= 500_000:
        yield f"app_gateway_max_connections is {settings['max_connections']}; choose 100 to 500000."


def _certificate(settings: Mapping[str, Any]) -> Iterator[str]:
    files = (settings["certificate_file"], settings["certificate_key_file"])
    if settings["certificate_type"] == "provided" and not all(files):
        yield (
            "app_gateway_certificate_type is provided, so app_gateway_certificate_file and "
            "app_gateway_certificate_key_file must both be given."
        )
