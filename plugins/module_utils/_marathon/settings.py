# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment variables and problems that result from the settings of the role marathon.
No I/O.

Sources: mesosphere/marathon, releases/1.11: docs/command-line-flags.md,
docs/ssl-basic-access-authentication.md (MESOSPHERE_*), docs/multi-role.md (new_group_enforce_role),
docs/gpu.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .._framework import plan as shared
from .._framework.flags import CREDENTIALS, is_secret, problems, words
from .._framework.settings import lines
from .flags import FLAGS

# Options that variables of the role set, or that it sets itself.
OWN = {
    **shared.own("marathon"),
    "enable_features": "marathon_gpus or marathon_features",
    "gpu_scheduling_behavior": "marathon_gpu_scheduling",
    "mesos_authentication": "marathon_mesos_principal",
    "mesos_authentication_secret": "marathon_mesos_secret",
    "new_group_enforce_role": "marathon_enforce_group_role",
    "zk": "marathon_zookeeper",
}
SECRETS = "/etc/marathon/secrets"
FEATURES = ("external_volumes", "gpu_resources", "secrets", "task_killing", "vips")


def _state_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    if not re.fullmatch(r"zk://([^@/\s]+@)?[^@/\s]+(/[\w.-]+)+", settings["zookeeper"]):
        yield (
            "marathon_zookeeper is '{}'; give the address of its state, such as"
            " zk://zk1:2181,zk2:2181,zk3:2181/marathon.".format(
                CREDENTIALS.sub("//...@", settings["zookeeper"])
            )
        )


def _option_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    for feature in settings["features"]:
        if feature not in FEATURES or feature == "gpu_resources":
            yield "marathon_features has '{}'; there are {}, and marathon_gpus sets gpu_resources.".format(
                feature,
                ", ".join(one for one in FEATURES if one != "gpu_resources"),
            )
    yield from problems(FLAGS, settings["flags"], "marathon_flags", OWN)
    for name in settings["flags"]:
        # The environment has capitals only, and Marathon leaves out what begins with MARATHON_APP_.
        if name != name.lower() or name.startswith("app_"):
            yield (
                f"marathon_flags sets {name}, which Marathon does not take from the environment; leave it"
                " out."
            )


def flags(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options that the settings come to."""
    features = list(settings["features"]) + (["gpu_resources"] if settings["gpus"] else [])
    found: dict[str, Any] = {
        **shared.flags(settings, SECRETS),
        "zk": settings["zookeeper"],
        "gpu_scheduling_behavior": settings["gpu_scheduling"],
        "new_group_enforce_role": "top" if settings["enforce_group_role"] else "off",
    }
    if features:
        found["enable_features"] = sorted(features)
    if settings["mesos_principal"]:
        found["mesos_authentication"] = True
    return found


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what settings come to.

    Args:
        settings: the role's variables without ``marathon_``, and ``host``, the name of the machine.

    Returns:
        ``problems``, each a sentence; if there are none, ``environment`` and ``secret_environment``, the
        texts of files of variables, the second for what nobody else may read, ``unwanted`` paths,
        and ``ensembles``, servers of ZooKeeper.
    """
    found = list(shared.problems("marathon", settings, _state_problems(settings), _option_problems(settings)))
    if found:
        return {"problems": found}
    wanted = flags(settings)
    plain = {name: value for name, value in wanted.items() if not is_secret(name, value)}
    secret = {name: value for name, value in wanted.items() if name not in plain}
    variables = {"JAVA_OPTS": settings["jvm_options"], **shared.variables(settings, SECRETS)}
    if settings["java_home"]:
        variables["JAVA_HOME"] = settings["java_home"]
    return {
        **shared.plan("/etc/marathon", settings),
        "environment": lines({**_environment(plain), **variables}),
        "secret_environment": lines(_environment(secret)),
    }


def _environment(wanted: Mapping[str, Any]) -> dict[str, str]:
    return {"MARATHON_" + name.upper(): value or "" for name, value in words(FLAGS, wanted)}
