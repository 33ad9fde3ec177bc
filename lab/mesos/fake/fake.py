#!/usr/bin/python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mesos-master and mesos-agent, as far as roles and modules see them: options, sockets, election, registry,
drain.

They run no tasks. ../README.md tells the source of each behaviour.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import ssl
import sys
import threading
import time
import urllib.request
import uuid
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn
from urllib.error import URLError

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.security import ACL, Id

HERE = Path(__file__).resolve().parent
FORMS = {
    "bool": r"true|false|1|0",
    "int": r"-?[0-9]+",
    "uint": r"[0-9]+",
    "port": r"[0-9]+",
    "double": r"-?[0-9.]+",
    "duration": r"[0-9.]+(ns|us|ms|secs|mins|hrs|days|weeks)",
    "bytes": r"[0-9]+(B|KB|MB|GB|TB)",
}
MISSED = 10  # seconds after which an agent that is silent has gone; 75 in the real one
Answer = tuple[int, dict[str, str], str | bytes]  # status, headers, body


def end(message: str) -> NoReturn:
    sys.exit(f"{Path(sys.argv[0]).name}: {message}")


def options(program: str) -> dict[str, Any]:
    """Options of the environment, which may have unknown ones, and of the command line, which may not."""
    known = json.loads((HERE / f"{program}_flags.json").read_text())["flags"]
    found = {}
    for name, value in os.environ.items():
        if name.startswith("MESOS_") and name[6:].lower() in known:
            found[name[6:].lower()] = value
    for word in sys.argv[1:]:
        name, _equals, value = word.removeprefix("--").partition("=")
        if name.startswith("no-") and name[3:] in known:
            name, value = name[3:], "false"
        if name not in known:
            end(f"Failed to load unknown flag '{name}'")
        found[name] = value or "true"
    for name, value in found.items():
        form = FORMS.get(known[name]["type"])
        if form and not re.fullmatch(form, value):
            end(f"Failed to load flag '{name}': Failed to load value '{value}'")
        if known[name]["type"].startswith("json") and not value.startswith(("/", "file://", "{", "[")):
            end(f"Failed to load flag '{name}'")
    if not found.get("work_dir"):
        end("Flag 'work_dir' is required, but it was not provided")
    return {**{name: one.get("default") for name, one in known.items()}, **found}


def content(value: str) -> str:
    """A value, or what is in the file that it names."""
    if value and value.startswith(("file://", "/")):
        return Path(value.removeprefix("file://")).read_text().strip()
    return value


def zookeeper(url: str) -> tuple[Any, str, list[Any] | None]:
    """A session, and the path, of zk://user:password@host:port,.../path."""
    found = re.fullmatch(r"zk://(?:([^:@]+):([^@]+)@)?([^/]+)(/.+)", url)
    if not found:
        end(f"Failed to parse the ZooKeeper URL of {len(url)} letters")
    client = KazooClient(found[3], timeout=10)
    client.start(timeout=60)
    access = None
    if found[1]:
        client.add_auth("digest", f"{found[1]}:{found[2]}")
        # src/zookeeper/authentication.cpp, EVERYONE_READ_CREATOR_ALL
        access = [ACL(31, Id("auth", "")), ACL(1, Id("world", "anyone"))]
    return client, found[4], access


def context() -> ssl.SSLContext | None:
    if os.environ.get("LIBPROCESS_SSL_ENABLED") not in ("true", "1"):
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(os.environ["LIBPROCESS_SSL_CERT_FILE"], os.environ["LIBPROCESS_SSL_KEY_FILE"])
    return made


def trust() -> ssl.SSLContext | None:
    if os.environ.get("LIBPROCESS_SSL_ENABLED") not in ("true", "1"):
        return None
    return ssl.create_default_context(cafile=os.environ.get("LIBPROCESS_SSL_CA_FILE"))


class Program:
    """Common parts of both: options, accounts, an HTTP server."""

    name = ""
    scheme = "http"

    def __init__(self) -> None:
        self.options = options(self.name)
        self.port = int(self.options["port"])
        self.hostname = self.options["hostname"] or os.uname().nodename
        accounts = "credentials" if self.name == "master" else "http_credentials"
        self.accounts = {}
        if self.options[accounts]:
            for one in json.loads(content(self.options[accounts]))["credentials"]:
                self.accounts[one["principal"]] = one["secret"]
        elif self.options["authenticate_http_readwrite"] == "true":
            end("No credentials provided for the default 'basic' HTTP authenticator")
        program = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, more, text = program.handle(self.command, self.path, self.headers, body)
                data = text if isinstance(text, bytes) else text.encode()
                self.send_response(status)
                for key, value in more.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *words: Any) -> None:
                pass

        self.server = ThreadingHTTPServer((self.options["ip"] or "0.0.0.0", self.port), Handler)  # noqa: S104
        secure = context()
        if secure:
            self.scheme = "https"
            self.server.socket = secure.wrap_socket(self.server.socket, server_side=True)

    def allowed(self, headers: Message) -> bool:
        if self.options["authenticate_http_readwrite"] != "true":
            return True
        kind, _blank, pair = headers.get("Authorization", "").partition(" ")
        if kind != "Basic":
            return False
        user, _colon, password = base64.b64decode(pair).decode().partition(":")
        return self.accounts.get(user) == password

    def serve(self, method: str, place: str, body: bytes) -> Answer:
        raise NotImplementedError

    def handle(self, method: str, path: str, headers: Message, body: bytes) -> Answer:
        place = path.partition("?")[0].removeprefix(f"/{self.name}").removeprefix("/slave(1)")
        # open even with everything on (src/master/main.cpp, the endpoints without a realm)
        if place in ("/health", "/version"):
            return 200, {}, json.dumps({"version": "1.11.0"})
        if not self.allowed(headers):
            return 401, {"WWW-Authenticate": f'Basic realm="mesos-{self.name}-readonly"'}, ""
        return self.serve(method, place, body)

    def reply(self, kind: str, value: Any) -> Answer:
        return 200, {"Content-Type": "application/json"}, json.dumps({"type": kind, kind.lower(): value})

    def flags(self) -> dict[str, Any]:
        return {
            "flags": [
                {"name": name, "value": value} for name, value in self.options.items() if value is not None
            ]
        }


class Master(Program):
    """Takes part in the election; what it knows besides the agents that run is in ZooKeeper."""

    name = "master"

    def __init__(self) -> None:
        super().__init__()
        if not self.options["zk"] or not self.options["quorum"]:
            end("--zk and --quorum are required for a replicated log")
        self.agents: Any = None  # by their ids; None while another leads
        self.recovered = False  # whether this leader has read the replicated log
        self.lock = threading.Lock()
        self.zk, self.path, self.access = zookeeper(content(self.options["zk"]))
        self.zk.ensure_path(self.path, acl=self.access)
        try:
            first: dict[str, Any] = {name: {} for name in ("quotas", "weights", "drained", "agents")}
            first["unreachable"] = []
            self.zk.create(self.path + "/registry", json.dumps(first).encode(), acl=self.access)
        except NodeExistsError:
            pass
        self.me = {"hostname": self.hostname, "port": self.port, "version": "1.11.0", "id": str(uuid.uuid4())}
        self.me["address"] = {"hostname": self.hostname, "ip": self.hostname, "port": self.port}
        self.label: str | None = None
        self.join(None)
        self.zk.add_listener(lambda state: self.zk.handler.spawn(self.join, state))

    def join(self, state: str | None) -> None:
        """Be a member of the group: an ephemeral, numbered node (src/master/contender/zookeeper.cpp)."""
        if state in (None, "CONNECTED") and not (self.label and self.zk.exists(self.label)):
            data = json.dumps(self.me).encode()
            self.label = self.zk.create(
                self.path + "/json.info_", data, acl=self.access, ephemeral=True, sequence=True
            )

    def members(self) -> list[str]:
        """The nodes of the masters that are in the group, in the order in which they would lead."""
        return sorted(one for one in self.zk.get_children(self.path) if one.startswith("json.info_"))

    def leader(self) -> Any:
        """The member with the lowest number; None without ZooKeeper."""
        if not self.zk.connected:
            return None
        for name in self.members():
            try:
                return {**json.loads(self.zk.get(f"{self.path}/{name}")[0]), "node": f"{self.path}/{name}"}
            except Exception:  # noqa: S112  # it has gone meanwhile
                continue
        return None

    def registry(self) -> Any:
        return json.loads(self.zk.get(self.path + "/registry")[0])

    def change(self, **parts: Any) -> None:
        self.zk.set(self.path + "/registry", json.dumps({**self.registry(), **parts}).encode())

    def serve(self, method: str, place: str, body: bytes) -> Answer:
        leader = self.leader()
        leads = leader is not None and leader["node"] == self.label
        if not leads:
            with self.lock:
                self.agents, self.recovered = None, False
            if place == "/metrics/snapshot":
                return 200, {}, json.dumps({"master/elected": 0.0})
        if leader is None:
            return 503, {}, "No leader elected"
        base = f"//{leader['hostname']}:{leader['port']}"
        if place == "/redirect":
            return 307, {"Location": base}, ""
        if not leads:
            return 307, {"Location": f"{base}/master{place}"}, ""
        with self.lock:
            self.recovered = self.recovered or len(self.members()) >= int(self.options["quorum"])
            if not self.recovered and place != "/metrics/snapshot":
                return 503, {}, "Master has not finished recovery"
            return self.lead(place, json.loads(body or b"{}"))

    def recall(self, registry: dict[str, Any]) -> None:
        """Know the agents of the registry from the start, and forget those that are silent."""
        now = time.monotonic()
        if self.agents is None:
            self.agents = {
                key: {**one, "seen": now, "back": False} for key, one in registry["agents"].items()
            }
        gone = [key for key, one in self.agents.items() if one["seen"] <= now - MISSED]
        for key in gone:
            del self.agents[key]
            registry["agents"].pop(key, None)
        if gone:
            registry["unreachable"] = sorted({*registry["unreachable"], *gone})
            self.change(agents=registry["agents"], unreachable=registry["unreachable"])

    def registered(self) -> dict[str, Any]:
        return {key: one for key, one in self.agents.items() if one["back"]}

    def lead(self, place: str, call: dict[str, Any]) -> Answer:
        registry = self.registry()
        self.recall(registry)
        if place == "/metrics/snapshot":
            found = {"master/elected": 1.0, "registrar/log/recovered": 1.0}
            counts = {
                "master/slaves_connected": float(len(self.registered())),
                "master/slaves_unreachable": float(len(registry["unreachable"])),
            }
            return 200, {}, json.dumps({**found, **counts})
        if place == "/state":
            return (
                200,
                {},
                json.dumps({"cluster": self.options["cluster"], "slaves": list(self.registered())}),
            )
        if place == "/roles":
            names = sorted({*registry["quotas"], *registry["weights"]})
            quota = {"consumed": {"cpus": 0.0, "mem": 0.0, "disk": 0.0, "gpus": 0.0}}
            return 200, {}, json.dumps({"roles": [{"name": one, "quota": quota} for one in names]})
        if place == "/fake/register":
            return self.register(call, registry)
        if place != "/api/v1":
            return 404, {}, ""
        kind = call["type"]
        fields = call.get(kind.lower(), {})
        if kind == "GET_VERSION":
            return self.reply(kind, {"version_info": {"version": "1.11.0"}})
        if kind == "GET_FLAGS":
            return self.reply(kind, self.flags())
        if kind == "GET_AGENTS":
            agents = [self.agent(one, registry) for one in self.registered().values()]
            recovered = [self.agent_info(one) for one in self.agents.values() if not one["back"]]
            return self.reply(kind, {"agents": agents, "recovered_agents": recovered})
        if kind == "GET_QUOTA":
            return self.reply(kind, {"status": {"configs": list(registry["quotas"].values())}})
        if kind == "GET_WEIGHTS":
            infos = [{"role": role, "weight": weight} for role, weight in registry["weights"].items()]
            return self.reply(kind, {"weight_infos": infos} if infos else {})
        if kind == "UPDATE_QUOTA":
            new = {one["role"]: one for one in fields["quota_configs"]}
            self.change(quotas={**registry["quotas"], **new})
            return 200, {}, ""
        if kind == "UPDATE_WEIGHTS":
            new = {one["role"]: one["weight"] for one in fields["weight_infos"]}
            self.change(weights={**registry["weights"], **new})
            return 200, {}, ""
        if kind in ("DRAIN_AGENT", "DEACTIVATE_AGENT", "REACTIVATE_AGENT"):
            print(kind, fields["agent_id"]["value"], flush=True)
            return self.drain(kind, fields["agent_id"]["value"], registry["drained"])
        return 400, {}, f"Failed to validate master::Call: unknown {kind}"

    def drain(self, kind: str, number: str, drained: dict[str, str]) -> Answer:
        if number not in self.registered():
            return 400, {}, "Unknown agent"
        if kind == "REACTIVATE_AGENT" and number not in drained:
            return 400, {}, "Agent is not deactivated"
        drained.pop(number, None)
        if kind != "REACTIVATE_AGENT":
            drained[number] = kind
        self.change(drained=drained)
        return 200, {}, ""

    def register(self, call: dict[str, Any], registry: dict[str, Any]) -> Answer:
        if (
            self.options["authenticate_agents"] == "true"
            and self.accounts.get(call["principal"]) != call["secret"]
        ):
            return 401, {}, "authentication failed"
        told = {name: value for name, value in call.items() if name not in ("principal", "secret")}
        self.agents[call["id"]] = {**told, "seen": time.monotonic(), "back": True}
        if registry["agents"].get(call["id"]) != told:
            self.change(
                agents={**registry["agents"], call["id"]: told},
                unreachable=[one for one in registry["unreachable"] if one != call["id"]],
            )
        return 200, {}, ""

    def agent_info(self, one: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": {"value": one["id"]},
            "hostname": one["hostname"],
            "port": one["port"],
            "attributes": one["attributes"],
        }

    def agent(self, one: dict[str, Any], registry: dict[str, Any]) -> dict[str, Any]:
        kind = registry["drained"].get(one["id"])
        told = {
            "agent_info": self.agent_info(one),
            "active": kind is None,
            "deactivated": kind is not None,
            "total_resources": one["resources"],
            "allocated_resources": [],
        }
        # without tasks an agent is drained at once
        return {**told, "drain_info": {"state": "DRAINED"}} if kind == "DRAIN_AGENT" else told


class Agent(Program):
    """Registers with the leader, again and again."""

    name = "agent"

    def __init__(self) -> None:
        super().__init__()
        self.credential = {"principal": "", "secret": ""}
        if self.options["credential"]:
            self.credential = json.loads(content(self.options["credential"]))
        work = Path(self.options["work_dir"])
        info = {
            "hostname": self.hostname,
            "port": self.port,
            "resources": resources(self.options["resources"]),
            "attributes": [
                {"name": part.partition(":")[0], "type": "TEXT", "text": {"value": part.partition(":")[2]}}
                for part in filter(None, (self.options["attributes"] or "").split(";"))
            ],
        }
        latest = work / "meta" / "slaves" / "latest"
        if latest.is_file():
            old = json.loads(latest.read_text())
            if not additive(old, info):
                end("EXIT with status 1: Failed to perform recovery: Configuration change not permitted")
            self.info = {**info, "id": old["id"]}
        else:
            self.info = {**info, "id": f"{uuid.uuid4()}-S0"}
            latest.parent.mkdir(parents=True, exist_ok=True)
            latest.write_text(json.dumps(self.info))
        self.zk, self.path, _access = zookeeper(content(self.options["master"]))
        threading.Thread(target=self.register, daemon=True).start()

    def register(self) -> None:
        while True:
            try:
                names = sorted(one for one in self.zk.get_children(self.path) if one.startswith("json.info_"))
                leader = json.loads(self.zk.get(f"{self.path}/{names[0]}")[0])
                pair = f"{self.credential['principal']}:{self.credential['secret']}".encode()
                request = urllib.request.Request(  # noqa: S310
                    f"{self.scheme}://{leader['hostname']}:{leader['port']}/master/fake/register",
                    json.dumps({**self.info, **self.credential}).encode(),
                    {"Authorization": f"Basic {base64.b64encode(pair).decode()}"},
                )
                opener = urllib.request.build_opener(
                    urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust())
                )
                opener.open(request, timeout=3).read()
            except (URLError, OSError, IndexError) as error:
                print(f"not registered: {error}", file=sys.stderr, flush=True)
            except Exception as error:  # ZooKeeper without a quorum: once more
                print(f"no leader: {type(error).__name__}", file=sys.stderr, flush=True)
            time.sleep(1)

    def serve(self, method: str, place: str, body: bytes) -> Answer:
        if place == "/state":
            return 200, {}, json.dumps({"id": self.info["id"], "hostname": self.hostname})
        kind = json.loads(body or b"{}").get("type", "")
        if place == "/api/v1" and kind == "GET_FLAGS":
            return self.reply(kind, self.flags())
        return 404, {}, ""


def resources(text: str | None) -> list[dict[str, Any]]:
    found = []
    for part in filter(None, (text or "").split(";")):
        name, colon, value = part.partition(":")
        if not colon:
            end(f"Failed to parse resources: missing or extra ':' in {part}")
        if not value.startswith("["):
            found.append({"name": name, "type": "SCALAR", "scalar": {"value": float(value)}})
    return found


def additive(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether an agent may come back changed: more, never less (docs/agent-recovery.md)."""
    had = {one["name"]: one["scalar"]["value"] for one in old["resources"]}
    has = {one["name"]: one["scalar"]["value"] for one in new["resources"]}
    return old["hostname"] == new["hostname"] and all(
        has.get(name, 0) >= value for name, value in had.items()
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
    os.umask(0o077)
    running = Master() if "master" in Path(sys.argv[0]).name else Agent()
    running.server.serve_forever()
