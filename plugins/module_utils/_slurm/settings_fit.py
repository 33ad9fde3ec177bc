# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of the settings of the role slurm_controller by themselves. No I/O."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from . import configuration, tokens

ROLE = "slurm_controller"
# MySQL and paths have it in lower case (slurm.conf(5), "ClusterName").
CLUSTER_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]*")
OPTION = re.compile(r"[A-Za-z]\w*")
VALUE = re.compile(r"[^\s#\\\"'=][^\s#\\\"']*")
# Where the package keeps the state, on each controller's own disk.
LOCAL_STATE = "/var/lib/slurm/slurmctld"
# Keys of a partition that become options.
PARTITION = ("PartitionName", "Nodes", "Default", "DefaultTime", "MaxTime")


def problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield why settings cannot work; they are those of `controller.plan`."""
    name = settings["cluster_name"]
    if not CLUSTER_NAME.fullmatch(name):
        yield (
            f"{ROLE}_cluster_name is {name!r}; give a lower-case letter, and up to 39 lower-case letters,"
            " digits, hyphens and underscores."
        )
    yield from _of_names(settings, "hosts", "controllers")
    yield from _of_names(settings, "nodes", "members")
    yield from _of_state(settings["state_directory"], len(settings["controllers"]))
    if not 0 < settings["port"] < 65536:
        yield f"{ROLE}_port is {settings['port']}, which is no port; give a number from 1 to 65535."
    yield from tokens.problems(f"{ROLE}_token_hours", settings["token_hours"])
    host = settings["accounting_host"]
    if host and not ADDRESS.fullmatch(host):
        yield (
            f"{ROLE}_accounting_host is {host!r}; give the name or address of the machine with slurmdbd, or"
            " leave it empty."
        )
    own = {**configuration.OWN, **(tokens.OWN if settings["tokens"] else {})}
    yield from _of_options(f"{ROLE}_settings", settings["settings"], own)
    yield from _of_partitions(settings["partitions"], settings["members"])


def _of_names(settings: Mapping[str, Any], variable: str, found: str) -> Iterator[str]:
    wanted, known = settings[variable], settings[found]
    if len(known) < len(wanted):
        yield (
            f"{ROLE}_{variable} names {', '.join(wanted)}, and the inventory has only"
            f" {', '.join(known) or 'others'} of them; give names or addresses that it has."
        )
    elif not known:
        yield f"{ROLE}_{variable} names no machine; name those of the cluster."
    twice = [name for name, count in Counter(known).items() if count > 1]
    if twice:
        yield f"{ROLE}_{variable} names {', '.join(twice)} twice; name each machine once."
    for name in known:
        address = settings["addresses"][name]
        if not ADDRESS.fullmatch(address):
            yield f"{address!r}, the address of {name}, is none of a host; set ansible_host."


def _of_state(folder: str, controllers: int) -> Iterator[str]:
    if not re.fullmatch(r"(/[\w.-]+)+", folder) or ".." in folder.split("/"):
        yield f"{ROLE}_state_directory is {folder!r}; give a plain absolute path."
    elif controllers > 1 and folder == LOCAL_STATE:
        yield (
            f"Several controllers share their state, and {ROLE}_state_directory is {folder}, which each has"
            " on its own disk; give a folder of a file system that all of them mount."
        )


def _of_options(where: str, given: Mapping[str, Any], own: Mapping[str, str]) -> Iterator[str]:
    """Yield why options cannot be written; `own` has the options that the role sets, with their variables."""
    known = {name.lower(): name for name in own}
    for name, value in given.items():
        if not OPTION.fullmatch(str(name)):
            yield f"{where} has {name!r}, which is no name of an option; see slurm.conf(5)."
        elif str(name).lower() in known:
            variable = own[known[str(name).lower()]]
            hint = f"set {ROLE}_{variable}" if variable else "leave it out"
            yield f"{where} has {name}, which the role sets itself; {hint}."
        elif not VALUE.fullmatch(str(value)):
            yield (
                f"{where} has {str(value)!r} for {name}; give one value without spaces, quotes, backslashes"
                " and #."
            )


def _of_partitions(wanted: list[Mapping[str, Any]], members: list[str]) -> Iterator[str]:
    variable = f"{ROLE}_partitions"
    if not wanted:
        yield f"{variable} is empty, so no job could be queued; name a partition."
    for one in wanted:
        yield from _of_partition(one, members)
    for name, count in Counter(one["name"] for one in wanted).items():
        if count > 1:
            yield f"{variable} has {name} twice; give each partition a name of its own."
    if sum(bool(one.get("default")) for one in wanted) > 1:
        yield f"{variable} has several partitions with default; keep one."


def _of_partition(wanted: Mapping[str, Any], members: list[str]) -> Iterator[str]:
    name, variable = wanted["name"], f"{ROLE}_partitions"
    where = f"Partition {name} of {variable}"
    if not re.fullmatch(r"[A-Za-z][\w.-]*", name) or name.upper() in ("ALL", "DEFAULT"):
        yield (
            f"{variable} has {name!r}, which is no name of a partition; give a letter, and letters, digits,"
            " hyphens, dots and underscores."
        )
    strange = [each for each in wanted.get("nodes") or [] if each not in members]
    if strange:
        yield f"{where} has {', '.join(strange)}, which {ROLE}_nodes does not name; add it there."
    for key in ("default_time", "max_time"):
        text = str(wanted.get(key) or "")
        if text and not configuration.is_time(text):
            yield f"{where} has {key} {text!r}; give minutes, DAYS-HOURS:MINUTES:SECONDS, or UNLIMITED."
    yield from _of_options(where, wanted.get("options") or {}, dict.fromkeys(PARTITION, "partitions"))
