"""The roles that ask a service for something: check mode, idempotence, a change, refusals, removal."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import KEY, Site

SECRET = "a value that nobody sees"


@dataclass(frozen=True)
class Case:
    """A role with what is asked of it, another wish, and how to see what there is.

    :ivar shown: what a result has to tell besides
    """

    role: str
    first: dict[str, Any]
    second: dict[str, Any]
    seen: Callable[[Site], Any]
    before: Any
    after: Any
    shown: Callable[[dict[str, Any]], bool]


def of_app(path: str, field: str) -> Callable[[Site], Any]:
    return lambda site: (site.app(path) or {}).get(field)


CONTAINER = {
    "container_request_kind": "ssh",
    "container_request_owner": "ada",
    "container_request_name": "box",
    "container_request_image": "registry.example.org/box:1",
    "container_request_ssh_keys": KEY,
    "container_request_gpus": 1,
}
APP = {"id": "/ada/web", "cmd": "serve", "cpus": 1, "mem": 64}
JOB = {"name": "ada.night", "schedule": "R/2030-01-01T00:00:00Z/P1D", "command": "train", "mem": 256}
CASES = [
    Case(
        "container_request",
        CONTAINER,
        CONTAINER | {"container_request_memory": "2 GiB"},
        of_app("/ada/box", "mem"),
        3815,
        2048,
        lambda told: told["host_key_fingerprint"].startswith("SHA256:") and told["machine"] == "gpu1",
    ),
    Case(
        "marathon_app",
        {"marathon_app_definition": APP, "marathon_app_secret_env": {"TOKEN": SECRET}},
        {"marathon_app_definition": APP | {"mem": 128}, "marathon_app_secret_env": {"TOKEN": SECRET}},
        of_app("/ada/web", "mem"),
        64,
        128,
        lambda told: told["id"] == "/ada/web" and len(told["tasks"]) == 1,
    ),
    Case(
        "chronos_job",
        {"chronos_job_definition": JOB, "chronos_job_secret_env": {"TOKEN": SECRET}},
        {"chronos_job_definition": JOB | {"mem": 512}, "chronos_job_secret_env": {"TOKEN": SECRET}},
        lambda site: site.jobs().get("ada.night", {}).get("mem"),
        256,
        512,
        lambda told: told == {"name": "ada.night"},
    ),
]


def changed(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a run of a play changed something; it must have gone well, and have told no secret."""
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (SECRET, "PRIVATE KEY"):
        assert words not in done.stdout + done.stderr
    [number] = re.findall(r"changed=(\d+)", done.stdout)
    return number != "0"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.role)
def test_from_nothing_to_nothing(site: Site, case: Case) -> None:
    gone = {f"{case.role}_state": "absent"}
    assert changed(site.play(case.role, "--check", **case.first)) and case.seen(site) is None
    assert changed(site.play(case.role, **case.first)) and case.seen(site) == case.before
    first = site.result()
    assert case.shown(first)
    assert not changed(site.play(case.role, **case.first)) and site.result() == first
    assert changed(site.play(case.role, "--check", **case.second)) and case.seen(site) == case.before
    assert changed(site.play(case.role, **case.second)) and case.seen(site) == case.after
    # What leads in stays the same over a change.
    assert {**site.result(), "tasks": 0} == {**first, "tasks": 0}
    assert changed(site.play(case.role, "--check", **case.second, **gone)) and case.seen(site) == case.after
    assert changed(site.play(case.role, **case.second, **gone)) and case.seen(site) is None
    assert not any(site.result().values())
    assert not changed(site.play(case.role, **case.second, **gone))


@pytest.mark.parametrize(
    ("role", "variables", "words"),
    [
        (
            "container_request",
            CONTAINER | {"container_request_owner": "root", "container_request_image": "x; y"},
            ["containers never run as root", "name an image"],
        ),
        (
            "container_request",
            CONTAINER | {"container_request_password": "correct horse battery"},
            ["SSH takes keys only"],
        ),
        (
            "container_request",
            CONTAINER | {"container_request_gpus": 2},
            ["The quota of ada is 1 GPUs, 0 are in use, and 2 are asked for"],
        ),
        (
            "container_request",
            CONTAINER | {"container_request_mesos_urls": []},
            ["container_request_marathon_urls and container_request_mesos_urls must both be given"],
        ),
        ("marathon_app", {"marathon_app_definition": {"cmd": "x"}}, ["marathon_app_definition needs id"]),
        (
            "marathon_app",
            {"marathon_app_definition": APP | {"gpu": 1, "uris": []}},
            ["no field gpu; did you mean gpus?", "uris is outdated"],
        ),
        ("chronos_job", {"chronos_job_urls": []}, ["chronos_job_urls must name the servers"]),
        ("chronos_job", {"chronos_job_definition": JOB | {"gpus": 1}}, ["has dropped gpus from the job"]),
    ],
)
def test_what_cannot_work_is_refused_and_leaves_nothing(
    site: Site, role: str, variables: dict[str, Any], words: list[str]
) -> None:
    done = site.play(role, **variables)
    told = " ".join(done.stdout.split())
    assert done.returncode != 0, told
    for text in words:
        assert text in told, told
    assert site.app("/ada/box") is None and site.app("/ada/web") is None and site.jobs() == {}
