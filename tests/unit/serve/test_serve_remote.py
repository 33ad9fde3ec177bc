# SPDX-License-Identifier: GPL-3.0-or-later
"""The command as a client: with a real server behind TLS, and with servers that mean it no good."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from click.testing import CliRunner, Result
from doubles.issuer import certificate
from gpufarm import connection, remote
from gpufarm.cli import main
from gpufarm.errors import GpufarmError
from gpufarm.serve.runs import Ending
from gpufarm.serve.tables import Console, Deployment, Source, Use
from hypothesis import given
from hypothesis import strategies as st
from serve_site import Site

OUTPUTS = {"text": "hello", "node_ip": "192.0.2.1", "list": ["a &amp; b"]}
RESOURCES = [
    {
        "node": "server",
        "type": "tosca.nodes.Compute",
        "state": "STARTED",
        "host": "gpu1",
        "metadata": {"VirtualMachineInfo": "{}"},
    }
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PAUSE", 0.02)


class Client:
    """The command with the settings of a user."""

    def __init__(self, url: str, ca_file: Path, token: str) -> None:
        self.url = url
        self.environment = {"GPUFARM_SERVER": url, "GPUFARM_CA_FILE": str(ca_file), "GPUFARM_TOKEN": token}

    def run(self, *arguments: str | Path, **environment: str) -> Result:
        given = self.environment | environment
        found = CliRunner().invoke(main, [str(one) for one in arguments], env=given, prog_name="gpufarm")
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        return found

    def refused(self, *arguments: str | Path, **environment: str) -> str:
        found = self.run(*arguments, **environment)
        assert found.exit_code, found.output
        (line,) = found.stderr.splitlines()
        return line


@pytest.fixture
def ann(paas: Site, tmp_path: Path) -> Iterator[Client]:
    """A user in front of a server with TLS, behind which a worker does all at once."""
    public, private = certificate(tmp_path / "tls")
    server = uvicorn.Server(
        uvicorn.Config(
            paas.app, port=0, ssl_certfile=public, ssl_keyfile=private, log_level="critical", lifespan="off"
        )
    )
    serving = threading.Thread(target=server.run)
    serving.start()
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.02):
            paas.work(outputs=OUTPUTS, resources=RESOURCES, log="server.create on gpu1 <ok>\n")

    working = threading.Thread(target=work)
    working.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Client(f"https://localhost:{port}", public, paas.iam.token(sub="ann", preferred_username="ann"))
    ended.set()
    working.join()
    server.should_exit = server.force_exit = True  # the client keeps its connection
    serving.join()


def test_a_user_deploys_looks_changes_and_removes(ann: Client, paas: Site) -> None:
    path = paas.folder / "notes.yaml"
    made = ann.run("deploy", path, "--group", "physics", "--input", "cpus=2", "--input", "names=[a, b]")
    assert made.exit_code == 0, made.stderr
    assert made.stdout == "text: hello\nnode_ip: 192.0.2.1\nlist:\n  - a &amp; b\n"
    assert "server.create on gpu1 <ok>" in made.stderr
    (listed,) = json.loads(ann.run("list", "--json").stdout)
    own = listed["name"]
    assert f"gpufarm update {own}" in made.stderr and "gpufarm diff" not in made.stderr
    assert (listed["status"], listed["group"], listed["operator"]) == ("deployed", "physics", "ann")
    stored = paas.user("ann").get(f"/deployments/{own}").json()
    assert stored["outputs"] == OUTPUTS
    shown = ann.run("show", own).stdout
    assert f"{own}: deployed since" in shown and "machines: server: gpu1\n" in shown
    assert "template:" not in shown and "pool:" not in shown
    assert json.loads(ann.run("outputs", own, "--json").stdout) == OUTPUTS
    assert ann.run("log", own).stdout == "server.create on gpu1 <ok>\n"

    changed = ann.run("update", own, "--input", "cpus=3", GPUFARM_INPUT_TEXT="other")
    assert changed.exit_code == 0 and changed.stderr.count("server.create") == 1, changed.stderr
    with paas.service.database.reading() as session:
        parameters = session.get_one(Deployment, own).parameters
    assert parameters == {"cpus": 3, "names": ["a", "b"], "text": "other", "owner": "ann"}

    gone = ann.run("delete", own, "--yes")
    assert gone.exit_code == 0 and f"{own}: undeployed" in gone.stderr
    assert json.loads(ann.run("list", "--json").stdout) == []
    assert json.loads(ann.run("status", own, "--json").stdout)["status"] == "undeployed"


HOURS = {"slice_hours": 1.0, "gpu_hours": 2.0, "cpu_hours": 3.0, "memory_gib_hours": 4.0}


def use(key: str, login: str, month: str) -> Use:
    names = ("account", "source", "profile", "machine", "deployment", "issuer", "template", "project")
    return Use(key=key, login=login, month=month, **dict.fromkeys(names, ""), **HOURS)


@pytest.mark.parametrize("paas", [{"hours_minutes": 60}], indirect=True)
def test_a_user_gets_the_own_hours(ann: Client, paas: Site) -> None:
    [issuer] = paas.settings.issuers
    paas.service.hours._issuers = {issuer.url: replace(issuer, login_claim="preferred_username")}
    with paas.service.database.changing() as session:
        session.add_all([use("1", "ann", "2026-11"), use("2", "bob", "2026-11"), use("3", "ann", "2026-10")])
        session.add(Source(machine="ctl", failure="secret", answered=0.0))
    told = ann.run(
        "report", "--since", "2026-11-01", "--before", "2026-12-01", "--by", "month", "--by", "user"
    )
    lines = [line.split() for line in told.stdout.splitlines()]
    assert lines[1:] == [
        ["2026-11", "ann", "1.0", "2.0", "3.0", "4.0"],
        ["all", "-", "1.0", "2.0", "3.0", "4.0"],
    ]
    assert told.exit_code == 1
    assert "ctl: it did not answer; last numbers: never" in told.stderr
    for wrong, words in (
        (("--since", "2026-11-02"), "a service keeps hours by month"),
        (("--pool", "x"), "--pool: a service decides that itself"),
        (("--folder", "x"), "a service keeps no records"),
    ):
        assert words in ann.refused("report", *wrong)


@pytest.mark.parametrize(
    "paas", [{"templates": {"jobs": {"template": "chronos_job", "people": {"owner": "sub"}}}}], indirect=True
)
def test_a_user_gets_the_output_of_the_own_job(ann: Client, paas: Site) -> None:
    inputs = {"job_name": "night", "schedule": "R//P1D", "command": "x", "docker_image": "y"}
    words = [word for name, text in inputs.items() for word in ("--input", f"{name}={text}")]
    made = ann.run("deploy", "chronos_job", *words)
    assert made.exit_code == 0, made.stderr
    (listed,) = json.loads(ann.run("list", "--json").stdout)
    texts = {
        "node": "job",
        "machine": "gpu1",
        "state": "failed",
        "reason": "exit 3",
        "stderr": "",
        "unread": "",
    }
    told = {
        "id": "ct:1:0:ann.night:",
        **texts,
        "begun": 1.0,
        "ended": 90.0,
        "cut": [],
        "stdout": "one\x1b[31m\n",
    }
    ended, answers = (
        threading.Event(),
        [{"tasks": [told], "silent": {}}, {"tasks": [], "silent": {"job": "It is away."}}],
    )

    def listen() -> None:
        while not ended.wait(0.02):
            taken = paas.service.consoles.take()
            if taken:
                paas.service.consoles.keep(*taken, answers.pop(0))

    listening = threading.Thread(target=listen)
    listening.start()
    shown = ann.run("console", listed["name"])
    assert shown.exit_code == 0, shown.stderr
    assert "ct:1:0:ann.night:" in shown.stdout and "1970-01-01 00:01:30Z" in shown.stdout
    assert shown.stdout.endswith("[stdout of ct:1:0:ann.night:]\none\ufffd[31m\n")
    with paas.service.database.changing() as session:
        session.get_one(Console, listed["name"]).read = 0.0  # as if it were long ago
    again = ann.run("console", listed["name"], "--json")
    ended.set()
    listening.join()
    assert again.exit_code == 1 and "It is away." in again.stderr
    assert json.loads(again.stdout)["tasks"][0]["stdout"] == "one\ufffd[31m\n"


def test_a_run_that_fails_is_told(ann: Client, paas: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Site, "work", lambda site, **_what: fail(site))
    told = ann.run("deploy", paas.folder / "notes.yaml")
    assert told.exit_code == 1 and told.stdout == ""
    assert "the GPU is gone; more is told by gpufarm log" in told.stderr.splitlines()[-1]


def fail(site: Site) -> None:
    while claim := site.runs.claim("w", 60):
        site.runs.finish(claim, Ending(well=False, reason="the GPU is gone"))


def test_a_deployment_is_named_at_once_and_failures_of_looks_are_borne(
    ann: Client, paas: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user could not find it again otherwise, and it goes on at the service."""
    text, failures = connection.Connection.text, iter([True] * 3)

    def shaky(self: connection.Connection, method: str, path: str, body: Any = None) -> str:
        if method == "GET" and next(failures, False):
            raise GpufarmError("the service does not answer")
        return text(self, method, path, body)

    monkeypatch.setattr(connection.Connection, "text", shaky)
    borne = ann.run("deploy", paas.folder / "notes.yaml")
    assert borne.exit_code == 0 and borne.stdout.startswith("text: hello"), borne.stderr
    (own,) = (entry["name"] for entry in json.loads(ann.run("list", "--json").stdout))
    assert f"gpufarm status {own}" in borne.stderr.splitlines()[0]

    failures = iter([True] * 3)
    monkeypatch.setattr(remote, "BEARABLE", 0.0)
    told = ann.run("update", own, "--input", "cpus=2")
    assert told.exit_code == 1 and "the service does not answer" in told.stderr


def test_what_needs_no_service_works_with_one(paas: Site, tmp_path: Path) -> None:
    gone = Client("https://localhost:1", tmp_path / "ca", "")
    gone.environment.pop("GPUFARM_CA_FILE")
    checked = gone.run("validate", paas.folder / "notes.yaml")
    assert checked.exit_code == 0 and "valid, 1 nodes" in checked.stdout
    assert "complete" in gone.run("completion", "bash").stdout


def test_what_a_service_decides_or_has_not_is_refused(ann: Client, paas: Site) -> None:
    path = paas.folder / "notes.yaml"
    assert "--pool: a service decides that" in ann.refused("deploy", path, "--pool", "/x")
    assert "--name: a service decides that" in ann.refused("deploy", path, "--name", "x")
    assert "--take-over: a service decides that" in ann.refused("deploy", path, "--take-over")
    assert "this service keeps no hours" in ann.refused("report")
    for command in (("plan", path), ("diff", "x"), ("resume", "x"), ("history", "x")):
        assert f"a service offers no {command[0]}" in ann.refused(*command)
    assert "is no deployment of a service" in ann.refused("outputs", "../info")
    assert "there is no deployment" in ann.refused("outputs", "0" * 8 + "-0000" * 3 + "-" + "0" * 12)
    assert "is not in the catalogue" in ann.refused("deploy", paas.folder / "types.yaml")
    assert "has no input other" in ann.refused("deploy", path, "--input", "other=1")
    assert "it is a secret" in ann.refused("deploy", path, "--input", "admin_password=x")
    assert "you are not in group staff" in ann.refused("deploy", path, "--group", "staff")


def test_a_token_is_from_a_file_or_the_environment(ann: Client, tmp_path: Path) -> None:
    token = ann.environment.pop("GPUFARM_TOKEN")
    assert "an access token is missing" in ann.refused("list", GPUFARM_TOKEN="")
    path = tmp_path / "token"
    path.write_text(f"{token}\n")
    path.chmod(0o640)
    assert "others can read this access token" in ann.refused("--token-file", path, "list")
    path.chmod(0o600)
    assert ann.run("--token-file", path, "list").exit_code == 0
    path.write_text("two words\n")
    told = ann.refused("--token-file", path, "list")
    assert "has no access token" in told and "words" not in told
    assert "cannot be read" in ann.refused("--token-file", tmp_path / "other", "list")
    assert "sign in again" in ann.refused("list", GPUFARM_TOKEN="wrong.token.here")


def test_an_address_without_tls_or_trust_is_refused(ann: Client) -> None:
    for url in (
        "http://localhost:1",
        "localhost",
        "https://ann@localhost",
        "https://localhost/?x",
        "https://",
    ):
        assert "write an https URL" in ann.refused("--server", url, "list")
    assert "no certificate that this machine trusts" in ann.refused("list", GPUFARM_CA_FILE="")
    assert "does not answer" in ann.refused("--server", "https://localhost:1", "list")


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *_what: Any) -> None:
        """Say nothing when a client goes away."""


class Hostile:
    """A server that answers everything with the same.

    Attributes:
        answer: status, headers and parts of the body.
        tokens: logins that it was sent.
    """

    def __init__(self, folder: Path) -> None:
        self.answer: tuple[int, dict[str, str], Any] = (200, {}, [b"{}"])
        self.tokens: list[str | None] = []
        hostile = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_what: Any) -> None:
                pass

            def do_GET(self) -> None:
                hostile.tokens.append(self.headers["Authorization"])
                status, headers, parts = hostile.answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for part in parts:
                    self.wfile.write(part)

            do_POST = do_PUT = do_DELETE = do_GET

        self.ca_file, private = certificate(folder)
        self.server = Quiet(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca_file, private)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@contextmanager
def running(folder: Path) -> Iterator[Hostile]:
    made = Hostile(folder)
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Hostile]:
    with running(tmp_path / "hostile") as made:
        yield made


@pytest.fixture
def client(hostile: Hostile) -> Client:
    return Client(hostile.url, hostile.ca_file, "a.token")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("command", [("list",), ("deploy", "gpu_container", "--input", "docker_image=x")])
def test_a_token_is_sent_to_no_other_address(
    hostile: Hostile, client: Client, tmp_path: Path, status: int, command: tuple[str, ...]
) -> None:
    with running(tmp_path / "other") as other:
        hostile.answer = (status, {"Location": f"{other.url}/deployments"}, [])
        assert "to which the token is not sent" in client.refused(*command)
        assert hostile.tokens == ["Bearer a.token"] and other.tokens == []


def test_a_login_of_netrc_is_not_sent(
    hostile: Hostile, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine localhost login ann password swordfish\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    client.refused("outputs", "0")
    client.run("list")
    assert hostile.tokens == ["Bearer a.token"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, {"Content-Type": "text/html"}, [b"<html>sign in</html>"]), "answers with no JSON"),
        ((200, {}, [b"[1]"]), "answers with no object"),
        ((200, {}, [b"[" * 100_000]), "answers with no JSON"),
        ((200, {}, [b"\xff\xfe"]), "answers with no JSON"),
        ((502, {}, [b"<html>bad gateway</html>"]), "answers with status 502 and no reason"),
        ((403, {}, [b'["message"]']), "answers with status 403 and no reason"),
        ((403, {}, [b'{"message": "no \\u001b[31m &lt;b&gt;"}']), "no \ufffd[31m <b>"),
        ((200, {"Content-Encoding": "gzip"}, [b"no gzip"]), "does not answer"),
        ((200, {"Content-Length": "99"}, [b"{"]), "does not answer"),
        ((200, {}, [b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}"]), "answers with lists in lists"),
    ],
)
def test_strange_answers_are_one_sentence(
    hostile: Hostile, client: Client, answer: tuple[int, dict[str, str], Any], words: str
) -> None:
    hostile.answer = answer
    assert words in client.refused("list")


def endless() -> Iterator[bytes]:
    while True:
        yield b" " * 65_536


def test_answers_without_end_are_cut_off(
    hostile: Hostile, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile.answer = (200, {}, endless())
    assert "answers without end" in client.refused("list")
    monkeypatch.setattr(connection, "DEADLINE", 0.0)
    hostile.answer = (200, {}, [b"{}"])
    assert "answers without end" in client.refused("list")


def dripping() -> Iterator[bytes]:
    while True:
        yield b" "
        time.sleep(0.01)


def test_an_answer_that_drips_is_cut_off(
    hostile: Hostile, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "DEADLINE", 0.1)
    hostile.answer = (200, {}, dripping())
    assert "answers without end" in client.refused("list")


def test_a_list_without_end_is_cut_off(hostile: Hostile, client: Client) -> None:
    page = {"content": [{"uuid": "x"}] * remote.SIZE}
    hostile.answer = (200, {}, [json.dumps(page).encode()])
    assert len(json.loads(client.run("list", "--json").stdout)) == remote.SIZE * remote.PAGES


def test_nothing_controls_the_terminal(hostile: Hostile, client: Client) -> None:
    evil = "\x1b]0;owned\x07\r"
    entry = {"uuid": evil, "status": evil, "statusReason": evil, "userGroup": evil, "outputs": {evil: [evil]}}
    hostile.answer = (200, {}, [json.dumps({"content": [entry], **entry}).encode()])
    own = "0" * 8 + "-0000" * 3 + "-" + "0" * 12
    for command in (("list",), ("show", own), ("outputs", own), ("log", own), ("deploy", "gpu_container")):
        told = client.run(*command)
        assert not set(told.output) & {"\x1b", "\x07", "\r"}, command


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    (
        "uuid",
        "status",
        "statusReason",
        "createdBy",
        "userGroup",
        "creationTime",
        "outputs",
        "content",
        "metadata",
    )
)


class Answers(connection.Connection):
    """A service that answers with one thing."""

    def __init__(self, found: dict[str, Any]) -> None:
        super().__init__("https://localhost", lambda: "token")
        self.found = found

    def text(self, method: str, path: str, body: Any = None) -> str:
        return json.dumps(self.found)


@given(st.dictionaries(NAMES, ANYTHING | st.lists(st.dictionaries(NAMES, ANYTHING, max_size=3), max_size=3)))
def test_whatever_a_service_answers_is_read_or_refused(found: dict[str, Any]) -> None:
    service = remote.Remote(Answers(found))
    own = "0" * 8 + "-0000" * 3 + "-" + "0" * 12
    for ask in (service.list, lambda: service.show(own), lambda: service.outputs(own)):
        try:
            json.dumps(vars(ask()[0]) if isinstance(ask(), list) and ask() else str(ask()))
        except GpufarmError as error:
            assert error.message
