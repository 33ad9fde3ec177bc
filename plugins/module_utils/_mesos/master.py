# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan and problems that result from the settings of the role mesos_master. No I/O.

Source: Mesos documentation, "Operational Guide", "Changing the master quorum".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .options import acl_problems, common_problems, environment, problems, rendered, tls, unwanted
from .quota import RequestError, plan_weights, read_request

FOLDER = "/etc/mesos-master"
SECRETS = FOLDER + "/secrets"
# Options that have a variable of the role, or that the role decides.
OWN = {
    "acls": "mesos_master_acls",
    "cluster": "mesos_master_cluster",
    "credentials": "mesos_master_principals",
    "hostname": "mesos_master_hostname",
    "ip": "mesos_master_ip",
    "port": "mesos_master_port",
    "quorum": "mesos_master_masters, whose number decides it,",
    "weights": "mesos_master_weights",
    "work_dir": "mesos_master_work_directory",
    "zk": "mesos_master_zookeeper",
}
DEFAULTS: dict[str, Any] = {
    "authenticate_agents": True,
    "authenticate_frameworks": True,
    "authenticate_http_frameworks": True,
    "authenticate_http_readonly": True,
    "authenticate_http_readwrite": True,
    "http_framework_authenticators": "basic",
    # scarce: a user with one GPU is not to wait for everybody who has CPUs only
    "fair_sharing_excluded_resource_names": "gpus",
    "hostname_lookup": False,
    "root_submissions": True,
}
NEEDED_PRINCIPALS = ("agent", "operator")


def quorum(masters: int) -> int:
    """Return how many masters have to run: floor(n/2) + 1 (documentation, "High Availability")."""
    return masters // 2 + 1


def warning(masters: int) -> str:
    """Return what should be said about the number of masters; empty when it is fine."""
    if masters % 2:
        return ""
    return (
        f"There are {masters} masters, and an even number bears no more losses than one less:"
        f" {quorum(masters)} of {masters} have to run, so {masters - quorum(masters)} may be lost, as"
        f" with {masters - 1}. Take an odd number."
    )


def grows(settings: Mapping[str, Any]) -> bool:
    """Return whether masters that have a log get a larger quorum."""
    return any(0 < before < quorum(len(settings["masters"])) for before in settings["before"].values())


def _growth_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """A log grows only while those that have it are a majority of the masters that there will be."""
    having = sorted(name for name, before in settings["before"].items() if before)
    if not grows(settings) or len(having) >= quorum(len(settings["masters"])):
        return
    if len(having) == 1:
        yield (
            f"{having[0]} was the only master, and the log of one master cannot grow: with others it would"
            f" never have a majority again. To begin anew, without its agents, quotas and maintenance, stop"
            f" mesos-master there, move {settings['work_directory']}/replicated_log away, and run again."
        )
    else:
        yield (
            f"mesos_master_masters are {len(settings['masters'])}, and {', '.join(having)} alone have the"
            f" log, which are too few for a majority; have {2 * len(having) - 1} masters at most in this run,"
            " and more in the next one."
        )


def _problems(settings: Mapping[str, Any]) -> Iterator[str]:
    yield from common_problems("master", settings)
    yield from _growth_problems(settings)
    if settings["log_elsewhere"]:
        yield (
            f"mesos_master_work_directory is {settings['work_directory']}, and the log of {settings['host']}"
            f" is {settings['log_elsewhere']}, without which it begins anew; stop mesos-master, move the log"
            " there, and run again."
        )
    masters = settings["masters"]
    for name in sorted({name for name in masters if masters.count(name) > 1}):
        yield f"mesos_master_masters has {name} twice; each master counts once."
    if settings["host"] not in masters:
        yield (
            f"{settings['host']} is not in mesos_master_masters; add it, or run the role on other machines."
        )
    for name in NEEDED_PRINCIPALS:
        if name not in settings["principals"]:
            use = "agents register as" if name == "agent" else "this role asks the masters as"
            yield f"mesos_master_principals lacks {name}, which {use}."
    for name in settings["principals"]:
        if not re.fullmatch("[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            yield f"mesos_master_principals has '{name}', which is no plain name."
    if not re.fullmatch(r"[\w .+-]*", settings["cluster"]):
        yield f"mesos_master_cluster is '{settings['cluster']}'; use letters, digits, blanks and .+- only."
    yield from acl_problems(settings["acls"])
    yield from problems("master", settings["build"], settings["flags"], OWN)
    for name in ("authenticate_agents", "authenticate_frameworks", "authenticate_http_readwrite"):
        if settings["flags"].get(name) is False:
            yield f"mesos_master_flags.{name} is false, which lets anybody in; leave it out."
    try:
        read_request(settings["quotas"])
    except RequestError as error:
        yield str(error)
    except (AttributeError, KeyError, TypeError):
        yield "mesos_master_quotas has an entry that is no map with role, and guarantees or limits."
    try:
        plan_weights({}, settings["weights"])
    except RequestError as error:
        yield str(error)


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what settings come to.

    Args:
        settings: the role's variables without ``mesos_master_``; ``host``, the name of the machine;
            ``before``, the quorums of masters that have a log, by their names, 0 for the others;
            ``log_elsewhere``, path of a log that would be left behind, empty for none.

    Returns:
        ``problems``, each a sentence; if there are none, ``environment``, ``options``, ``files`` and
        ``secret_files`` by name, ``unwanted`` paths, ``quorum``, ``grows`` and ``warning``.
    """
    wrong = list(_problems(settings))
    if wrong:
        return {"problems": wrong}
    count = len(settings["masters"])
    options = {
        **DEFAULTS,
        **settings["flags"],
        "acls": settings["acls"] or None,
        "cluster": settings["cluster"] or None,
        "credentials": f"{SECRETS}/credentials.json",
        "hostname": settings["hostname"],
        "ip": settings["ip"] or None,
        "port": settings["port"],
        "quorum": quorum(count),
        "work_dir": settings["work_directory"],
        "zk": f"file://{SECRETS}/zk",
    }
    found = rendered("master", settings["build"], options, FOLDER)
    certificate = tls(settings, f"{FOLDER}/tls.pem", f"{SECRETS}/tls.key", f"{FOLDER}/ca.pem")
    return {
        "problems": [],
        "environment": environment(found.texts, certificate),
        "options": found.texts,
        "files": found.files,
        "secret_files": found.secret_files,
        "unwanted": unwanted("master", FOLDER, found, settings),
        "quorum": quorum(count),
        "grows": grows(settings),
        "warning": warning(count),
    }
