"""Jobs, slices and nodes of Slurm as metrics: what answers of Slurm lead to, and what silence does."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._metrics.io import slurm_command
from ansible_collections.gpufarm.cluster.plugins.module_utils._metrics.slurm import Cluster, render
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

NOW = 1795707218
# As Slurm 24.11 prints it, but for shares and usage.
ASSOCIATIONS = """\
Current Association Manager state
Association Records
ClusterName=farm Account=root UserName= Partition= Priority=0 ID=1 ParentAccount= GrpTRESMins=cpu=N(90)
ClusterName=farm Account=physics UserName= Partition= Priority=0 ID=3 ParentAccount=root(1) \
GrpTRES=cpu=N(0),gres/gpu=6(0) GrpTRESMins=cpu=N(60),gres/gpu=60000(30),gres/gpu:1g.10gb=0(120) \
GrpWall=N(0.00)
ClusterName=farm Account=physics UserName=ada(1000) Partition= Priority=0 ID=4 ParentAccount= \
GrpTRESMins=gres/gpu=60(30)
"""
HERE = socket.gethostname().partition(".")[0]
PREFIX = "gpufarm_slurm_"
Found = dict[tuple[str, ...], float]


def job(state: str, reason: str = "None", **fields: Any) -> dict[str, Any]:
    """Return a job with the fields that Slurm 24.11 writes."""
    since = fields.pop("since", NOW - 100)
    return {
        "partition": "gpu",
        "job_state": [state],
        "state_reason": reason,
        "account": "physics",
        "array_task_string": "",
        "eligible_time": {"set": True, "infinite": False, "number": since},
        "gres_detail": [],
    } | fields


def node(name: str, *state: str, used: str = "gpu:1g.10gb:0(IDX:N/A)", reason: str = "") -> dict[str, Any]:
    """Return a node with two kinds of slices."""
    gres = "gpu:3g.40gb:1(S:0),gpu:1g.10gb:4(S:0)"
    return {"name": name, "state": [*state], "reason": reason, "gres": gres, "gres_used": used}


def samples(text: str) -> Found:
    """Return the values by the rest of the name and the values of the labels in the order of their names."""
    return {
        (one.name.removeprefix(PREFIX), *(value for _, value in sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def found(jobs: list[dict[str, Any]], nodes: list[dict[str, Any]]) -> Found:
    return samples(render(Cluster({"ctl": True}, jobs, nodes), "", NOW))


def test_jobs_are_counted_by_state_and_tasks_of_arrays_are_jobs() -> None:
    told = found(
        [
            job("RUNNING"),
            job("PENDING", "JobArrayTaskLimit", array_task_string="2-5,7,9-13:2%1", since=0),
            job("PENDING", "DependencyNeverSatisfied", partition="small", since=0),
        ],
        [],
    )
    assert told["jobs", "gpu", "running"] == 1
    assert told["jobs", "gpu", "pending"] == 4 + 1 + 3
    assert told["jobs", "small", "pending"] == 1
    assert told["jobs_stuck", "small", "DependencyNeverSatisfied"] == 1


@pytest.mark.parametrize(
    ("reason", "stuck"),
    [
        ("PartitionTimeLimit", True),
        ("QOSMaxGRESPerJob", True),
        ("AssocMaxWallDurationPerJobLimit", True),
        ("QOSMaxGRESPerUser", False),
        ("AssocGrpGRES", False),
        ("JobHeldUser", False),
        ("Resources", False),
    ],
)
def test_jobs_that_nothing_can_run_are_told_apart(reason: str, stuck: bool) -> None:
    told = found([job("PENDING", reason)], [])
    assert told.get(("jobs_stuck", "gpu", reason), 0) == int(stuck)


def test_only_jobs_that_wait_for_their_turn_have_waited() -> None:
    told = found(
        [
            job("PENDING", "Priority", since=NOW - 300),
            job("PENDING", "Resources", since=NOW - 100),
            job("PENDING", "QOSMaxGRESPerUser", since=NOW - 9000),
            job("PENDING", "BeginTime", since=NOW + 9000),
            job("RUNNING", since=NOW - 9000),
        ],
        [],
    )
    assert told["wait_longest_seconds", "gpu"] == 300
    assert told["wait_mean_seconds", "gpu"] == 200
    assert not any(name[0].startswith("wait") for name in found([job("RUNNING")], []))


def test_slices_are_told_by_profile_and_by_account() -> None:
    told = found(
        [
            job("RUNNING", gres_detail=["gpu:1g.10gb:2(IDX:0,3)", "gpu:1g.10gb:1(IDX:1)"]),
            job("RUNNING", gres_detail=["gpu:3g.40gb:1(IDX:0)"], account="course"),
        ],
        [
            node("n1", "MIXED", used="gpu:3g.40gb:1(IDX:0),gpu:1g.10gb:2(IDX:0,3)"),
            node("n2", "MIXED", "DRAIN", used="gpu:1g.10gb:1(IDX:1)", reason='bad "fan"\n'),
            node("n3", "IDLE", "MAINTENANCE"),
            node("n4", "DOWN", "NOT_RESPONDING", reason="Not responding"),
        ],
    )
    assert told["slices_held", "physics", "1g.10gb"] == 3
    assert told["slices_held", "course", "3g.40gb"] == 1
    assert told["slices", "1g.10gb"] == 16 and told["slices_idle", "1g.10gb"] == 2
    assert told["slices", "3g.40gb"] == 4 and told["slices_idle", "3g.40gb"] == 0
    assert told["nodes", "mixed"] == told["nodes", "idle+maintenance"] == 1
    unusable = [name[1:] for name in told if name[0] == "node_unusable"]
    assert unusable == [
        ("n2", 'bad "fan"\n', "mixed+drain"),
        ("n4", "Not responding", "down+not_responding"),
    ]


@given(
    st.lists(st.text(max_size=8), max_size=4), st.text(max_size=12), st.text("0123456789-,:%", max_size=12)
)
def test_no_name_of_a_job_breaks_the_page(gres: list[str], account: str, array: str) -> None:
    text = render(Cluster({}, [job("RUNNING", account=account, gres_detail=gres)], []), "", NOW)
    assert samples(text)["metrics_up",] == 1
    assert found([job("PENDING", array_task_string=array)], [])["jobs", "gpu", "pending"] >= 1


def test_budgets_are_told_of_accounts_with_a_limit() -> None:
    told = samples(render(Cluster({}, associations=ASSOCIATIONS), "", NOW))
    assert {key: value for key, value in told.items() if key[0].startswith("budget")} == {
        ("budget_hours", "physics", "gpu"): 1000,
        ("budget_used_hours", "physics", "gpu"): 0.5,
        ("budget_hours", "physics", "gpu:1g.10gb"): 0,
        ("budget_used_hours", "physics", "gpu:1g.10gb"): 2,
    }


class Slurm:
    """A fake of the programs of Slurm: answers by their first words."""

    def __init__(self, **answers: timed.Answer) -> None:
        self.answers = answers
        self.asked: list[list[str]] = []

    def run(self, words: list[str], seconds: float) -> timed.Answer:
        assert words[0] == "setpriv" and "--reuid=slurm" in words and seconds <= 20
        self.asked.append(words[words.index("--") + 1 :])
        return self.answers["_".join(word for word in self.asked[-1] if not word.startswith("-"))]


def said(answer: Mapping[str, Any]) -> timed.Answer:
    return timed.Answer(0, json.dumps(answer), "")


def ping(**controllers: bool) -> timed.Answer:
    return said({"pings": [{"hostname": name, "responding": up} for name, up in controllers.items()]})


def written(monkeypatch: pytest.MonkeyPatch, folder: Path, slurm: Slurm) -> tuple[int, Found]:
    path = folder / "slurm.prom"
    monkeypatch.setattr(sys, "argv", ["gpufarm-slurm-metrics", str(path)])
    monkeypatch.setattr(timed, "run", slurm.run)
    status = slurm_command.main()
    assert path.stat().st_mode & 0o777 == 0o644
    return status, samples(path.read_text())


ALL = {
    "squeue": said({"jobs": [job("RUNNING")]}),
    "scontrol_show_nodes": said({"nodes": [node("n", "IDLE")]}),
    "scontrol_show_assoc_mgr_flags=assoc": timed.Answer(0, ASSOCIATIONS, ""),
}


def test_the_leading_controller_tells_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status, told = written(
        monkeypatch, tmp_path, Slurm(scontrol_ping=ping(**{HERE: True, "b": False}), **ALL)
    )
    assert told["budget_hours", "physics", "gpu"] == 1000
    assert status == 0 and told["metrics_up",] == 1
    assert told["controller_up", HERE] == 1 and told["controller_up", "b"] == 0
    assert told["jobs", "gpu", "running"] == told["nodes", "idle"] == 1


def test_another_controller_tells_nothing_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slurm = Slurm(scontrol_ping=ping(first=True, **{HERE: True}), **ALL)
    status, told = written(monkeypatch, tmp_path, slurm)
    assert status == 0 and told["controller_up", HERE] == told["metrics_up",] == 1
    assert slurm.asked == [["scontrol", "ping", "--json"]]
    slurm = Slurm(scontrol_ping=ping(first=False, **{HERE: True}), **ALL)
    assert ("jobs", "gpu", "running") in written(monkeypatch, tmp_path, slurm)[1]


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"scontrol_ping": ping(**{HERE: False})}, f"No controller of Slurm answers ({HERE})"),
        (
            {"scontrol_ping": timed.Answer(None, "", "")},
            "'scontrol ping --json' did not end within 20 seconds",
        ),
        ({"squeue": timed.Answer(1, "", "Unable to contact\n")}, "'squeue --json' fails: Unable to contact;"),
        ({"squeue": timed.Answer(-9, "", "")}, "'squeue --json' fails: exit status -9;"),
        ({"squeue": timed.Answer(0, "JOBID", "")}, "'squeue --json' did not write JSON"),
    ],
)
def test_silence_is_told_and_no_old_number_stays(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    answers: dict[str, timed.Answer],
    sentence: str,
) -> None:
    slurm = Slurm(**{"scontrol_ping": ping(**{HERE: True}), **ALL, **answers})
    status, told = written(monkeypatch, tmp_path, slurm)
    assert status == 1 and told["metrics_up",] == 0
    assert not any(name[0] in {"jobs", "nodes"} for name in told)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(sentence) and line.endswith(".")


def test_a_host_without_setpriv_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slurm_command, "AS_SLURM", (str(tmp_path / "setpriv"),))
    monkeypatch.setattr(sys, "argv", ["gpufarm-slurm-metrics", str(tmp_path / "slurm.prom")])
    assert slurm_command.main() == 1
    assert "cannot be started: No such file" in capsys.readouterr().err
