# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ZooKeeper ensemble: who belongs to it, its configuration, what its servers say of themselves. No I/O.

Sources: ZooKeeper 3.8 Administrator's Guide, sections "Configuration Parameters", "The Four Letter Words",
"Quorum Peer to Peer Authentication" and "Clustered (Multi-Server) Setup".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

LARGEST_ID = 255  # Administrator's Guide, "myid"
# The four-letter words of 3.8; those that change or stop a server are not among what may be allowed.
COMMANDS = (
    "conf",
    "cons",
    "dirs",
    "dump",
    "envi",
    "gtmk",
    "hash",
    "isro",
    "mntr",
    "ruok",
    "srvr",
    "stat",
    "wchs",
)
# Modes that a server with a quorum reports.
SERVING = ("leader", "follower", "observer", "standalone")
UNRESOLVED = "its name cannot be resolved"
NEEDED_COMMANDS = ("mntr", "srvr")
FEWEST_SNAPSHOTS = 3  # Administrator's Guide, "autopurge.snapRetainCount"
DATA = "version-2"  # name of the folder in which a server keeps its data
SMALLEST_HEAP = 64  # MiB; less does not hold a server

# Settings of zoo.cfg that have a variable of the role, which is therefore the one way to set them.
OWN = {
    "clientPort": "zookeeper_client_port",
    "clientPortAddress": "zookeeper_listen_address",
    "dataDir": "zookeeper_data_directory",
    "dataLogDir": "zookeeper_log_directory",
    "autopurge.snapRetainCount": "zookeeper_snapshots_kept",
    "autopurge.purgeInterval": "zookeeper_purge_interval",
    "4lw.commands.whitelist": "zookeeper_commands",
}
# Settings that only the role sets, because they control access.
FIXED = (
    "admin.enableServer",
    "admin.serverPort",
    "DigestAuthenticationProvider.superDigest",
    "dynamicConfigFile",
    "reconfigEnabled",
    "secureClientPort",
    "skipACL",
)
# Other settings of 3.8 (Administrator's Guide, "Configuration Parameters"), by name.
SETTINGS = frozenset(
    (
        *("tickTime", "initLimit", "syncLimit", "maxClientCnxns", "minSessionTimeout", "maxSessionTimeout"),
        *("globalOutstandingLimit", "preAllocSize", "snapCount", "commitLogCount", "snapSizeLimitInKb"),
        *("txnLogSizeLimitInKb", "maxCnxns", "jute.maxbuffer", "fsync.warningthresholdms", "syncEnabled"),
        *("connectToLearnerMasterLimit", "leaderServes", "cnxTimeout", "forceSync", "snapshot.trust.empty"),
        *(
            "electionPortBindRetry",
            "observer.reconnectDelayMs",
            "quorumListenOnAllIPs",
            "clientPortListenBacklog",
        ),
        *("tcpKeepAlive", "watchManagerName", "localSessionsEnabled", "localSessionsUpgradingEnabled"),
        *("metricsProvider.className", "metricsProvider.httpHost", "metricsProvider.httpPort"),
        *("metricsProvider.exportJvmInfo", "audit.enable", "extendedTypesEnabled", "ttlNodes"),
        *("enforce.quota", "digest.enabled", "serializeLastProcessedZxid.enabled"),
    )
)


class Server(NamedTuple):
    """One server of an ensemble: its number, its name in the inventory, and the address for the others."""

    id: int
    name: str
    address: str


class SettingsError(ValueError):
    """The settings cannot work; the text is one sentence for a user for each problem."""


def quorum(servers: int) -> int:
    """Return how many servers of an ensemble have to run."""
    return servers // 2 + 1


def ensemble(settings: Mapping[str, Any]) -> list[Server]:
    """Return the servers of an ensemble in the order of their numbers.

    Without a list they are the hosts of the play: those that have a number keep it, the others get the next
    ones.

    Args:
        settings: `servers`, each with `id`, `name` and possibly `address`; `hosts`, the addresses of the
            hosts of the play by their names; `ids`, the numbers that these machines have, 0 for none;
            `current`, the zoo.cfg of one of them, which knows the numbers of those that cannot be asked.
    """
    hosts = {name: address or name for name, address in settings["hosts"].items()}
    if settings["servers"]:
        found = [
            Server(int(one["id"]), one["name"], one.get("address") or hosts.get(one["name"]) or one["name"])
            for one in settings["servers"]
        ]
        return sorted(found)
    known = {address: number for number, address in configured_servers(settings["current"]).items()}
    ids = {name: int(settings["ids"].get(name) or known.get(address, 0)) for name, address in hosts.items()}
    free = (number for number in range(1, LARGEST_ID + 1) if number not in ids.values())
    return sorted(Server(ids[name] or next(free), name, address) for name, address in hosts.items())


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what settings come to.

    Args:
        settings: the role's variables without ``zookeeper_``; ``hosts``, the addresses of the hosts of the
            play by their names; ``ids``, the numbers that they have; ``current``, the ``zoo.cfg`` of one of
            them; ``found``, paths that are there of those of data.

    Returns:
        ``problems``, each a sentence, and ``configured``, addresses of the servers in ``current``; if there
        are no problems, ``servers``, each with ``id``, ``name`` and ``address``, ``quorum``, ``warning``,
        empty for none, ``configuration``, the text of ``zoo.cfg``, and ``left_out``, addresses of servers
        that it would drop.
    """
    wrong = list(_problems(settings))
    known = {"configured": list(configured_servers(settings["current"]).values())}
    if wrong:
        return {"problems": wrong, **known}
    servers = ensemble(settings)
    return {
        "problems": [],
        "servers": [server._asdict() for server in servers],
        "quorum": quorum(len(servers)),
        "warning": warning(len(servers)),
        "configuration": configuration(settings),
        "left_out": left_out(settings),
        **known,
    }


def warning(count: int) -> str:
    """Return what should be said about the number of servers; empty when it is fine."""
    if count % 2:
        return ""
    return (
        f"The ensemble has {count} servers, and an even number bears no more losses than one server"
        f" less: {quorum(count)} of {count} have to run, so {count - quorum(count)} may be lost, as with"
        f" {count - 1} servers. Take an odd number."
    )


def configuration(settings: Mapping[str, Any]) -> str:
    """Return the text of zoo.cfg."""
    servers = ensemble(settings)
    lines = {
        "tickTime": 2000,
        "initLimit": 10,
        "syncLimit": 5,
        **settings["settings"],
        "dataDir": settings["data_directory"],
        "clientPort": settings["client_port"],
        "autopurge.snapRetainCount": settings["snapshots_kept"],
        "autopurge.purgeInterval": settings["purge_interval"],
        "4lw.commands.whitelist": ", ".join(sorted(settings["commands"])),
        # Its default port, 8080, is that of Marathon and Chronos, and it asks nobody who they are.
        "admin.enableServer": "false",
    }
    if settings["log_directory"]:
        lines["dataLogDir"] = settings["log_directory"]
    if settings["listen_address"]:
        lines["clientPortAddress"] = settings["listen_address"]
    if len(servers) > 1:
        lines.update(
            {
                "quorum.auth.enableSasl": "true",
                "quorum.auth.learnerRequireSasl": "true",
                "quorum.auth.serverRequireSasl": "true",
                "quorum.auth.learner.saslLoginContext": "QuorumLearner",
                "quorum.auth.server.saslLoginContext": "QuorumServer",
                "quorum.cnxn.threads.size": 20,
            }
        )
    ports = f"{settings['follower_port']}:{settings['election_port']}"
    for server in servers:
        lines[f"server.{server.id}"] = f"{_bracketed(server.address)}:{ports}"
    return "# Written by gpufarm.cluster.zookeeper; changes are lost.\n" + "".join(
        f"{name}={_text(value)}\n" for name, value in lines.items()
    )


def configured_servers(text: str) -> dict[int, str]:
    """Return the servers that a zoo.cfg names: their addresses by their numbers."""
    found = re.findall(r"^server\.(\d+)\s*=\s*(\[[^]]+\]|[^:\s]+)", text, re.MULTILINE)
    return {int(number): address.strip("[]") for number, address in found}


def read_status(text: str) -> dict[str, Any]:
    """Return what a server says to `srvr`: `mode`, `version`, `connections`, `zxid`, `nodes`.

    The mode is `leader`, `follower`, `observer` or `standalone`; it is `electing` when the server runs and
    does not serve, and `unknown` when it does not tell.
    """
    if "not currently serving requests" in text:
        return {"mode": "electing", "version": "", "connections": 0, "zxid": "", "nodes": 0}
    lines = dict(re.findall(r"^([A-Z][A-Za-z ]+): (.*)$", text, re.MULTILINE))
    return {
        "mode": lines.get("Mode", "unknown").strip(),
        "version": lines.get("Zookeeper version", "").partition("-")[0].strip(),
        "connections": int(lines.get("Connections", "0")),
        "zxid": lines.get("Zxid", "").strip(),
        "nodes": int(lines.get("Node count", "0")),
    }


def place(address: str, port: int) -> tuple[str, int]:
    """Return host and port of an address that may have a port of its own."""
    given = re.fullmatch(r"(\[[^]]+\]|[^:]+):([0-9]+)", address)
    host, port = (given.group(1), int(given.group(2))) if given else (address, port)
    return host.strip("[]"), port


def client_problem(states: Sequence[Mapping[str, Any]]) -> str:
    """Return why a client cannot work with the servers that it is given; empty when it can.

    A server that is gone is no reason as long as another serves. A name that cannot be resolved is: the
    library of Mesos then takes none of the others.

    Args:
        states: what each server said, as `zookeeper_info` returns it.
    """
    unknown = [one["address"] for one in states if one["reason"] == UNRESOLVED]
    if unknown:
        return f"the name of {' and '.join(unknown)} cannot be resolved; correct it."
    # A server that refuses the command has answered at least.
    if not states or any(one["mode"] in (*SERVING, "unknown") for one in states):
        return ""
    said = [f"{one['address']} is {one['mode']}" for one in states]
    return f"{', '.join(said)}; check the addresses, and that the ensemble has a quorum."


def serving(modes: Sequence[str]) -> bool:
    """Whether an ensemble with these modes serves: somebody leads a quorum, or is alone."""
    if list(modes) == ["standalone"]:
        return True
    followers = [mode for mode in modes if mode in ("leader", "follower")]
    return modes.count("leader") == 1 and len(followers) >= quorum(len(modes))


def _problems(settings: Mapping[str, Any]) -> Iterator[str]:
    yield from _server_problems(settings)
    yield from _moved_problems(settings)
    for name in ("client_port", "follower_port", "election_port"):
        if not 1 <= int(settings[name]) <= 65535:
            yield f"zookeeper_{name} is {settings[name]}, and a port is a number from 1 to 65535."
    ports = [int(settings[name]) for name in ("client_port", "follower_port", "election_port")]
    if len(set(ports)) < len(ports):
        yield (
            f"The ports {', '.join(map(str, ports))} are not three different ones; each of the three has"
            " to have its own."
        )
    for name in ("data_directory", "log_directory"):
        path = settings[name]
        if (path or name == "data_directory") and not re.fullmatch(r"(/[\w.+@-]+)+", path):
            yield (
                f"zookeeper_{name} is '{path}', which is no plain absolute path; write one like"
                " /var/lib/zookeeper."
            )
        if re.match(r"/(tmp|var/tmp|run|dev/shm)(/|$)", path):
            yield f"zookeeper_{name} is {path}, which the system empties; choose a folder that stays."
    if int(settings["snapshots_kept"]) < FEWEST_SNAPSHOTS:
        yield (
            f"zookeeper_snapshots_kept is {settings['snapshots_kept']}, and ZooKeeper keeps"
            f" {FEWEST_SNAPSHOTS} at least; choose that or more."
        )
    if int(settings["purge_interval"]) < 1:
        yield (
            f"zookeeper_purge_interval is {settings['purge_interval']}, which never removes old"
            " snapshots, so that the disk fills; choose a number of hours."
        )
    if int(settings["heap_mb"]) < SMALLEST_HEAP:
        yield f"zookeeper_heap_mb is {settings['heap_mb']}, and a server needs {SMALLEST_HEAP} at least."
    for name in settings["commands"]:
        if name not in COMMANDS:
            yield (
                f"zookeeper_commands has '{name}', which may not be allowed; choose from"
                f" {', '.join(COMMANDS)}."
            )
    for name in NEEDED_COMMANDS:
        if name not in settings["commands"]:
            yield f"zookeeper_commands lacks {name}, by which this role sees how a server is; add it."
    yield from _setting_problems(settings["settings"])


def _server_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    listed = settings["servers"]
    for one in listed:
        if not isinstance(one, Mapping) or not {"id", "name"} <= set(one) <= {"id", "name", "address"}:
            yield (
                f"zookeeper_servers has {one!r}; each entry needs id and name, such as {{id: 1, name:"
                " zk1.example.org}, and may have address."
            )
            return
        if not re.fullmatch("[0-9]+", str(one["id"])) or not 1 <= int(one["id"]) <= LARGEST_ID:
            yield (
                f"The id of {one['name']} in zookeeper_servers is '{one['id']}'; choose a number from 1"
                f" to {LARGEST_ID}."
            )
            return
    servers = ensemble(settings)
    for what in ("id", "name", "address"):
        holders: dict[Any, list[str]] = {}
        for server in servers:
            holders.setdefault(getattr(server, what), []).append(server.name)
        for value, names in holders.items():
            if len(names) > 1:
                yield (
                    f"The {what} {value} belongs to {len(names)} servers of the ensemble"
                    f" ({', '.join(names)}); give each its own."
                )
    for server in servers:
        if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]+", server.address):
            yield (
                f"The address of {server.name} is '{server.address}', which is neither a host name nor"
                " an IP address."
            )
    by_name = {server.name: server for server in servers}
    for name in settings["hosts"]:
        has = int(settings["ids"].get(name, 0))
        if name not in by_name:
            yield f"{name} is not in zookeeper_servers; add it, or run the role on other machines."
        elif has not in (0, by_name[name].id):
            yield (
                f"{name} has the id {has} and should get {by_name[name].id}; a server never changes its"
                " id, so give it that one, or take its data away first."
            )


def _moved_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """A server with an empty folder gets all from a majority of others; one or two servers have none."""
    had = dict(re.findall(r"^(dataDir|dataLogDir)=(.*)$", settings["current"], re.MULTILINE))
    if "dataDir" not in had or len(configured_servers(settings["current"])) > 2:
        return
    data, log = settings["data_directory"], settings["log_directory"]
    for name, before, now in (
        ("zookeeper_data_directory", had["dataDir"], data),
        ("zookeeper_log_directory", had.get("dataLogDir", had["dataDir"]), log or data),
    ):
        if before != now and f"{now}/{DATA}" not in settings["found"]:
            yield (
                f"{name} would be {now}, and the data are in {before}, without which the server loses what"
                f" its clients keep there; stop zookeeper, move {before}/{DATA} to {now}, and run again."
            )


def _setting_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if name in OWN:
            yield f"zookeeper_settings has {name}; set {OWN[name]} in its place."
        elif name in FIXED or re.match(r"server\.|quorum\.auth\.|group\.|weight\.", name):
            yield f"zookeeper_settings has {name}, which this role decides; leave it out."
        elif name not in SETTINGS:
            near = get_close_matches(name, [*SETTINGS, *OWN], 1)
            hint = f"did you mean {near[0]}?" if near else "see the Administrator's Guide of ZooKeeper."
            yield f"zookeeper_settings has {name}, which ZooKeeper does not know; {hint}"
        elif isinstance(value, (dict, list)) or re.search(r"[\x00-\x1f\x7f]", _text(value)):
            yield f"zookeeper_settings.{name} is no plain value."


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def left_out(settings: Mapping[str, Any]) -> list[str]:
    """Return addresses of servers that a machine knows and that a list made of the play would drop."""
    if settings["servers"]:
        return []
    wanted = {server.id for server in ensemble(settings)}
    known = configured_servers(settings["current"])
    return [address for number, address in known.items() if number not in wanted]
