# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of containers and jobs: read by a worker on demand, kept, shown to its owner, and forgotten."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import serve_fake
from doubles.issuer import ANN, Issuer
from gpufarm.collection import root
from gpufarm.serve import consoles, listening
from gpufarm.serve.listening import Listening
from gpufarm.serve.tables import Audit, Console, Deployment, Task
from httpx import Response
from serve_site import Browser, Site, empty_database, site, with_pages
from sqlalchemy import select, update

FAKE = (sys.executable, serve_fake.__file__)
INPUTS = {
    "job_name": "night",
    "schedule": "R/2030-01-01T00:00:00Z/P1D",
    "command": "x",
    "docker_image": "y",
}
NOW = time.time()


@pytest.fixture(params=["sqlite", "postgresql"])
def paas(tmp_path: Path, iam: Issuer, request: pytest.FixtureRequest) -> Iterator[Site]:
    iam.accounts = {"ann": ANN}
    changes = with_pages(tmp_path, iam)
    if request.param == "postgresql":
        changes["database"] = empty_database(request.getfixturevalue("postgresql"))
    templates = {
        "notes": {"template": "notes.yaml"},
        "jobs": {"template": "chronos_job", "people": {"owner": "sub"}},
    }
    with site(tmp_path, iam, templates=templates, **changes) as made:
        yield made


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consoles, "FRESH", 0.0)
    monkeypatch.setattr(listening, "PAUSE", 0.02)


def task(id: str = "ct:1:0:ann.night:", **other: Any) -> dict[str, Any]:
    texts = {"node": "job", "machine": "gpu1", "state": "succeeded", "reason": "", "unread": ""}
    times = {"begun": NOW - 60, "ended": NOW - 30}
    return {"id": id, **texts, **times, "stdout": "trained\n", "stderr": "", "cut": [], **other}


class Job:
    """A deployment of ann with a job."""

    def __init__(self, paas: Site, template: str = "chronos_job") -> None:
        self.paas, self.http = paas, paas.user("ann")
        text = (root() / "tosca" / "templates" / "chronos_job.yaml").read_text()
        body = {"template": text, "parameters": INPUTS} if template else {"template": paas.template}
        answer = self.http.post("/deployments", json=body)
        assert answer.status_code == 201, answer.text
        paas.work()
        self.own = answer.json()["uuid"]
        self.here = f"/deployments/{self.own}/console"

    def tells(self, *tasks: dict[str, Any], **other: Any) -> None:
        """Have the fake of the deployer tell this."""
        state = self.paas.folder / "state"
        state.mkdir(exist_ok=True)
        (state / f"{self.own}.json").write_text('{"steps": []}')
        told = {"tasks": tasks, "silent": {}, **other}
        (state / f"{self.own}.console").write_text(json.dumps(told))

    def read(self, *tasks: dict[str, Any], **other: Any) -> dict[str, Any]:
        """Ask for a reading, have a worker carry it out, and return what is told then."""
        self.tells(*tasks, **other)
        assert self.http.post(self.here).status_code == 202
        listens(self.paas, lambda: not self.told()["waits"])
        return self.told()

    def told(self) -> dict[str, Any]:
        answer = self.http.get(self.here)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def browser(self) -> Browser:
        return self.paas.browser("ann")


def listens(paas: Site, true: Any) -> None:
    """Be a worker until something is so."""
    stop = threading.Event()
    thread = threading.Thread(target=Listening(paas.service, FAKE).run, args=(stop,))
    thread.start()
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)
    stop.set()
    thread.join()


def rows(paas: Site, table: Any) -> list[Any]:
    with paas.service.database.reading() as session:
        return [*session.scalars(select(table))]


def test_a_reading_is_asked_for_and_carried_out_by_a_worker(paas: Site) -> None:
    job = Job(paas)
    assert job.told() == {"waits": False, "read": None, "failure": "", "tasks": []}
    job.http.post(job.here)
    assert job.told()["waits"] and job.told()["tasks"] == []
    found = job.read(task(), task("ct:0:0:ann.night:", begun=NOW - 90, state="failed", reason="exit 3"))
    assert [one["id"] for one in found["tasks"]] == ["ct:1:0:ann.night:", "ct:0:0:ann.night:"]
    first, second = found["tasks"]
    assert (first["stdout"], first["state"], second["reason"]) == ("trained\n", "succeeded", "exit 3")
    assert found["read"] and found["failure"] == "" and first["begun"] < first["ended"]
    assert "stdout" not in job.http.get(f"{job.here}?output=false").json()["tasks"][0]


def test_only_the_owner_and_administrators_read_it(paas: Site) -> None:
    job = Job(paas)
    job.read(task())
    stranger = paas.user("eve", "physics")
    for answer in (stranger.get(job.here), stranger.post(job.here)):
        assert answer.status_code == 404 and "trained" not in answer.text
    page = paas.browser("eve")
    assert page.get(f"/ui/deployments/{job.own}").status_code == 404
    assert page.post(f"/ui/deployments/{job.own}/console", {"token": "x"}).status_code in (403, 404)
    assert paas.client().get(job.here).status_code == 401
    before = len(rows(paas, Audit))
    assert "trained" in paas.user("root", "admins").get(job.here).text
    assert [(one.action, one.subject) for one in rows(paas, Audit)[before:]] == [("read console", "root")]


def test_the_page_shows_runs_and_output(paas: Site) -> None:
    job = Job(paas)
    browser = job.browser()
    page = f"/ui/deployments/{job.own}"
    browser.get(page)
    assert browser.page.select_one("#console-again").text == "Read the output"
    fields = browser.fields('form[action$="/console"]')
    answer = browser.post(f"{page}/console", fields)
    assert answer.status_code == 303 and answer.headers["Location"] == f"{page}#console-title"
    browser.get(page)
    assert browser.page.select_one("#console-waits") and not browser.page.select_one("#console-again")
    assert browser.page.select_one("#live").has_attr("data-live")
    old = task(
        "ct:0:0:ann.night:", begun=NOW - 90, state="failed", reason="exit 3", stderr="no GPU", stdout=""
    )
    job.read(task(cut=["stdout"]), old)
    browser.get(page)
    assert not browser.page.select_one("#live").has_attr("data-live")
    assert browser.page.select_one("#stdout").text == "trained\n" and not browser.page.select_one("#stderr")
    assert "its end" in browser.page.select_one("#stdout-title").text
    states = [one.text.strip() for one in browser.page.select("#tasks .status")]
    assert states == ["succeeded", "failed"] and "exit 3" in browser.page.select_one("#tasks").text
    browser.get(browser.page.select_one("#tasks a")["href"].partition("#")[0])
    assert browser.page.select_one("#stderr").text == "no GPU" and not browser.page.select_one("#stdout")
    assert browser.get(f"{page}?task=another").status_code == 200
    assert not browser.page.select("#stdout, #stderr")


HOSTILE = [
    "<script>alert(1)</script>",
    "</pre><svg onload=alert(1)>",
    "{{ 77777 * 77777 }}{% raw %}",
    "\x1b]0;title\x07\x9b31m",
    "\u202eexe.txt",
    "x" * 200_000,
    "\ufffe\uffff\x00",
]


def test_nothing_that_is_printed_gets_into_a_page_as_more_than_text(paas: Site) -> None:
    job = Job(paas)
    names = ("id", "machine", "reason", "unread", "stdout", "stderr")
    told = [task(**dict.fromkeys(names, f"{number}{text}")) for number, text in enumerate(HOSTILE)]
    told[0]["unread"] = ""
    assert len(job.read(*told)["tasks"]) == len(HOSTILE)
    browser = job.browser()
    for number, one in enumerate(told):
        answer = browser.http.get(
            f"/ui/deployments/{job.own}", params={"task": one["id"].replace("\0", "")[:4000]}
        )
        assert answer.status_code == 200
        assert (
            "<script>alert" not in answer.text
            and "<svg" not in answer.text
            and "6049261729" not in answer.text
        )
        assert not [sign for sign in answer.text if sign in "\x00\x1b\x07\x9b\u202e\ufffe\uffff"], number
    answer = job.http.get(job.here)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_what_was_read_stays_when_nothing_can_be_read(paas: Site) -> None:
    job = Job(paas)
    job.read(task())
    failed = job.read(failure="Mesos cannot be reached; see whether it runs.")
    assert failed["failure"] == "Mesos cannot be reached; see whether it runs."
    assert failed["tasks"][0]["stdout"] == "trained\n" and failed["read"]
    away = job.read(task(stdout="", unread="The agent on gpu1 does not answer."))
    assert away["failure"] == "" and away["tasks"][0]["unread"] == "The agent on gpu1 does not answer."
    assert away["tasks"][0]["stdout"] == "trained\n"
    browser = job.browser()
    browser.get(f"/ui/deployments/{job.own}")
    assert browser.page.select_one("#unread").text.startswith(
        "The agent on gpu1 does not answer. This was read"
    )
    assert browser.page.select_one("#stdout").text == "trained\n"
    job.read(silent={"job": "Chronos cannot be reached."})
    browser.get(f"/ui/deployments/{job.own}")
    assert "Chronos cannot be reached." in browser.page.select_one("#console-failure").text
    assert browser.page.select_one("#stdout").text == "trained\n"
    assert job.read(task(stdout="again"))["failure"] == ""
    assert job.told()["tasks"][0]["unread"] == "" and job.told()["tasks"][0]["stdout"] == "again"


def test_a_task_that_nobody_knows_any_more_does_not_run_for_ever(paas: Site) -> None:
    job = Job(paas)
    job.read(task("1", state="running", ended=0.0), task("2"))
    found = {one["id"]: (one["state"], one["reason"]) for one in job.read()["tasks"]}
    assert found == {"1": ("lost", "The cluster does not know it any more."), "2": ("succeeded", "")}


def test_a_task_that_the_cluster_has_forgotten_shows_its_last_output(paas: Site) -> None:
    """As a job of Slurm without accounting, of which the files are left."""
    job = Job(paas)
    job.read(task("1", state="running", ended=0.0, stdout="epoch 1\n"), task("2"))
    forgotten = {"state": "lost", "reason": "forgotten", "machine": "", "begun": 0.0, "ended": 0.0}
    told = job.read(*(task(id, **forgotten, stdout="epoch 99\n") for id in ("1", "2", "3")))["tasks"]
    found = {one["id"]: (one["state"], one["reason"], one["machine"], one["stdout"]) for one in told}
    assert found == {
        "1": ("lost", "forgotten", "gpu1", "epoch 99\n"),
        "2": ("succeeded", "", "gpu1", "epoch 99\n"),
        "3": ("lost", "forgotten", "", "epoch 99\n"),
    }
    assert {one["id"]: bool(one["begun"]) for one in told} == {"1": True, "2": True, "3": False}
    consoles.expire(paas.service.database)
    assert len(job.told()["tasks"]) == 3
    long_ago = time.time() - (consoles.DAYS + 1) * 86_400
    with paas.service.database.changing() as session:
        session.execute(update(Task).where(Task.id == "3").values(read=long_ago))
    consoles.expire(paas.service.database)
    assert {one["id"] for one in job.told()["tasks"]} == {"1", "2"}


def test_tasks_of_two_nodes_may_have_the_same_id(paas: Site) -> None:
    """As jobs of two clusters of Slurm, which are plain numbers."""
    job = Job(paas)
    job.read(task("17", node="a", state="running"))
    with paas.service.database.changing() as session:
        session.execute(update(Task).values(key=hashlib.sha256(b"17").hexdigest()))  # of a former release
    both = task("17", node="a", stdout="first\n"), task("17", node="b", begun=NOW - 90, stdout="second\n")
    told = job.read(*both)["tasks"]
    assert [(one["node"], one["stdout"]) for one in told] == [("a", "first\n"), ("b", "second\n")]
    browser = job.browser()
    browser.get(f"/ui/deployments/{job.own}")
    assert browser.page.select_one("#stdout").text == "first\n"
    [link] = browser.page.select("#tasks a")
    browser.get(link["href"].partition("#")[0])
    assert browser.page.select_one("#stdout").text == "second\n"
    assert len(browser.page.select('#tasks [aria-current="true"]')) == 1
    found = job.read(task("17", node="b", state="running"))["tasks"]
    assert {one["node"]: one["state"] for one in found} == {"a": "succeeded", "b": "running"}
    assert {one["state"] for one in job.read(task("18", node="b"))["tasks"]} == {"succeeded", "lost"}


def test_few_tasks_are_kept_and_not_for_ever(paas: Site) -> None:
    job = Job(paas)
    job.read(*(task(f"a{number}", begun=NOW - 900 + number) for number in range(8)))
    told = job.read(*(task(f"b{number}", begun=NOW - 100 + number) for number in range(8)))["tasks"]
    assert [one["id"] for one in told] == [*(f"b{number}" for number in range(7, -1, -1)), "a7", "a6"]
    consoles.expire(paas.service.database)
    assert len(job.told()["tasks"]) == consoles.MOST
    long_ago = time.time() - (consoles.DAYS + 1) * 86_400
    with paas.service.database.changing() as session:
        old = update(Task).where(Task.id != "b7")
        session.execute(old.values(begun=long_ago, ended=long_ago))
        session.execute(update(Task).where(Task.id == "b6").values(state="running", ended=0.0))
    consoles.expire(paas.service.database)
    assert {one["id"] for one in job.told()["tasks"]} == {"b7", "b6"}


def test_output_goes_with_the_deployment(paas: Site) -> None:
    job, other = Job(paas), Job(paas)
    for one in (job, other):
        one.read(task())
    assert job.http.post(job.here).status_code == 202
    taken = paas.service.consoles.take()
    assert taken and taken[0] == job.own
    assert job.http.delete(f"/deployments/{job.own}").status_code == 204
    paas.work()
    assert {one.deployment for table in (Task, Console) for one in rows(paas, table)} == {other.own}
    # a reading that was under way tells its answer
    paas.service.consoles.keep(*taken, {"tasks": [task()], "silent": {}})
    paas.service.consoles.failed(*taken, "too late")
    assert {one.deployment for table in (Task, Console) for one in rows(paas, table)} == {other.own}
    assert job.told()["tasks"] == []
    refused = job.http.post(job.here)
    assert refused.status_code == 409 and "is gone" in refused.text


def test_a_deployment_that_no_worker_has_begun_takes_its_reading_with_it(paas: Site) -> None:
    text = (root() / "tosca" / "templates" / "chronos_job.yaml").read_text()
    http = paas.user("ann")
    own = http.post("/deployments", json={"template": text, "parameters": INPUTS}).json()["uuid"]
    assert http.post(f"/deployments/{own}/console").status_code == 202
    assert http.delete(f"/deployments/{own}").status_code == 204
    assert rows(paas, Console) == [] and paas.service.consoles.take() is None


def test_a_reading_has_one_worker_and_another_when_that_is_lost(paas: Site, monkeypatch: Any) -> None:
    job, known = Job(paas), paas.service.consoles
    for _again in range(3):
        job.http.post(job.here)
    first = known.take()
    assert first and known.take() is None
    known.release(*first)
    second = known.take()
    assert second and second[0] == job.own
    monkeypatch.setattr(consoles, "LOST", -1.0)
    third = known.take()
    assert third
    monkeypatch.undo()
    known.keep(*second, {"tasks": [task(stdout="of the lost one")], "silent": {}})
    assert job.told()["waits"] and job.told()["tasks"] == []
    known.keep(*third, {"tasks": [task()], "silent": {}})
    assert not job.told()["waits"] and job.told()["tasks"][0]["stdout"] == "trained\n"


def test_a_reading_that_ended_a_moment_ago_is_enough(paas: Site, monkeypatch: Any) -> None:
    job = Job(paas)
    job.read(task())
    monkeypatch.setattr(consoles, "FRESH", 60.0)
    assert job.http.post(job.here).status_code == 202 and not job.told()["waits"]


def test_a_template_without_container_or_job_has_no_console(paas: Site) -> None:
    job = Job(paas, template="")
    answer: Response = job.http.post(job.here)
    assert answer.status_code == 400 and "no container and no job" in answer.text
    browser = job.browser()
    browser.get(f"/ui/deployments/{job.own}")
    assert browser.page.select_one("#log-title") and not browser.page.select_one("#console-title")


def test_a_deployment_of_which_nothing_is_set_up_says_so(paas: Site) -> None:
    job = Job(paas)
    job.http.post(job.here)
    listens(paas, lambda: not job.told()["waits"])
    assert job.told()["failure"] == "nothing of this deployment has been set up yet"
    assert rows(paas, Deployment)[0].reason == ""


def test_an_answer_that_cannot_be_kept_is_not_asked_for_again(paas: Site, monkeypatch: Any) -> None:
    def keep(*_answer: Any) -> None:
        raise ValueError("it is too strange")

    monkeypatch.setattr(consoles.Consoles, "keep", keep)
    found = Job(paas).read(task())
    assert "the operator of this service finds the reason" in found["failure"] and found["tasks"] == []


def test_a_worker_that_stops_leaves_its_reading_to_another(paas: Site) -> None:
    job, stop = Job(paas), threading.Event()
    job.http.post(job.here)
    taken = paas.service.consoles.take()
    assert taken
    stop.set()
    slow = (sys.executable, "-c", "import sys; sys.stdin.readline(); sys.stdin.read()")
    Listening(paas.service, slow)._read(*taken, stop)
    again = paas.service.consoles.take()
    assert again and again[0] == job.own
