# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and problems that result from the settings of the role chronos. No I/O.

Chronos reads no options from the environment, and what is on its command line everybody can see. The library
that it reads options with takes them from a file as well, which is named with an @ in front and split at
blanks.

Sources: mesos/chronos at 3.0.2, docs/docs/configuration.md; rogach/scallop, Scallop.scala, "read options from
a file"; mesosphere/chaos, HttpConf.scala (MESOSPHERE_*).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .._framework import plan as shared
from .._framework.flags import Flags, is_secret, merged, problems, words
from .._framework.settings import lines
from .flags import FLAGS, GPU_PATCH

# Options that variables of the role set, or that it sets itself.
OWN = {
    **shared.own("chronos"),
    "enable_features": "chronos_gpus",
    "mesos_framework_name": "chronos_name",
    "user": "chronos_job_user",
    "zk_auth": "chronos_zookeeper_login",
    "zk_hosts": "chronos_zookeeper",
    "zk_path": "chronos_name",
}
MAIN = "org.apache.mesos.chronos.scheduler.Main"


def known_flags(gpus: bool) -> Flags:
    """Return the options of a build, with or without the patch for GPUs."""
    return merged(FLAGS, GPU_PATCH) if gpus else FLAGS


def _name_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    # It is the name of an account, a unit and a node of ZooKeeper as well.
    if not re.fullmatch(r"chronos(-[a-z0-9][a-z0-9-]{0,22})?", settings["name"]):
        yield (
            "chronos_name is '{}'; give chronos, or chronos- and a name of lower case letters, digits and '-'"
            " for the instance of a user.".format(settings["name"])
        )


def _state_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    if not re.fullmatch(r"[\w.-]+:[0-9]+(,[\w.-]+:[0-9]+)*", settings["zookeeper"]):
        yield (
            "chronos_zookeeper is '{}'; give HOST:PORT of each server with commas between them.".format(
                settings["zookeeper"]
            )
        )
    login = settings["zookeeper_login"]
    if login and not re.fullmatch(r"[^\s:]+:\S+", login):
        yield "chronos_zookeeper_login is not USER:PASSWORD without blanks; correct it."


def _option_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,31}", settings["job_user"]):
        yield "chronos_job_user is '{}'; give an account that the agents have.".format(settings["job_user"])
    known = known_flags(settings["gpus"])
    patch = GPU_PATCH.by_name().keys() - OWN.keys()
    for name in sorted(patch & settings["flags"].keys() - known.by_name().keys()):
        yield (
            f"chronos_flags sets {name}, which only builds with the patch for GPUs know; set chronos_gpus if"
            " yours is one."
        )
    others = {
        name: value for name, value in settings["flags"].items() if name not in patch or settings["gpus"]
    }
    yield from problems(known, others, "chronos_flags", OWN)
    for name, value in settings["flags"].items():
        if isinstance(value, str) and re.search(r"\s", value):
            yield (
                f"chronos_flags sets {name} to {value!r}; Chronos' file of options cannot carry blanks, leave"
                " them out."
            )


def flags(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options that the settings come to."""
    found: dict[str, Any] = {
        **shared.flags(settings, _secrets(settings)),
        "zk_hosts": settings["zookeeper"],
        "zk_path": "/{}/state".format(settings["name"]),
        "mesos_framework_name": settings["name"],
        "user": settings["job_user"],
    }
    if settings["gpus"]:
        found["enable_features"] = ["gpu_resources"]
    if settings["zookeeper_login"]:
        found["zk_auth"] = settings["zookeeper_login"]
    return found


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what settings come to.

    Args:
        settings: the role's variables without ``chronos_``, and ``host``, the name of the machine.

    Returns:
        ``problems``, each a sentence; if there are none, ``options``, the text of the file of options,
        ``secret``, whether it must not be shown, ``environment``, the text of a file of variables,
        ``command``, the words that start Chronos, ``unwanted`` paths,
        and ``ensembles``, servers of ZooKeeper.
    """
    states, options = _state_problems(settings), _option_problems(settings)
    found = [*_name_problems(settings), *shared.problems("chronos", settings, states, options)]
    if found:
        return {"problems": found}
    wanted = flags(settings)
    rows = words(known_flags(settings["gpus"]), wanted)
    secrets = _secrets(settings)
    image = settings["source"] == "image"
    java = settings["java_home"] + "/bin/java" if settings["java_home"] and not image else "java"
    jar = settings["image_jar"] if image else "/opt/chronos/chronos-{}.jar".format(settings["version"])
    return {
        **shared.plan("/etc/{}".format(settings["name"]), settings),
        "options": "".join(
            "--{}{}\n".format(name, "" if value is None else " " + value) for name, value in rows
        ),
        "secret": any(is_secret(name, value) for name, value in wanted.items()),
        "environment": lines(shared.variables(settings, secrets)),
        "command": [java, *settings["jvm_options"].split(), "-cp", jar, MAIN, f"@{secrets}/options"],
    }


def _secrets(settings: Mapping[str, Any]) -> str:
    return "/etc/{}/secrets".format(settings["name"])
