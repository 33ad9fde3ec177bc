"""Hours of slices, GPUs, CPUs and memory, from what Slurm and the hub recorded."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import csv
import gzip
import io
import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.filter.usage_report import usage_report
from ansible_collections.gpufarm.cluster.plugins.module_utils._usage.report import (
    FIELDS,
    HOURS,
    as_text,
    from_text,
    totals,
    within,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._usage.use import (
    Use,
    from_audit,
    from_leases,
    from_sacct,
    moment,
)
from ansible_collections.gpufarm.cluster.plugins.modules import usage_info
from hypothesis import given
from hypothesis import strategies as st

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
EPOCH = int(NOON.timestamp())
# As sacct 24.11.5 prints jobs with SLURM_TIME_FORMAT=%s: one that ended, one that runs, one that waits.
SACCT = f"""\
17|farm|ada|physics|{EPOCH - 7200}|{EPOCH - 3600}|cpu=2,gres/gpu:1g.10gb=1,gres/gpu=1,mem=512M
18|farm|ben|course|{EPOCH - 1800}|Unknown|billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=8G,node=1
19|farm|ben|course|None|Unknown|
"""
RETURNED = {
    "time": "2026-11-20T11:00:00.000+00:00",
    "event": "returned",
    "user": "ada",
    "server": "",
    "profile": "3g.40gb",
    "slices": ["MIG-1", "MIG-2"],
    "since": "2026-11-20T09:00:00+00:00",
}
LEASE = {
    "unit": "jupyter-ben-second.service",
    "slices": [{"uuid": "GPU-1", "profile": "NVIDIA A100-SXM4-80GB", "gpu": 0}],
    "taken": "2026-11-20T11:30:00+00:00",
}


def hours(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows]


def test_jobs_of_slurm() -> None:
    ended, running = from_sacct(SACCT, NOON)
    assert (ended.user, ended.group, ended.hours) == ("ada", "physics", 1)
    assert (ended.slices, ended.gpus, ended.cpus, ended.memory) == ({"1g.10gb": 1}, 0, 2, 0.5)
    assert (running.end, running.slices, running.gpus, running.memory) == (NOON, {}, 2, 8)


def test_types_of_slurm_with_a_model_are_slices_too() -> None:
    line = (
        f"1|farm|ada|x|{EPOCH}|{EPOCH + 3600}|cpu=1,gres/gpu=3,gres/gpu:a100=1,gres/gpu:nvidia_a100_1g.10gb=2"
    )
    [job] = from_sacct(line, NOON)
    assert (job.slices, job.gpus) == ({"1g.10gb": 2}, 1)


def test_slices_of_notebooks() -> None:
    damaged = ["", "{", "[]", '{"event": "returned"}', json.dumps({**RETURNED, "event": "taken"})]
    [ended] = from_audit([*damaged, json.dumps(RETURNED)], "gpu1")
    assert (ended.user, ended.slices, ended.gpus, ended.hours) == ("ada", {"3g.40gb": 2}, 0, 2)
    [held] = from_leases(json.dumps({"leases": {"ben/second": LEASE}}), "gpu1", NOON)
    assert (held.user, held.slices, held.gpus, held.hours) == ("ben", {}, 1, 0.5)


def test_notebooks_that_may_share_a_slice_count_a_part_each() -> None:
    [ended] = from_audit([json.dumps({**RETURNED, "notebooks": 4})], "gpu1")
    assert ended.slices == {"3g.40gb": 0.5}
    [held] = from_leases(json.dumps({"leases": {"ben/": {**LEASE, "notebooks": 4}}}), "gpu1", NOON)
    assert (held.slices, held.gpus) == ({}, 0.25)
    assert hours(totals([held], ["user"])) == [("ben", 0, 0.125, 0, 0)]


def test_a_slice_that_is_given_back_meanwhile_counts_once() -> None:
    begin = RETURNED["since"]
    lease = {
        "slices": [{"uuid": "MIG-1", "profile": "3g.40gb"}, {"uuid": "MIG-2", "profile": "3g.40gb"}],
        "taken": begin,
    }
    held = from_leases(json.dumps({"leases": {"ada/": lease}}), "gpu1", NOON)
    [use] = within([*held, *from_audit([json.dumps(RETURNED)], "gpu1")], NOON - timedelta(days=1), NOON)
    assert use.hours == 2


def test_hours_by_what_is_asked_for() -> None:
    uses = list(from_sacct(SACCT, NOON))
    assert hours(totals(uses, ["group"])) == [("course", 0, 1, 2, 4), ("physics", 1, 0, 2, 0.5)]
    assert hours(totals(uses, ["user", "profile"])) == [
        ("ada", "", 0, 0, 2, 0.5),
        ("ada", "1g.10gb", 1, 0, 0, 0),
        ("ben", "", 0, 1, 2, 4),
    ]


def test_a_job_over_the_turn_of_the_year_is_divided() -> None:
    evening = datetime(2026, 12, 31, 22, tzinfo=UTC)
    job = Use("slurm", "1", "ada", "", evening, evening + timedelta(hours=3), gpus=1)
    assert [(row["month"], row["gpu_hours"]) for row in totals([job], ["month"])] == [
        ("2026-12", 2),
        ("2027-01", 1),
    ]


def test_only_the_period_counts_and_each_use_once() -> None:
    uses = [*from_sacct(SACCT, NOON), *from_sacct(SACCT, NOON)]
    cut = list(within(uses, NOON - timedelta(minutes=90), NOON))
    assert [(one.user, one.hours) for one in cut] == [("ada", 0.5), ("ben", 0.5)]
    assert list(within(uses, NOON, NOON + timedelta(days=1))) == []


def test_the_forms_of_a_report() -> None:
    told = [as_text(one) for one in from_sacct(SACCT, NOON)]
    made = usage_report(told + told, ["user"])
    assert made["table"].splitlines() == [
        "user  slice hours  gpu hours  cpu hours  memory gib hours",
        "ada           1.0        0.0        2.0               0.5",
        "ben           0.0        1.0        2.0               4.0",
        "all           1.0        1.0        4.0               4.5",
    ]
    assert next(csv.DictReader(io.StringIO(made["csv"])))["slice_hours"] == "1.0"
    [ada, _ben] = made["records"]
    assert (ada["LocalUserId"], ada["WallDuration"], ada["Slices"]) == ("ada", "PT3600S", {"1g.10gb": 1})


def test_a_report_of_nothing() -> None:
    made = usage_report([], ["user"])
    assert (made["rows"], made["records"]) == ([], [])
    assert made["table"].splitlines()[1].split() == ["all", "0.0", "0.0", "0.0", "0.0"]


@pytest.mark.parametrize("by", [[], ["user", "user"], ["hour"]])
def test_rows_that_cannot_be_are_refused(by: list[str]) -> None:
    with pytest.raises(
        Exception, match="name some of month, user, group, source, profile, machine, identity once"
    ):
        usage_report([], by)


def test_no_spreadsheet_takes_a_name_for_a_formula() -> None:
    use = Use("slurm", "1", "=cmd()", "@x", NOON, NOON + timedelta(hours=1), gpus=1)
    made = usage_report([as_text(use)], ["user", "group"])
    assert made["csv"].splitlines()[1].startswith("'=cmd(),'@x,")


USES = st.builds(
    lambda source, number, user, group, begin, length, slices, gpus, cpus: Use(
        source, str(number), user, group, begin, begin + length, slices, gpus, cpus, 1.5
    ),
    st.sampled_from(["slurm", "hub"]),
    st.integers(),
    st.sampled_from(["ada", "ben"]),
    st.sampled_from(["", "physics"]),
    st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),
    st.timedeltas(timedelta(seconds=1), timedelta(days=100)),
    st.dictionaries(st.sampled_from(["1g.10gb", "3g.40gb"]), st.integers(1, 4)),
    st.integers(0, 8),
    st.integers(0, 64),
)


@given(
    st.lists(USES, max_size=6, unique_by=lambda one: one.identity),
    st.lists(st.sampled_from(FIELDS), unique=True, min_size=1),
)
def test_no_hour_is_lost_or_counted_twice(uses: list[Use], by: list[str]) -> None:
    rows = totals(uses, by)
    wanted = (
        sum(one.hours * sum(one.slices.values()) for one in uses),
        sum(one.hours * one.gpus for one in uses),
        sum(one.hours * one.cpus for one in uses),
        sum(one.hours * one.memory for one in uses),
    )
    assert [sum(row[name] for row in rows) for name in HOURS] == pytest.approx(wanted, abs=0.01)
    assert len({tuple(row[name] for name in by) for row in rows}) == len(rows)


@given(USES)
def test_a_use_survives_json(use: Use) -> None:
    assert from_text(json.loads(json.dumps(as_text(use)))) == use


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "=1"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no time; give one such as"):
        moment(text)


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Run the module on a host with a sacct that prints SACCT, and with a hub's files."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sacct").write_text(
        f'#!/bin/sh\ncd {tmp_path}\nprintf \'%s \' "$@" "$TZ" > asked\ncat jobs\nexit $(cat code)\n'
    )
    (programs / "sacct").chmod(0o755)
    (tmp_path / "jobs").write_text(SACCT)
    (tmp_path / "code").write_text("0")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    log = tmp_path / "audit.jsonl"
    log.write_text(json.dumps(RETURNED) + "\n")
    earlier = {
        **RETURNED,
        "user": "eve",
        "since": "2026-11-19T09:00:00+00:00",
        "time": "2026-11-19T10:00:00+00:00",
    }
    (tmp_path / "audit.jsonl.1.gz").write_bytes(gzip.compress(json.dumps(earlier).encode()))
    (tmp_path / "leases.json").write_text(json.dumps({"leases": {"ben/second": LEASE}}))

    def call(**arguments: Any) -> Any:
        given = {"audit_log": str(log), "leases": str(tmp_path / "leases.json"), **arguments}
        with patch_module_args(given), pytest.raises(SystemExit):
            usage_info.main()
        return json.loads(capsys.readouterr().out)

    return call


def test_the_module_reads_both_sources(run: Callable[..., Any], tmp_path: Path) -> None:
    told = run(sources=["slurm", "hub"], since="2026-11-01", before="2026-11-20T12:00")
    assert sorted((one["source"], one["user"]) for one in told["uses"]) == [
        ("hub", "ada"), ("hub", "ben"), ("hub", "eve"), ("slurm", "ada"), ("slurm", "ben"),
    ]  # fmt: skip
    assert "--allusers" in (tmp_path / "asked").read_text()
    assert {one["machine"] for one in told["uses"]} == {os.uname().nodename}


def test_the_module_takes_the_name_of_the_machine(run: Callable[..., Any]) -> None:
    told = run(sources=["slurm"], since="2026-11-01", before="2026-11-20T12:00", machine="ctl")
    assert {one["machine"] for one in told["uses"]} == {"ctl"}


def test_the_hour_that_a_clock_shows_twice_is_two_hours(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rome had 02:30 twice on 2026-10-25; one question for both would lose the jobs of an hour."""
    monkeypatch.setenv("TZ", "Europe/Rome")
    time.tzset()
    asked = []
    try:
        for begin in ("2026-10-25T00:30", "2026-10-25T01:30"):
            run(sources=["slurm"], since=begin, before="2026-10-25T03:00")
            asked += (tmp_path / "asked").read_text().split()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [word for word in asked if word.startswith("--starttime=")] == [
        "--starttime=2026-10-25T00:30:00",
        "--starttime=2026-10-25T01:30:00",
    ]
    assert asked.count("UTC") == 2


def test_a_sacct_that_fails_is_no_empty_answer(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "code").write_text("1")
    assert "sacct does not tell the jobs" in run(sources=["slurm"], since="2026-11-01")["msg"]


def test_a_host_without_slurm_is_told(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "The host has no sacct" in run(sources=["slurm"], since="2026-11-01")["msg"]


def test_an_empty_period_is_refused(run: Callable[..., Any]) -> None:
    assert "is empty; correct it" in run(sources=["hub"], since="2026-11-02", before="2026-11-01")["msg"]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"leases": []}', '{"leases": {"a/": {"slices": [], "taken": "x"}}}']
)
def test_damaged_leases_are_told(run: Callable[..., Any], tmp_path: Path, text: str) -> None:
    (tmp_path / "leases.json").write_text(text)
    assert "The uses cannot be read" in run(sources=["hub"], since="2026-11-01")["msg"]


def test_a_log_that_is_cut_off_is_told(run: Callable[..., Any], tmp_path: Path) -> None:
    whole = (tmp_path / "audit.jsonl.1.gz").read_bytes()
    (tmp_path / "audit.jsonl.1.gz").write_bytes(whole[:-12])
    assert "The uses cannot be read" in run(sources=["hub"], since="2026-11-01")["msg"]
