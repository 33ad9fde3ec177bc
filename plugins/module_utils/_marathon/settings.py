# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the settings of the role marathon come to: variables of the environment, and what is wrong with them.
No I/O.

Sources: mesosphere/marathon, releases/1.11: docs/command-line-flags.md,
docs/ssl-basic-access-authentication.md (MESOSPHERE_*), docs/multi-role.md (new_group_enforce_role),
docs/gpu.md.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping

from .._framework.flags import CREDENTIALS, is_secret, problems, words
from .._framework.settings import (
    address_problems,
    certificate_problems,
    duplicate_problems,
    ensembles,
    environment_problems,
    jvm_problems,
    lines,
    mesos_login_problems,
    mesos_tls_problems,
    source_problems,
    unwanted,
)
from .._mesos.options import framework_tls
from .flags import FLAGS

# Options that variables of the role set, or that it sets itself.
OWN = {
    "enable_features": "marathon_gpus or marathon_features",
    "gpu_scheduling_behavior": "marathon_gpu_scheduling",
    "hostname": "marathon_hostname",
    "http_address": "marathon_listen_address",
    "https_address": "marathon_listen_address",
    "http_credentials": "marathon_http_user and marathon_http_password",
    "http_port": "marathon_port",
    "https_port": "marathon_port",
    "disable_http": "marathon_tls",
    "master": "marathon_mesos_master",
    "mesos_authentication": "marathon_mesos_principal",
    "mesos_authentication_principal": "marathon_mesos_principal",
    "mesos_authentication_secret": "marathon_mesos_secret",
    "mesos_authentication_secret_file": "marathon_mesos_secret",
    "mesos_role": "marathon_mesos_role",
    "new_group_enforce_role": "marathon_enforce_group_role",
    "ssl_keystore_password": "marathon_tls",
    "ssl_keystore_path": "marathon_tls",
    "zk": "marathon_zookeeper",
}
SECRETS = "/etc/marathon/secrets"
FEATURES = ("external_volumes", "gpu_resources", "secrets", "task_killing", "vips")


def settings_problems(settings: Mapping[str, Any]) -> List[str]:
    """Return all that is wrong with settings, each a sentence.

    Args:
        settings: the role's variables without ``marathon_``.
    """
    return list(_problems(settings))


def _problems(settings: Mapping[str, Any]) -> Iterator[str]:
    yield from source_problems("marathon", settings)
    yield from address_problems("marathon", settings)
    if not re.fullmatch(r"zk://([^@/\s]+@)?[^@/\s]+(/[\w.-]+)+", settings["zookeeper"]):
        yield (
            "marathon_zookeeper is '%s'; give the address of its state, such as"
            " zk://zk1:2181,zk2:2181,zk3:2181/marathon." % CREDENTIALS.sub("//...@", settings["zookeeper"])
        )
    yield from duplicate_problems("marathon", settings)
    yield from certificate_problems("marathon", settings)
    yield from mesos_login_problems("marathon", settings)
    yield from mesos_tls_problems("marathon", settings)
    for feature in settings["features"]:
        if feature not in FEATURES or feature == "gpu_resources":
            yield "marathon_features has '%s'; there are %s, and marathon_gpus sets gpu_resources." % (
                feature,
                ", ".join(one for one in FEATURES if one != "gpu_resources"),
            )
    yield from problems(FLAGS, settings["flags"], "marathon_flags", OWN)
    for name in settings["flags"]:
        # The environment has capitals only, and Marathon leaves out what begins with MARATHON_APP_.
        if name != name.lower() or name.startswith("app_"):
            yield (
                "marathon_flags sets %s, which Marathon does not take from the environment; leave it out."
                % name
            )
    yield from environment_problems("marathon", settings["environment"])
    yield from jvm_problems("marathon", settings)


def flags(settings: Mapping[str, Any]) -> Dict[str, Any]:
    """Return all options that the settings come to."""
    features = list(settings["features"]) + (["gpu_resources"] if settings["gpus"] else [])
    found: Dict[str, Any] = {
        **settings["flags"],
        "master": settings["mesos_master"],
        "zk": settings["zookeeper"],
        "hostname": settings["host"],
        "mesos_role": settings["mesos_role"],
        "gpu_scheduling_behavior": settings["gpu_scheduling"],
        "new_group_enforce_role": "top" if settings["enforce_group_role"] else "off",
        ("https_port" if settings["tls"] else "http_port"): int(settings["port"]),
    }
    if features:
        found["enable_features"] = sorted(features)
    if settings["listen_address"]:
        found["https_address" if settings["tls"] else "http_address"] = settings["listen_address"]
    if settings["tls"]:
        found.update(disable_http=True, ssl_keystore_path=SECRETS + "/keystore.p12")
    if settings["mesos_principal"]:
        found.update(
            mesos_authentication=True,
            mesos_authentication_principal=settings["mesos_principal"],
            mesos_authentication_secret_file=SECRETS + "/mesos_secret",
        )
    return found


def plan(settings: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what settings come to.

    Args:
        settings: the role's variables without ``marathon_``, and ``host``, the name of the machine.

    Returns:
        ``problems``, each a sentence; if there are none, ``environment`` and ``secret_environment``, the
        texts of files of variables, the second for what nobody else may read, ``unwanted`` paths,
        and ``ensembles``, servers of ZooKeeper.
    """
    found = settings_problems(settings)
    if found:
        return {"problems": found}
    wanted = flags(settings)
    plain = {name: value for name, value in wanted.items() if not is_secret(name, value)}
    secret = {name: value for name, value in wanted.items() if name not in plain}
    variables = {
        "JAVA_OPTS": settings["jvm_options"],
        **framework_tls(settings, SECRETS),
        **settings["environment"],
    }
    if settings["java_home"]:
        variables["JAVA_HOME"] = settings["java_home"]
    if settings["libmesos"]:
        variables["MESOS_NATIVE_JAVA_LIBRARY"] = settings["libmesos"]
    return {
        "problems": [],
        "environment": lines({**_environment(plain), **variables}),
        "secret_environment": lines(_environment(secret)),
        "ensembles": ensembles(settings),
        "unwanted": unwanted("/etc/marathon", settings),
    }


def _environment(wanted: Mapping[str, Any]) -> Dict[str, str]:
    return {"MARATHON_" + name.upper(): value or "" for name, value in words(FLAGS, wanted)}
