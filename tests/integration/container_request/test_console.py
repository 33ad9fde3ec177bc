# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of a container and a job, from the deployer's command to the fake of an agent, and by a worker."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import KEY, TEMPLATES, Site
from gpufarm.serve import settings
from gpufarm.serve.models import Create
from gpufarm.serve.people import User
from gpufarm.serve.service import Service
from gpufarm.serve.tables import Deployment
from gpufarm.serve.worker import Worker

from lab.patience import PATIENCE

CONTAINER = ("owner=ada", "docker_image=registry.example.org/lab:1", f"ssh_keys={KEY}")
JOB = (
    "owner=ada",
    "job_name=night",
    "schedule=R/2030-01-01T00:00:00Z/P1D",
    "command=train",
    "docker_image=y",
    "ca_file=",
)
HOSTILE = "{{ 1 + 1 }} {{ lookup('ansible.builtin.pipe', 'id') }} !unsafe\n\x1b[31m<b>\n"
CLEAN = "{{ 1 + 1 }} {{ lookup('ansible.builtin.pipe', 'id') }} !unsafe\n<b>\n"


def inputs(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--input", pair)]


def console(site: Site, name: str) -> dict[str, Any]:
    told = site.gpufarm("console", name, "--json")
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


@pytest.fixture
def job(site: Site) -> Iterator[str]:
    done = site.deploy("chronos_job", *inputs(*JOB[:5]))
    assert done.returncode == 0, done.stderr
    yield "chronos_job"
    gone = site.gpufarm("undeploy", "chronos_job", "--yes")
    assert gone.returncode == 0, gone.stderr


def test_a_container_tells_its_own_tasks(site: Site) -> None:
    done = site.deploy("gpu_container", *inputs(*CONTAINER))
    assert done.returncode == 0, done.stderr
    with urllib.request.urlopen(f"{site.marathon}/v2/apps?embed=apps.tasks") as answer:
        (app,) = (one for one in json.load(answer)["apps"] if one["id"] == "/ada/gpu")
    with urllib.request.urlopen(f"{site.marathon}/v2/info") as answer:
        framework = json.load(answer)["frameworkId"]
    own = app["tasks"][0]["id"]
    others = [("other", own, "TASK_RUNNING"), (framework, "ada_gpu.of-an-earlier-app", "TASK_FINISHED")]
    site.runs((framework, own, "TASK_RUNNING"), *others, stdout=HOSTILE, stderr="warned\n")
    (task,) = console(site, "gpu_container")["tasks"]
    assert (task["node"], task["id"], task["state"]) == ("container", own, "running")
    assert (task["stdout"], task["stderr"], task["unread"]) == (CLEAN, "warned\n", "")
    shown = site.gpufarm("console", "gpu_container")
    assert own in shown.stdout and CLEAN in shown.stdout and "\x1b" not in shown.stdout
    assert site.gpufarm("undeploy", "gpu_container", "--yes").returncode == 0


def test_a_job_tells_its_runs(site: Site, job: str) -> None:
    names = [f"ct:{number}:0:ada.night:" for number in range(3)]
    states = ("TASK_FINISHED", "TASK_FAILED", "TASK_RUNNING")
    runs = [("C", name, state) for name, state in zip(names, states, strict=True)]
    site.runs(*runs, ("C", "ct:9:0:bob.night:", "TASK_RUNNING"), stdout=HOSTILE)
    found = console(site, job)["tasks"]
    assert [(one["id"], one["state"]) for one in found] == [
        (names[2], "running"),
        (names[1], "failed"),
        (names[0], "succeeded"),
    ]
    assert {one["stdout"] for one in found} == {CLEAN}
    chosen = site.gpufarm("console", job, "--task", names[0])
    assert f"[stdout of {names[0]}]" in chosen.stdout
    missing = site.gpufarm("console", job, "--task", "ct:9:0:bob.night:")
    assert missing.returncode == 2 and "there is no task" in missing.stderr


def test_runs_before_the_deployment_are_not_its_own(site: Site, job: str) -> None:
    site.runs(("C", "ct:1:0:ada.night:", "TASK_FINISHED"), stdout="of somebody else")
    told = json.loads((site.root / "told.json").read_text())
    for status in told["tasks"][0]["statuses"]:
        status["timestamp"] -= 3600
    (site.root / "told.json").write_text(json.dumps(told))
    assert console(site, job)["tasks"] == []


def test_a_job_that_others_have_changed_is_not_told(site: Site, job: str) -> None:
    site.runs(("C", "ct:1:0:ada.night:", "TASK_FINISHED"), stdout="of somebody else")
    definition = site.jobs()["ada.night"]
    changed = {name: definition[name] for name in ("name", "schedule", "container", "cpus", "mem")}
    own = definition["environmentVariables"]
    for command, environment, words in (
        ("train", [], "was not made for this deployment"),
        ("other", own, "was changed by others (command)"),
        ("train", own, ""),
    ):
        more = {"command": command, "environmentVariables": environment, "disabled": True}
        body = json.dumps(changed | more).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{site.chronos}/v1/scheduler/iso8601", body, headers)
        urllib.request.urlopen(request).close()
        told = site.gpufarm("console", job)
        if words:
            assert told.returncode == 1 and words in told.stderr, told.stderr
            assert "of somebody else" not in told.stdout
        else:  # Chronos itself switches a job off that fails again and again
            assert told.returncode == 0 and "of somebody else" in told.stdout, told.stderr


def test_a_service_that_is_away_is_one_sentence(site: Site, job: str) -> None:
    (site.root / "told.json").write_text("{")
    told = site.gpufarm("console", job)
    assert told.returncode == 1 and "Mesos" in told.stderr and "Traceback" not in told.stderr
    site.runs()


def test_what_prints_nothing_is_refused(site: Site) -> None:
    told = site.gpufarm("console", "nothing")
    assert told.returncode == 2 and "there is no deployment nothing" in told.stderr


def test_a_worker_reads_what_a_user_asks_for(site: Site, tmp_path: Path) -> None:
    """The page's way: a deployment, a request for a reading, a worker with the real deployer."""
    content = {
        "url": "https://paas.example.org",
        "folder": "serve",
        "deployer": {"state": "state", "pool": str(site.pool)},
        "issuers": [{"issuer": "https://iam.example.org/", "administrators": "admins"}],
        "templates": {"jobs": {"template": "chronos_job", "people": {"owner": "sub"}}},
        "hours_minutes": 0,
    }
    (tmp_path / "serve.yml").write_text(yaml.safe_dump(content))
    service = Service(settings.read(tmp_path / "serve.yml"))
    ada = User("https://iam.example.org", "ada", claims={"sub": "ada"})
    text = (TEMPLATES / "chronos_job.yaml").read_text()
    given = dict(pair.split("=", 1) for pair in JOB[:5])
    made = service.create(ada, Create(template=text, parameters=given))
    site.runs(("C", "ct:5:0:ada.night:", "TASK_FAILED"), stdout=HOSTILE)
    worker = Worker(service)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:

        def known() -> Deployment:
            return service.deployments.find(ada, made.uuid)

        until(lambda: not known().status.endswith("IN_PROGRESS"))
        assert known().status == "CREATE_COMPLETE", known().reason
        site.runs(("C", "ct:5:0:ada.night:", "TASK_FAILED"), stdout=HOSTILE)
        service.consoles.ask(known())
        until(lambda: not service.consoles.show(known()).waits)
        shown = service.consoles.show(known())
        assert (shown.failure, [(one.state, one.stdout) for one in shown.tasks]) == ("", [("failed", CLEAN)])
        service.deployments.delete(ada, made.uuid)
        until(lambda: known().status == "DELETE_COMPLETE")
        assert service.consoles.show(known()).tasks == []
    finally:
        worker.stop()
        thread.join()
        service.database.engine.dispose()


def until(true: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.2)
