# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the role paas_service, and the settings file of the deployer as a service. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# RFC 1123, 2.1; an address is one as well.
HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?|[0-9a-f:]+")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# A line of known_hosts (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT) without a marker.
HOST_KEY = re.compile(r"[^\s@#]\S* [a-z0-9@.-]+ [A-Za-z0-9+/]+=*( [^\n]*)?")
# A worker needs some 100 MiB of memory, and each run a process of Ansible beside.
WORKERS = 64
OWN = ("pgpass",)
EXAMPLES = {
    "issuers": "[{issuer: https://iam.example.org/}]",
    "templates": "{notebooks: {template: ml_infn}}",
    "pool": "{all: {hosts: {gpu1: {ansible_host: 10.0.0.1}}}}",
}


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings.

    Args:
        settings: the role's variables without ``paas_service_``, with the public host.

    Returns:
        ``problems``, everything that is wrong, one sentence each; and ``serve``, the settings file's content.
    """
    return {"problems": [*_address(settings), *_pool(settings), *_files(settings)], "serve": _serve(settings)}


def _address(settings: Mapping[str, Any]) -> Iterator[str]:
    host = settings["public_host"]
    if not HOST.fullmatch(host):
        yield f"paas_service_public_host is {host!r}, no name of a machine in lower case; correct it."
    for name in ("https_port", "server_port"):
        if not 1 <= settings[name] <= 65535:
            yield f"paas_service_{name} is {settings[name]}; choose a port from 1 to 65535."
    if settings["server_port"] < 1024:
        yield f"paas_service_server_port is {settings['server_port']}; choose 1024 or more."
    if settings["https_port"] == settings["server_port"]:
        yield "paas_service_https_port and paas_service_server_port are the same; choose two ports."
    files = (settings["certificate_file"], settings["certificate_key_file"])
    if settings["certificate_type"] == "provided" and not all(files):
        yield (
            "paas_service_certificate_type is provided, so paas_service_certificate_file and "
            "paas_service_certificate_key_file must both be given."
        )


def _pool(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, example in EXAMPLES.items():
        if not settings[name]:
            yield f"paas_service_{name} is empty, so nobody could deploy anything; give some, as {example}."
    for line in settings["known_hosts"]:
        if not HOST_KEY.fullmatch(line):
            yield f"paas_service_known_hosts has {line[:60]!r}; write HOST TYPE KEY."
    if not 1 <= settings["workers"] <= WORKERS:
        yield f"paas_service_workers is {settings['workers']}; choose 1 to {WORKERS}."
    database = settings["database"]
    if database and not database.startswith("postgresql+psycopg://"):
        yield "paas_service_database does not begin with postgresql+psycopg://; correct it, or leave it out."
    if re.match(r"[^/]*//[^/@]*:[^/]*@", database):
        yield "paas_service_database has a password in it; give that in paas_service_database_password."


def _files(settings: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("files", "secrets"):
        for name, content in settings[kind].items():
            if not NAME.fullmatch(name):
                yield f"paas_service_{kind} has the name {name[:60]!r}; use letters, digits and ._- only."
            elif name in OWN:
                yield f"paas_service_{kind} has {name}, which the role writes; choose another name."
            if not isinstance(content, str):
                yield f"paas_service_{kind} has no text for {name[:60]!r}; give the content of the file."


def _serve(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings file; docs/serve.md describes it, and the deployer checks what is handed through."""
    host, port = settings["public_host"], settings["https_port"]
    place = f"[{host}]" if ":" in host else host
    found = {
        "url": f"https://{place}" + (f":{port}" if port != 443 else ""),
        "folder": "/var/lib/gpufarm-serve",
        "database": settings["database"],
        "listen": {
            "port": settings["server_port"],
            "metrics_from": ["127.0.0.1", "::1", *settings["metrics_from"]],
        },
        "deployer": {
            "state": "/var/lib/gpufarm-serve-worker/state",
            "pool": "pool.yml",
            **({"vault_password_file": "worker/vault_password"} if settings["vault_password"] else {}),
        },
        "issuers": settings["issuers"],
        "templates": settings["templates"],
        "quotas": settings["quotas"],
        "callbacks": settings["callbacks"],
        "limits": settings["limits"],
        "configuration": settings["services"],
        "pages": settings["pages"],
        "keep_days": settings["keep_days"],
        "hours_minutes": settings["hours_minutes"],
    }
    return {name: value for name, value in found.items() if value not in ("", {})}
