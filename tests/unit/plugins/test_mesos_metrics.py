"""A master of Mesos as metrics: what its answers lead to, and what silence does."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._metrics.io import mesos_command
from prometheus_client.parser import text_string_to_metric_families

Answer = tuple[int, Any]
Answers = dict[str, Answer]
Found = dict[tuple[str, ...], float]
SECRET = "Basic " + base64.b64encode(b"operator:tell nobody").decode()
STANDBY: Answers = {"/metrics/snapshot": (200, {"master/elected": 0.0})}
NO_QUORUM = "Master has not finished recovery"


def scalars(**amounts: float) -> list[dict[str, Any]]:
    return [{"name": name, "scalar": {"value": value}} for name, value in amounts.items()]


def agent(number: str, **fields: Any) -> dict[str, Any]:
    """Return an agent as GET_AGENTS of Mesos 1.11 has it."""
    ports = {"name": "ports", "type": "RANGES", "ranges": {"range": [{"begin": 1, "end": 9}]}}
    return {
        "agent_info": {"id": {"value": number}, "hostname": f"gpu{number}", "port": 5051},
        "active": True,
        "total_resources": [*scalars(cpus=8, gpus=2), ports],
        "allocated_resources": scalars(cpus=3),
    } | fields


LEADER: Answers = {
    "/metrics/snapshot": (200, {"master/elected": 1.0, "master/slaves_unreachable": 2.0}),
    "GET_AGENTS": (200, {"agents": [agent("1"), agent("2", drain_info={"state": "DRAINED"})]}),
    "GET_QUOTA": (
        200,
        {"status": {"configs": [{"role": "ada", "limits": {"gpus": {"value": 4}, "cpus": {"value": 16}}}]}},
    ),
    "/master/roles": (
        200,
        {
            "roles": [
                {"name": "ada", "quota": {"consumed": {"gpus": 1.0, "cpus": 2.0, "ports": "[1-2]"}}},
                {"name": "bob", "quota": {"consumed": {"gpus": 1.0}}},
            ]
        },
    ),
}


@pytest.fixture
def ask(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[[Answers], tuple[Found, str]]]:
    """Ask a server that gives these answers, and return the metrics and what the program complains of."""
    given: Answers = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.tell(self.path)

        def do_POST(self) -> None:
            kind = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["type"]
            assert self.path == "/master/api/v1"
            self.tell(kind, envelope=kind)

        def tell(self, what: str, envelope: str = "") -> None:
            status, body = given.get(what, (404, ""))
            if what != "/master/redirect" and self.headers["Authorization"] != SECRET:
                status = 401
            if envelope and status == 200 and isinstance(body, dict):
                body = {"type": envelope, envelope.lower(): body}
            self.send_response(status)
            if status == 307:
                self.send_header("Location", body)
            self.end_headers()
            self.wfile.write((body if isinstance(body, str) else json.dumps(body)).encode())

        def log_message(self, *_message: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "operator").write_text("tell nobody\n")
    page = tmp_path / "mesos.prom"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("MESOS_HOSTNAME", "127.0.0.1")
    monkeypatch.setenv("MESOS_PORT", str(server.server_port))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("LIBPROCESS_SSL_CA_FILE", raising=False)
    monkeypatch.setattr(sys, "argv", ["gpufarm-mesos-metrics", str(page)])

    def told(answers: Answers) -> tuple[Found, str]:
        given.clear()
        given.update(answers)
        if not answers:
            server.shutdown()
            server.server_close()
        status = mesos_command.main()
        complaint = capsys.readouterr().err
        assert status == int(bool(complaint))
        assert "tell nobody" not in page.read_text() + complaint
        return (
            {
                (
                    one.name.removeprefix("gpufarm_mesos_"),
                    *(value for _, value in sorted(one.labels.items())),
                ): one.value
                for family in text_string_to_metric_families(page.read_text())
                for one in family.samples
                if "timestamp" not in one.name
            },
            complaint,
        )

    yield told
    server.shutdown()
    server.server_close()


def test_the_leader_tells_of_agents_and_quotas(ask: Callable[[Answers], tuple[Found, str]]) -> None:
    found, complaint = ask(LEADER)
    assert complaint == ""
    assert found == {
        ("master_up",): 1,
        ("master_leads",): 1,
        ("requests_taken",): 1,
        ("agents", "active"): 1,
        ("agents", "drained"): 1,
        ("agents", "unreachable"): 2,
        ("resources", "cpus"): 8,
        ("resources", "gpus"): 2,
        ("resources_allocated", "cpus"): 3,
        ("quota", "cpus", "ada"): 16,
        ("quota", "gpus", "ada"): 4,
        ("quota_consumed", "cpus", "ada"): 2,
        ("quota_consumed", "gpus", "ada"): 1,
        ("metrics_up",): 1,
    }


def test_a_leader_without_a_quorum_takes_no_requests(ask: Callable[[Answers], tuple[Found, str]]) -> None:
    found, complaint = ask({**LEADER, "GET_AGENTS": (503, NO_QUORUM)})
    assert found == {
        ("master_up",): 1,
        ("master_leads",): 1,
        ("requests_taken",): 0,
        ("metrics_up",): 0,
    }
    assert "the HTTP status 503; look into 'journalctl -u mesos-master'." in complaint


@pytest.mark.parametrize(
    ("redirect", "taken"), [((307, "//192.0.2.1:5050"), 1), ((503, "No leader elected"), 0)]
)
def test_a_standby_says_whether_it_knows_a_leader_and_is_not_followed_there(
    ask: Callable[[Answers], tuple[Found, str]], redirect: Answer, taken: int
) -> None:
    found, complaint = ask({**STANDBY, "/master/redirect": redirect})
    assert (found["master_up",], found["master_leads",], found["requests_taken",]) == (1, 0, taken)
    assert found["metrics_up",] == 1
    assert complaint == ""


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ({}, "does not answer: "),
        ({"/metrics/snapshot": (401, "")}, "the HTTP status 401"),
        ({"/metrics/snapshot": (200, "<html>")}, "does not answer with JSON"),
        ({"/metrics/snapshot": (200, [])}, "does not answer with an object of JSON"),
    ],
)
def test_a_master_that_does_not_answer_is_down(
    ask: Callable[[Answers], tuple[Found, str]], answers: Answers, complaint: str
) -> None:
    found, told = ask(answers)
    assert found == {("master_up",): 0, ("metrics_up",): 0}
    assert complaint in told
