# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes that Marathon's apps request by their labels, checked one by one. No I/O.

The labels are those of marathon-lb (github.com/mesosphere/marathon-lb, Longhelp.md, "Other Labels"). Other
forms than those below are refused, so that a label can only become a name, a path, a number or a word in
HAProxy's configuration.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

LABEL = re.compile(r"HAPROXY_([0-9]{1,3})_([A-Z_]+)")
# Marathon, "Application Groups": parts of an id have lower case letters, digits, dashes and dots.
APP_ID = re.compile(r"(/[a-z0-9]([a-z0-9.-]*[a-z0-9])?)+")
# RFC 1123, 2.1.
HOST = re.compile(r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
# RFC 3986, 3.3, without what quotes, separates or ends words in HAProxy's configuration.
PATH = re.compile(r"/[A-Za-z0-9._~+,;=:@/-]{0,200}")
CHECK_PATH = re.compile(r"/[A-Za-z0-9._~+,;=:@/?&%-]{0,500}")
# HAProxy, "Configuration Manual", section 4.2, `balance`: those without arguments.
# RFC 8615; with a file there an authority gives a certificate for the name (RFC 8555, 8.3).
WELL_KNOWN = "/.well-known/"
BALANCE = ("roundrobin", "leastconn", "source", "first", "static-rr")
TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0", "")
UNDERSTOOD = (
    "GROUP",
    "ENABLED",
    "VHOST",
    "PATH",
    "HTTP_BACKEND_PROXYPASS_PATH",
    "MODE",
    "PORT",
    "SSL_CERT",
    "BALANCE",
    "STICKY",
    "USE_HSTS",
    "REDIRECT_TO_HTTPS",
)


@dataclass(frozen=True)
class Settings:
    """Settings of the administrator of the gateway.

    Attributes:
        groups: names in the label HAPROXY_GROUP that are served.
        host: name of the gateway, for apps that have a path and no name of their own.
        ports: first and last of the ports that apps may have at the gateway.
    """

    groups: tuple[str, ...]
    host: str
    ports: tuple[int, int]


@dataclass(frozen=True, order=True)
class Server:
    """A task: a name or an address, and its port."""

    host: str
    port: int


@dataclass(frozen=True)
class Check:
    """How HAProxy asks a task whether it is well.

    Attributes:
        path: asked for with GET; empty to see only whether the port is open.
        interval: seconds between two questions.
    """

    path: str = ""
    interval: int = 5


@dataclass(frozen=True)
class Route:
    """Route of one port of an app.

    Attributes:
        app: id of the app.
        index: of the port, as in its labels.
        places: for HTTPS: names with the path behind them, such as ``example.org/plots/``.
        port: of its own at the gateway; 0 without one.
        mode: ``http`` or ``tcp``.
        tls: whether the port of its own has TLS.
        balance: how tasks are chosen.
        sticky: whether a browser stays with its task.
        hsts: whether browsers are told to come by HTTPS only.
        strip: path that the app does not get to see; empty for none.
        check: how tasks are asked.
        servers: the tasks, sorted.
    """

    app: str
    index: int
    places: tuple[str, ...] = ()
    port: int = 0
    mode: str = "http"
    tls: bool = False
    balance: str = "roundrobin"
    sticky: bool = False
    hsts: bool = False
    strip: str = ""
    check: Check = Check()
    servers: tuple[Server, ...] = ()

    @property
    def name(self) -> str:
        """Of the backend. Ids have no underscore, so no two are alike."""
        return f"{self.app.strip('/').replace('/', '_')}_{self.index}"

    @property
    def claims(self) -> tuple[str, ...]:
        """Claims of the route that no other route can have."""
        return (*self.places, f"port {self.port}") if self.port else self.places


@dataclass
class Checked:
    """The outcome for all apps.

    Attributes:
        routes: what can be served.
        problems: sentences by app, each naming what is refused and why.
        notes: sentences by app about labels that have no effect.
    """

    routes: list[Route] = field(default_factory=list)
    problems: dict[str, list[str]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)


class Refused(Exception):
    """A label that cannot be followed; the text says why."""


def check_apps(apps: Iterable[Mapping[str, Any]], settings: Settings) -> Checked:
    """Read the labels of all apps. Problems of an app do not affect the others.

    Args:
        apps: as GET /v2/apps?embed=apps.tasks answers.
        settings: of the gateway.

    Returns:
        Routes and problems. Routes may still claim the same; `claims.settle` decides.
    """
    found = Checked()
    seen: set[str] = set()
    for app in apps:
        app_id = str(app.get("id") or "?")
        try:
            if not APP_ID.fullmatch(app_id):
                raise Refused("its id is not one that Marathon allows")
            if app_id in seen:
                raise Refused("Marathon tells of it twice")
            seen.add(app_id)
            indices = list(_indices(app, settings))
        except (Refused, TypeError, ValueError, AttributeError, KeyError) as error:
            if _speaks_of_us(app):
                found.problems.setdefault(app_id, []).append(_sentence(app_id, None, error))
            continue
        for index in indices:
            try:
                found.routes.append(_route(app, index, settings))
            except (Refused, TypeError, ValueError, AttributeError, KeyError) as error:
                found.problems.setdefault(app_id, []).append(_sentence(app_id, index, error))
        if indices:
            ignored = sorted(_ignored(app["labels"]))
            if ignored:
                text = f"{app_id}: {' and '.join(ignored)} has no effect at this gateway."
                found.notes.setdefault(app_id, []).append(text)
    return found


def _sentence(app_id: str, index: int | None, error: Exception) -> str:
    why = (
        str(error)
        if isinstance(error, Refused)
        else f"Marathon describes it in a way not understood ({error})"
    )
    where = "" if index is None else f", port {index}"
    return f"{app_id[:200]}{where} is not served: {why}."


def _speaks_of_us(app: Mapping[str, Any]) -> bool:
    labels = app.get("labels")
    return isinstance(labels, Mapping) and any(str(name).startswith("HAPROXY_") for name in labels)


def _indices(app: Mapping[str, Any], settings: Settings) -> Iterator[int]:
    """The ports of an app that this gateway serves."""
    labels = _labels(app)
    count = _ports(app)
    named = {int(match[1]) for match in map(LABEL.fullmatch, labels) if match}
    for index in sorted(named | set(range(count))):
        groups = labels.get(f"HAPROXY_{index}_GROUP", labels.get("HAPROXY_GROUP", ""))
        if not set(re.split(r"[\s,]+", groups)) & set(settings.groups):
            continue
        if not _switch(labels, index, "ENABLED", default=True):
            continue
        if index >= count:
            raise Refused(f"a label names port {index}, and it has {count} port(s), counted from 0")
        yield index


def _labels(app: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value).strip() for name, value in (app.get("labels") or {}).items()}


def _ignored(labels: Mapping[str, Any]) -> Iterator[str]:
    for name in labels:
        match = LABEL.fullmatch(str(name))
        known = match[2] in UNDERSTOOD if match else name == "HAPROXY_GROUP"
        if str(name).startswith("HAPROXY_") and not known:
            # The name is somebody's text as well: only a decent one is repeated.
            yield str(name) if re.fullmatch(r"[A-Z0-9_]{1,60}", str(name)) else "a label with an odd name"


def _mappings(app: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Port mappings of a container with a network of its own; None on the host's network."""
    container = app.get("container") or {}
    docker = container.get("docker") or {}
    mappings = container.get("portMappings") or docker.get("portMappings")
    networks = app.get("networks") or []
    host = any(network.get("mode") == "host" for network in networks) or docker.get("network") == "HOST"
    return list(mappings) if mappings and not host else None


def _ports(app: Mapping[str, Any]) -> int:
    mappings = _mappings(app)
    if mappings is not None:
        return len(mappings)
    return len(app.get("portDefinitions") or app.get("ports") or [])


def _switch(labels: Mapping[str, str], index: int, name: str, *, default: bool) -> bool:
    text = labels.get(f"HAPROXY_{index}_{name}")
    if text is None:
        return default
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise Refused(f"HAPROXY_{index}_{name} is neither true nor false")


def _word(labels: Mapping[str, str], index: int, name: str, allowed: tuple[str, ...], default: str) -> str:
    text = labels.get(f"HAPROXY_{index}_{name}", default).lower()
    if text not in allowed:
        raise Refused(f"HAPROXY_{index}_{name} is none of {', '.join(allowed)}")
    return text


def _path(labels: Mapping[str, str], index: int, name: str) -> str:
    """A path without a slash at its end; empty for none."""
    text = labels.get(f"HAPROXY_{index}_{name}", "")
    if text and not PATH.fullmatch(text):
        raise Refused(f"HAPROXY_{index}_{name} is not a path such as /plots")
    if any(part in (".", "..") for part in text.split("/")):
        raise Refused(f"HAPROXY_{index}_{name} has a part that is a dot or two")
    return text.rstrip("/")


def _hosts(labels: Mapping[str, str], index: int, settings: Settings) -> tuple[str, ...]:
    text = labels.get(f"HAPROXY_{index}_VHOST", "").lower()
    hosts = tuple(dict.fromkeys(re.split(r"\s*,\s*", text))) if text else ()
    for host in hosts:
        if not HOST.fullmatch(host):
            raise Refused(f"HAPROXY_{index}_VHOST is not a host name, or several with commas between them")
        if host == settings.host and not labels.get(f"HAPROXY_{index}_PATH", "").strip("/"):
            raise Refused(f"the gateway's own name belongs to all; HAPROXY_{index}_PATH must go with it")
    return hosts


def _route(app: Mapping[str, Any], index: int, settings: Settings) -> Route:
    labels = _labels(app)
    hosts, path = _hosts(labels, index, settings), _path(labels, index, "PATH")
    if path and not hosts:
        hosts = (settings.host,)
    if settings.host in hosts and f"{path}/".startswith(WELL_KNOWN):
        raise Refused(
            f"HAPROXY_{index}_PATH is below /.well-known, which speaks for all of the gateway's name"
        )
    if not _switch(labels, index, "REDIRECT_TO_HTTPS", default=True):
        raise Refused(
            f"HAPROXY_{index}_REDIRECT_TO_HTTPS is false, and this gateway serves names by HTTPS only"
        )
    mode = _word(labels, index, "MODE", ("http", "tcp"), "http" if hosts else "tcp")
    if hosts and mode == "tcp":
        raise Refused(f"HAPROXY_{index}_MODE is tcp, and names and paths exist in http only")
    sticky = _switch(labels, index, "STICKY", default=False)
    if sticky and mode == "tcp":
        raise Refused(f"HAPROXY_{index}_STICKY needs cookies, which exist in mode http only")
    strip = _path(labels, index, "HTTP_BACKEND_PROXYPASS_PATH")
    if strip and mode == "tcp":
        raise Refused(f"HAPROXY_{index}_HTTP_BACKEND_PROXYPASS_PATH exists in mode http only")
    return Route(
        app=app["id"],
        index=index,
        places=tuple(f"{host}{path}/" for host in hosts),
        port=0 if hosts else _own_port(app, index, labels, settings),
        mode=mode,
        tls=labels.get(f"HAPROXY_{index}_SSL_CERT", "") != "",
        balance=_word(labels, index, "BALANCE", BALANCE, "roundrobin"),
        sticky=sticky,
        hsts=_switch(labels, index, "USE_HSTS", default=False),
        strip=strip,
        check=_check(app, index, mode),
        servers=tuple(sorted(set(_servers(app, index)))),
    )


def _own_port(app: Mapping[str, Any], index: int, labels: Mapping[str, str], settings: Settings) -> int:
    """The port at the gateway of a route without a name: that of the label, or Marathon's service port."""
    text = labels.get(f"HAPROXY_{index}_PORT", "")
    if text and not re.fullmatch(r"[1-9][0-9]{0,4}", text):
        raise Refused(f"HAPROXY_{index}_PORT is not a port")
    mappings = _mappings(app)
    if text:
        port = int(text)
    elif mappings is not None:
        port = int(mappings[index].get("servicePort") or 0)
    elif app.get("portDefinitions"):
        port = int(app["portDefinitions"][index].get("port") or 0)
    else:
        port = int(app["ports"][index])
    first, last = settings.ports
    if not first <= port <= last:
        raise Refused(
            f"it has neither HAPROXY_{index}_VHOST nor HAPROXY_{index}_PATH, and its service port {port} is "
            f"not among those of the gateway ({first} to {last})"
        )
    return port


def _check(app: Mapping[str, Any], index: int, mode: str) -> Check:
    """HAProxy's own check after the app's health check of this port: quicker than Marathon hears of it."""
    for health in app.get("healthChecks") or []:
        if health.get("portIndex", 0) != index or health.get("port"):
            continue
        interval = min(max(int(health.get("intervalSeconds") or 5), 2), 10)
        path = str(health.get("path") or "/")
        plain = mode == "http" and health.get("protocol", "HTTP") in ("HTTP", "MESOS_HTTP")
        return Check(path if plain and CHECK_PATH.fullmatch(path) else "", interval)
    return Check()


def _servers(app: Mapping[str, Any], index: int) -> Iterator[Server]:
    """The tasks that requests are to go to.

    Those that run; without those whose health checks fail. Where some are known to be well, one that was not
    yet found well has to wait: it has just been started.
    """
    running = [task for task in app.get("tasks") or [] if task.get("state", "TASK_RUNNING") == "TASK_RUNNING"]
    if app.get("healthChecks"):
        verdicts = {task["id"]: _well(task, len(app["healthChecks"])) for task in running}
        running = [task for task in running if verdicts[task["id"]] is not False]
        if any(verdicts[task["id"]] for task in running):
            running = [task for task in running if verdicts[task["id"]]]
    for task in running:
        server = _server(app, task, index)
        if server:
            yield server


def _well(task: Mapping[str, Any], checks: int) -> bool | None:
    """Whether a task is well: yes, no, or not known yet."""
    results = [result for result in task.get("healthCheckResults") or [] if result]
    if any(result.get("alive") is False for result in results):
        return False
    return True if len(results) >= checks else None


def _server(app: Mapping[str, Any], task: Mapping[str, Any], index: int) -> Server | None:
    mappings = _mappings(app)
    ports = task.get("ports") or []
    modes = {network.get("mode") for network in app.get("networks") or []}
    if mappings is not None and "container" in modes and mappings[index].get("hostPort") is None:
        addresses = [entry.get("ipAddress") for entry in task.get("ipAddresses") or []]
        host, port = str(next(filter(None, addresses), "")), int(mappings[index].get("containerPort") or 0)
    elif index < len(ports):
        host, port = str(task.get("host") or ""), int(ports[index])
    else:
        return None
    return Server(host.lower(), port) if _is_host(host.lower()) and 0 < port < 65536 else None


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return HOST.fullmatch(text) is not None
    return True
