# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker: carries out, cancels, times out, and says how it ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import serve_fake
from gpufarm.serve import child, prune, worker
from gpufarm.serve.tables import Callback, Deployment, Source, Use
from gpufarm.serve.worker import Worker
from serve_site import Site
from sqlalchemy import select

FAKE = (sys.executable, serve_fake.__file__)
SECRET = f"correct horse {uuid.uuid4()}"  # other programs on this machine have none like it


def until(true: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait for something, as long as a busy machine may need."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "PAUSE", 0.05)


@contextmanager
def working(paas: Site, program: tuple[str, ...] = FAKE) -> Iterator[Worker]:
    made = Worker(paas.service, program)
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        yield made
    finally:
        made.stop()
        thread.join()


@pytest.fixture
def state(paas: Site) -> Path:
    return paas.folder / "state"


class Client:
    """A user's client with one deployment."""

    def __init__(self, paas: Site, **fields: Any) -> None:
        self.http, self.template = paas.user("ann", "physics"), paas.template
        answer = self.http.post("/deployments", json={"template": paas.template, **fields})
        assert answer.status_code == 201, answer.text
        self.own = answer.json()["uuid"]
        self.here = f"/deployments/{self.own}"

    def body(self) -> dict[str, Any]:
        return self.http.get(self.here).json()

    def ends_in(self, status: str) -> dict[str, Any]:
        until(lambda: not self.body()["status"].endswith("IN_PROGRESS"))
        assert self.body()["status"] == status, self.body()
        return self.body()

    def log(self) -> str:
        return self.http.get(f"{self.here}/log").text


def test_the_whole_life(paas: Site, state: Path) -> None:
    client = Client(paas, parameters={"text": "one"}, userGroup="physics")
    with working(paas):
        assert client.ends_in("CREATE_COMPLETE")["outputs"] == {"text": "one", "node_ip": "192.0.2.1"}
        assert "hub.configure on gpu1: ok, 1 changed" in client.log()
        (machine,) = client.http.get(f"{client.here}/resources").json()["content"]
        assert machine["physicalId"] == "gpu1"
        assert "192.0.2.1" in machine["metadata"]["VirtualMachineInfo"]
        remembered = json.loads((state / f"{client.own}.json").read_text())
        assert remembered["inputs"] == {"text": "one", "owner": "ann"}
        assert remembered["group"] == "physics"
        client.http.put(client.here, json={"template": paas.template, "parameters": {"text": "two"}})
        assert client.ends_in("UPDATE_COMPLETE")["outputs"]["text"] == "two"
        client.http.delete(client.here)
        client.ends_in("DELETE_COMPLETE")
    assert not (state / f"{client.own}.json").exists()


def test_the_dashboard_can_show_the_machines(paas: Site) -> None:
    """Its page of a deployment fails with 500 if a machine has no memory or has the wrong type of value."""

    def shown() -> dict[str, Any]:
        (machine,) = client.http.get(f"{client.here}/resources").json()["content"]
        system, network = json.loads(machine["metadata"]["VirtualMachineInfo"])["vmProperties"]
        assert network == {"class": "network", "id": "pub_network"}
        return system

    client = Client(paas, parameters={"text": "one"})
    with working(paas):
        client.ends_in("CREATE_COMPLETE")
        assert shown() == {
            "class": "system",
            "instance_name": "gpu1",
            "cpu.count": 8,
            "memory.size": 2**34,
            "disk.0.free_size": 2**40,
            "disk.0.os.flavour": "debian",
            "disk.0.os.version": "13",
            "net_interface.0.ip": "192.0.2.1",
        }
        values = {"text": "nothing to do"}
        client.http.put(client.here, json={"template": paas.template, "parameters": values})
        client.ends_in("UPDATE_COMPLETE")
        assert shown()["memory.size"] == 2**34


@pytest.mark.parametrize("paas", [{"hours_minutes": 60}], indirect=True)
def test_hours_are_read_once_and_kept(paas: Site, state: Path) -> None:
    def kept() -> list[tuple[str, float]]:
        with paas.service.database.reading() as session:
            return [(one.login, one.gpu_hours) for one in session.scalars(select(Use))]

    with working(paas), working(paas):
        until(kept)
        assert kept() == [("ann", 2.0)]
    assert (state / "journal").read_text().count("hours since") == 1


@pytest.mark.parametrize("paas", [{"hours_minutes": 60}], indirect=True)
def test_hours_that_cannot_be_read_are_told(paas: Site, state: Path) -> None:
    def failure() -> str:
        with paas.service.database.reading() as session:
            found = session.get(Source, "")
            return found.failure if found else ""

    state.mkdir()
    (state / "silent").touch()
    with working(paas):
        assert until(failure) == "the hours cannot be read: no machine answers"


def test_a_failure_is_told_without_files_of_the_server(paas: Site) -> None:
    client = Client(paas, parameters={"text": "fail"})
    with working(paas):
        body = client.ends_in("CREATE_FAILED")
        assert body["statusReason"] == "hub.configure on gpu1: a task failed"
        client.http.delete(client.here)
        client.ends_in("DELETE_COMPLETE")


def test_a_deployer_that_dies_is_told(paas: Site) -> None:
    client = Client(paas, parameters={"text": "crash"})
    with working(paas):
        assert "signal 9" in client.ends_in("CREATE_FAILED")["statusReason"]


@pytest.mark.parametrize("program", [("/bin/false",), ("/bin/echo", "[1, {"), ("/bin/echo", "[1]")])
def test_a_deployer_that_talks_nonsense_is_told(paas: Site, program: tuple[str, ...]) -> None:
    client = Client(paas)
    with working(paas, program):
        assert "no answer" in client.ends_in("CREATE_FAILED")["statusReason"]


ODD = r"""
import sys
sys.stdout.buffer.write(b"\xff\n")
print(r'{"log": "log: a\u0000b \udce9\n"}')
ending = r'"reason": "why: a\u0000b \udce9", "outputs": {"a\u0000": "\udce9", "share": NaN, "far": 1e999}'
ending += r', "resources": [{"type": "\ud800"}]'
print('{"ending": {"well": ' + sys.argv[1] + ", " + ending + "}}")
"""


@pytest.mark.parametrize("well", [False, True])
def test_texts_that_no_database_takes_are_told_without_the_odd_letters(
    database_paas: Site, well: bool
) -> None:
    client = Client(database_paas)
    with working(database_paas, (sys.executable, "-c", ODD, json.dumps(well))):
        if well:
            outputs = client.ends_in("CREATE_COMPLETE")["outputs"]
            assert outputs == {"a": "?", "share": "nan", "far": "inf"}
        else:
            assert client.ends_in("CREATE_FAILED")["statusReason"] == "why: ab ?"
        assert client.log() == "log: ab ?\n"


def test_a_text_that_the_database_refuses_ends_the_run_and_no_worker(
    database_paas: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_stored", lambda value: value)
    client = Client(database_paas, parameters={"text": "fail"})
    with working(database_paas, (sys.executable, "-c", ODD, "false")):
        assert "cannot be carried out" in client.ends_in("CREATE_FAILED")["statusReason"]


def test_a_lost_key_is_told_and_stops_no_other_run(paas: Site) -> None:
    secret = Client(paas, parameters={"admin_password": SECRET})
    other = Client(paas)
    (paas.folder / "serve" / "key").write_text("another one")
    paas.service.key._known = b""
    with working(paas):
        assert "cannot be carried out" in secret.ends_in("CREATE_FAILED")["statusReason"]
        other.ends_in("CREATE_COMPLETE")
        secret.http.delete(secret.here)
        secret.ends_in("DELETE_COMPLETE")


def test_a_deletion_stops_what_runs(paas: Site, state: Path) -> None:
    client = Client(paas, parameters={"text": "slow"})
    with working(paas):
        until(lambda: (state / f"{client.own}.json").exists())
        client.http.delete(client.here)
        client.ends_in("DELETE_COMPLETE")
    assert serve_fake.FakeDeployer(state, None, print).names() == []


@pytest.mark.parametrize("deaf", [False, True])
def test_a_run_that_takes_too_long_is_stopped(
    paas: Site, state: Path, monkeypatch: pytest.MonkeyPatch, deaf: bool
) -> None:
    monkeypatch.setattr(child, "GRACE", 0.2 if deaf else 60.0)
    sleeps = "import sys, time; sys.stdin.readline(); time.sleep(3600)"
    client = Client(paas, parameters={"text": "slow"}, timeoutMins=1)
    real = time.time
    with working(paas, (sys.executable, "-c", sleeps) if deaf else FAKE):
        until(lambda: deaf or (state / f"{client.own}.json").exists())
        until(lambda: paas.runs.counts().get("running"))
        monkeypatch.setattr(worker.time, "time", lambda: real() + 61)
        body = client.ends_in("CREATE_FAILED")
    assert "after 1 minutes" in body["statusReason"]


def test_a_deletion_has_the_time_of_the_settings(paas: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = (
        "import json, select, sys; removing = json.loads(sys.stdin.readline())['kind'] == 'DELETE'; "
        "stopped = select.select([sys.stdin], [], [], 1)[0] if removing else []; "
        "ending = {'well': not stopped, 'reason': '', 'outputs': {}, 'resources': []}; "
        "print(json.dumps({'ending': ending}))"
    )
    client = Client(paas, timeoutMins=1)
    real = time.time
    with working(paas, (sys.executable, "-c", slow)):
        client.ends_in("CREATE_COMPLETE")
        client.http.delete(client.here)
        until(lambda: paas.runs.counts().get("running"))
        monkeypatch.setattr(worker.time, "time", lambda: real() + 61)
        client.ends_in("DELETE_COMPLETE")


def test_a_deletion_that_fails_frees_the_machines_that_it_has_cleaned(paas: Site) -> None:
    program = (
        "import json, sys; removing = json.loads(sys.stdin.readline())['kind'] == 'DELETE'; "
        "both = ('head', 'worker'); "
        "nodes = [{'node': one, 'type': 'x', 'state': 'STARTED', 'host': one} for one in both]; "
        "failed = {'well': False, 'reason': 'worker is dead', 'held': ['worker']}; "
        "made = {'well': True, 'outputs': {}, 'resources': nodes}; "
        "print(json.dumps({'ending': failed if removing else made}))"
    )
    client = Client(paas)
    with working(paas, (sys.executable, "-c", program)):
        client.ends_in("CREATE_COMPLETE")
        client.http.delete(client.here)
        assert client.ends_in("DELETE_FAILED")["statusReason"] == "worker is dead"
    (left,) = client.http.get(f"{client.here}/resources").json()["content"]
    assert left["physicalId"] == "worker"


def test_a_worker_that_stops_gives_its_run_back(paas: Site, state: Path) -> None:
    client = Client(paas, parameters={"text": "slow"})
    with working(paas):
        until(lambda: (state / f"{client.own}.json").exists())
    assert client.body()["status"] == "CREATE_IN_PROGRESS"
    path = state / f"{client.own}.json"
    assert json.loads(path.read_text())["status"] == "deploying"
    with paas.service.database.changing() as session:
        session.get_one(Deployment, client.own).parameters = {"text": "quick"}
    with working(paas):
        assert client.ends_in("CREATE_COMPLETE")["outputs"]["text"] == "quick"


def test_a_worker_that_is_drained_ends_its_run_and_takes_no_other(paas: Site, state: Path) -> None:
    first, second = Client(paas), Client(paas)
    made = Worker(paas.service, FAKE)
    thread = threading.Thread(target=made.run)
    thread.start()
    until(lambda: (state / f"{first.own}.json").exists())
    made.drain()
    thread.join()
    assert first.body()["status"] == "CREATE_COMPLETE"
    assert second.body()["status"] == "CREATE_IN_PROGRESS"
    assert paas.runs.counts() == {"done": 1, "queued": 1}


@pytest.mark.parametrize("paas", [{"keep_days": 2}], indirect=True)
def test_a_worker_forgets_what_is_long_gone(paas: Site) -> None:
    client = Client(paas)
    client.http.delete(client.here)
    with paas.service.database.changing() as session:
        session.get_one(Deployment, client.own).updated -= 3 * prune.DAY
    with working(paas):
        until(lambda: client.http.get(client.here).status_code == 404)


def test_secrets_are_in_no_list_of_processes_and_no_file(paas: Site, state: Path) -> None:
    client = Client(paas, parameters={"text": "slow", "admin_password": SECRET})
    with working(paas):
        until(lambda: (state / f"{client.own}.json").exists())
        found = subprocess.run(["ps", "axeww"], capture_output=True, text=True, check=True).stdout
        assert "serve_fake" in found and SECRET not in found
        assert json.loads((state / f"{client.own}.json").read_text())["inputs"]["admin_password"] == SECRET


def test_a_template_that_is_offered_no_more_can_be_removed(paas: Site, state: Path) -> None:
    client = Client(paas)
    with working(paas):
        client.ends_in("CREATE_COMPLETE")
        client.http.put(client.here, json={"template": paas.template})
        paas.service.offers._named.clear()
        until(lambda: not client.body()["status"].endswith("IN_PROGRESS"))
        client.http.delete(client.here)
        client.ends_in("DELETE_COMPLETE")


def test_an_attempt_ends_with_its_worker(paas: Site, state: Path) -> None:
    """Its input ends, whatever has killed the worker."""
    client = Client(paas, parameters={"text": "slow"})
    claim = paas.runs.claim("w", 60)
    assert claim
    order = Worker(paas.service)._order(claim)
    process = subprocess.Popen(FAKE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    until(lambda: (state / f"{client.own}.json").exists())
    process.stdin.close()
    *_progress, last = process.stdout.read().splitlines()
    assert json.loads(last)["ending"] == {"well": False, "reason": "the run was stopped", "stopped": True}
    assert process.wait() == 0


def test_a_second_attempt_waits_for_the_first(paas: Site, state: Path) -> None:
    client = Client(paas)
    deployer = serve_fake.FakeDeployer(state, None, print)
    with deployer.locked(client.own), working(paas):
        time.sleep(0.3)
        assert client.body()["status"] == "CREATE_IN_PROGRESS"
    with working(paas):
        client.ends_in("CREATE_COMPLETE")


def test_a_worker_that_cannot_tell_that_it_lives_stops_its_run(
    paas: Site, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker may take the run when the lease ends, so no attempt may go on by then."""
    paas.service.settings = replace(paas.service.settings, lease=1)
    client = Client(paas, parameters={"text": "slow"})
    with working(paas) as made:
        until(lambda: (state / f"{client.own}.json").exists())

        def locked(*_what: Any) -> bool:
            raise worker.Unavailable("the database is locked")

        monkeypatch.setattr(made._runs, "beat", locked)
        deployer = serve_fake.FakeDeployer(state, None, print)

        def free() -> bool:
            try:
                with deployer.locked(client.own):
                    return True
            except serve_fake.Locked:
                return False

        until(free)


def test_a_message_that_cannot_be_written_stops_no_other_one(
    paas: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        client = Client(paas, callback="https://dashboard.example.org/callback")
        client.http.delete(client.here)
    posted = []

    def post(_poster: Any, _url: str, body: dict[str, Any]) -> tuple[str, bool]:
        posted.append(body["uuid"])
        if len(posted) == 1:
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        return "", False

    monkeypatch.setattr(worker.Poster, "post", post)
    with working(paas):
        until(lambda: client.own in posted)

        def states() -> list[str]:
            with paas.service.database.reading() as session:
                return [*session.scalars(select(Callback.state).order_by(Callback.id))]

        until(lambda: states() == ["failed", "sent"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_command_ends_when_it_is_told_to(paas: Site, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "gpufarm", "serve", "--settings", paas.folder / "serve.yml", "worker"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    until(lambda: "is ready" in process.stderr.readline())
    process.send_signal(number)
    assert process.wait(60) == 0
