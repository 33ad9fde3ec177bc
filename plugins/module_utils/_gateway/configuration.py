# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what HAProxy reads, of routes that were checked. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from .routes import Route, Server


def place_map(routes: Iterable[Route]) -> str:
    """Write the map from names and paths to backends (HAProxy, section 7.3.1, ``map_beg``).

    Args:
        routes: those that are served.

    Returns:
        One line for each place. HAProxy takes the longest that a request begins with; the slash at the end
        keeps ``/plots`` from being the beginning of ``/plots2``.
    """
    lines = sorted(f"{place} {route.name}" for route in routes for place in route.places)
    return "".join(f"{line}\n" for line in lines)


def backends(routes: Iterable[Route], addresses: Mapping[str, str], certificate: str, listen: str) -> str:
    """Write the backends, and a frontend for each port.

    Args:
        routes: those that are served.
        addresses: of each host of a task; tasks of hosts without one are left out.
        certificate: file of the gateway's certificate and key, for ports with TLS.
        listen: what stands before and after a port in ``bind``, with ``{port}`` for the port.

    Returns:
        A part of HAProxy's configuration.
    """
    return "\n".join(
        "".join(f"{line}\n" for line in part)
        for route in routes
        for part in (*_frontend(route, certificate, listen), _backend(route, addresses))
    )


def _frontend(route: Route, certificate: str, listen: str) -> list[list[str]]:
    if not route.port:
        return []
    tls = f" ssl crt {certificate}" if route.tls else ""
    alpn = " alpn h2,http/1.1" if route.tls and route.mode == "http" else ""
    lines = [
        f"frontend port_{route.port}",
        f"    bind {listen.format(port=route.port)}{tls}{alpn}",
        f"    mode {route.mode}",
    ]
    if route.mode == "http":
        lines += [
            "    option idle-close-on-response",
            "    option forwardfor",
            # As in the role's haproxy.cfg.
            "    http-request del-header X-Forwarded- -m beg",
            "    http-request del-header X-Real-IP",
            "    http-request del-header X-Scheme",
            "    http-request del-header Forwarded",
            f"    http-request set-header X-Forwarded-Proto {'https' if route.tls else 'http'}",
        ]
    else:
        lines.append('    log-format "%ci %b %s %tsc %Tt"')
    return [[*lines, f"    default_backend {route.name}"]]


def _backend(route: Route, addresses: Mapping[str, str]) -> list[str]:
    lines = [f"backend {route.name}", f"    mode {route.mode}", f"    balance {route.balance}"]
    if route.mode == "http":
        # A request that may have had an effect is not sent a second time; one that reached nobody is.
        lines += [
            "    retry-on conn-failure empty-response",
            "    http-request disable-l7-retry unless METH_GET",
        ]
    if route.sticky:
        safe = " secure" if route.places or route.tls else ""
        # Apps below one name share its cookies, so each has one of its own.
        lines.append(f"    cookie gpufarm_task_{_digest(route.name)} insert indirect nocache httponly{safe}")
    if route.hsts:
        lines.append('    http-response set-header Strict-Transport-Security "max-age=15768000"')
    if route.strip:
        lines += _stripped(route.strip)
    if route.check.path:
        lines += ["    option httpchk", f"    http-check send meth GET uri {route.check.path}"]
        if route.places:
            lines[-1] += f" ver HTTP/1.1 hdr Host {route.places[0].partition('/')[0]}"
    lines.append(f"    default-server check inter {route.check.interval}s fall 3 rise 1")
    known = [server for server in route.servers if server.host in addresses]
    return lines + [_server(route, server, addresses[server.host]) for server in known]


def _stripped(path: str) -> list[str]:
    """The app sees what is behind the path, as marathon-lb does it."""
    pattern = path.replace(".", "[.]").replace("+", "[+]")
    return [
        f"    http-request replace-path ^{pattern}(/.*)?$ \\1 if {{ path -m beg {path}/ }}",
        f"    http-request set-path / if {{ path {path} }}",
    ]


def _server(route: Route, server: Server, address: str) -> str:
    place = f"[{address}]:{server.port}" if ":" in address else f"{address}:{server.port}"
    name = f"{server.host}:{server.port}"
    # The cookie tells nobody outside how machines are called.
    cookie = f" cookie {_digest(name)}" if route.sticky else ""
    return f"    server {name} {place}{cookie}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
