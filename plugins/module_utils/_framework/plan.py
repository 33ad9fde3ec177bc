# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Common parts of the plans of all frameworks: options, environment variables, problems. No I/O.

Settings are the variables of a role without its name, and ``host``, the name of the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._mesos.options import framework_tls
from .settings import (
    address_problems,
    certificate_problems,
    duplicate_problems,
    ensembles,
    environment_problems,
    jvm_problems,
    mesos_login_problems,
    mesos_tls_problems,
    source_problems,
    unwanted,
)

# Options that variables of a role set, or that it sets itself.
OWN = {
    "disable_http": "tls",
    "hostname": "hostname",
    "http_address": "listen_address",
    "http_port": "port",
    "https_address": "listen_address",
    "https_port": "port",
    "master": "mesos_master",
    "mesos_authentication_principal": "mesos_principal",
    "mesos_authentication_secret_file": "mesos_secret",
    "mesos_role": "mesos_role",
    "ssl_keystore_password": "tls",
    "ssl_keystore_path": "tls",
}


def own(role: str) -> dict[str, str]:
    """Return the variables of a role by the options that they set."""
    found = {option: f"{role}_{variable}" for option, variable in OWN.items()}
    return {**found, "http_credentials": f"{role}_http_user and {role}_http_password"}


def problems(
    role: str, settings: Mapping[str, Any], state: Iterable[str], others: Iterable[str]
) -> Iterator[str]:
    """Yield all that is wrong with settings, each a sentence."""
    yield from source_problems(role, settings)
    yield from address_problems(role, settings)
    yield from state
    yield from duplicate_problems(role, settings)
    yield from certificate_problems(role, settings)
    yield from mesos_login_problems(role, settings)
    yield from mesos_tls_problems(role, settings)
    yield from others
    yield from environment_problems(role, settings["environment"])
    yield from jvm_problems(role, settings)


def flags(settings: Mapping[str, Any], secrets: str) -> dict[str, Any]:
    """Return the options that settings come to, with files in the folder of the secrets."""
    found: dict[str, Any] = {
        **settings["flags"],
        "master": settings["mesos_master"],
        "hostname": settings["host"],
        "mesos_role": settings["mesos_role"],
        ("https_port" if settings["tls"] else "http_port"): int(settings["port"]),
    }
    if settings["listen_address"]:
        found["https_address" if settings["tls"] else "http_address"] = settings["listen_address"]
    if settings["tls"]:
        found.update(disable_http=True, ssl_keystore_path=secrets + "/keystore.p12")
    if settings["mesos_principal"]:
        found.update(
            mesos_authentication_principal=settings["mesos_principal"],
            mesos_authentication_secret_file=secrets + "/mesos_secret",
        )
    return found


def variables(settings: Mapping[str, Any], secrets: str) -> dict[str, Any]:
    """Return the variables of the environment, with files in the folder of the secrets."""
    found = {**framework_tls(settings, secrets), **settings["environment"]}
    if settings["libmesos"]:
        found["MESOS_NATIVE_JAVA_LIBRARY"] = settings["libmesos"]
    return found


def plan(folder: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what all plans have; the folder is that of the configuration."""
    return {"problems": [], "ensembles": ensembles(settings), "unwanted": unwanted(folder, settings)}
