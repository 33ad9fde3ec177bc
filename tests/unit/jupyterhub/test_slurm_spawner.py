"""From a choice to a job, and from a job to a notebook: also when the hub was restarted in between."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import logging
import pwd
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.slurm import certificates, client, cluster, engine, handover, reach, spawner, submission
from gpufarm_hub.slurm.cluster import Cluster
from gpufarm_hub.slurm.handover import Request
from gpufarm_hub.slurm.offers import Node, Partition
from gpufarm_hub.slurm.queue import Job
from gpufarm_hub.slurm.spawner import SlurmSpawner
from gpufarm_hub.spawning.engine import Death, EngineError
from gpufarm_hub.spawning.form import Choice, ChoiceError
from gpufarm_hub.spawning.spawner import RefusedSpawnError
from test_slurm_certificates import request as signing_request
from traitlets.config import Config

ACCOUNT = pwd.struct_passwd(("alice", "x", 2001, 2001, "", "/home/alice", "/bin/bash"))
NODES = (Node("gpu1", "10.77.0.12", ("gpu",), ("notebooks",), True, {"1g.10gb": 2}, {}),)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., SlurmSpawner]:
    """Return a spawner of alice, on a cluster with a partition of so many hours."""
    monkeypatch.setattr(pwd, "getpwnam", lambda name: ACCOUNT)
    monkeypatch.setattr(spawner, "LOOKS_EVERY", 0.01)
    folder = tmp_path / "nodes"
    folder.mkdir()
    certificates.ensure(folder, "127.0.0.1", datetime.now(UTC))

    def make(
        hours: float = 4, limit: float = 0, chosen: str = "", gpu: str = "", others: Any = ()
    ) -> SlurmSpawner:
        found: Any = SlurmSpawner.__new__(SlurmSpawner)
        monkeypatch.setattr(SlurmSpawner, "limit", Limit("everybody", slices=2, hours=limit))
        monkeypatch.setattr(SlurmSpawner, "log", logging.getLogger("test"))
        found._cluster = Cluster(Partition("gpu", hours), NODES)
        found.user = SimpleNamespace(name="alice", groups=[], spawners=dict(enumerate([found, *others])))
        found.cpu_limit, found.mem_limit, found.user_options = 1.5, 1 << 30, {}
        found.slurm = {"partition": "gpu", "node_venv": "/opt/jupyterhub-node"}
        found.certificates_folder = str(folder)
        found.hub_connect_url, found.http_timeout = "https://hub:8083", 0
        found.unit_name = "slurm:alice/"
        found._choice = Choice("1G", gpu, 2, "", chosen)
        found.orm_spawner = SimpleNamespace(name="", server=None, started=None, user_options={})
        return found  # type: ignore[no-any-return]

    return make


def job(spawner: SlurmSpawner, states: tuple[str, ...] = ("PENDING",), **values: Any) -> Job:
    mark = submission.mark(spawner._order())
    known: dict[str, Any] = {"number": 12, "owner": "alice/", "mark": mark, "uid": 2001, "states": states}
    rest = {"reason": "None", "start": None, "end": None, "gpus": "", "node": "", "status": 0, "signal": 0}
    return Job(**{**known, **rest, **values})


@pytest.mark.parametrize(
    ("hours", "limit", "chosen", "most", "minutes"),
    [
        (4, 2, "", 2, 130),
        (4, 2, "1", 2, 70),
        (4, 0, "", 4, 240),  # not beyond what the partition allows
        (4, 8, "", 4, 240),
        (0, 2, "", 2, 130),
        (0, 0, "", 0, 0),
    ],
)
def test_a_job_has_the_time_of_its_notebook_and_some_minutes_for_a_warning(
    made: Callable[..., SlurmSpawner], hours: float, limit: float, chosen: str, most: float, minutes: int
) -> None:
    one = made(hours, limit, chosen)
    assert one.most_hours == most
    assert one._order().minutes == minutes


def test_an_order_is_of_the_users_account(made: Callable[..., SlurmSpawner]) -> None:
    assert made(gpu="1g.10gb")._order() == submission.Order(
        "alice/", 2001, 2001, "/home/alice", 1.5, 1 << 30, "1g.10gb", 2, 240, "gpu"
    )


def test_only_what_the_cluster_has_may_be_chosen(made: Callable[..., SlurmSpawner]) -> None:
    other = SimpleNamespace(active=True, user_options={"gpu": "1g.10gb", "slices": "1"})
    over = SimpleNamespace(active=False, user_options={"gpu": "1g.10gb", "slices": "2"})
    one: Any = made(others=[other, over])
    one.file_groups, one.folders = {}, []
    assert one.apply_more({"gpu": "1g.10gb"}) == {}
    for options, words in (
        ({"gpu": "1g.10gb", "slices": "2"}, "your other notebooks have 1"),
        ({"gpu": "7g.80gb"}, "There is no GPU slice 7g.80gb in the cluster"),
    ):
        with pytest.raises(ChoiceError, match=words):
            one.apply_more(options)


@pytest.mark.parametrize("use_gpu", [True, False])
@pytest.mark.parametrize("options", [{}, {"gpu": "1g.10gb"}])
def test_a_cluster_whose_nodes_run_no_notebooks_says_so(
    made: Callable[..., SlurmSpawner],
    monkeypatch: pytest.MonkeyPatch,
    use_gpu: bool,
    options: dict[str, Any],
) -> None:
    one: Any = made()
    one.file_groups, one.folders, one.use_gpu = {}, [], use_gpu
    monkeypatch.setattr(SlurmSpawner, "memory_offered", ["1G"])
    one.cpu_choices = []
    monkeypatch.setattr(SlurmSpawner, "_ends", lambda self: "")
    monkeypatch.setattr(cluster, "read", lambda partition: Cluster(Partition("gpu", 4), ()))
    assert "No machine of the cluster runs notebooks" in asyncio.run(one.resource_fields())
    with pytest.raises(ChoiceError, match="No machine of the cluster runs notebooks"):
        one.apply_more(options)


@pytest.mark.parametrize("states", [("PENDING",), ("RUNNING",)])
def test_a_job_that_waits_for_the_same_start_is_taken_up(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch, states: tuple[str, ...]
) -> None:
    one = made()
    monkeypatch.setattr(engine, "job_of", lambda unit: job(one, states, start=time.time()))
    monkeypatch.setattr(engine, "stop", pytest.fail)
    asyncio.run(one.end_earlier())
    assert one._job == 12


@pytest.mark.parametrize(
    "values", [{"mark": "another"}, {"states": ("RUNNING",), "start": 1.0}, {"states": ("CANCELLED",)}]
)
def test_another_job_of_the_notebook_is_ended_first(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch, values: dict[str, Any]
) -> None:
    one, stopped = made(), []
    monkeypatch.setattr(engine, "job_of", lambda unit: job(one, **values))
    monkeypatch.setattr(engine, "stop", stopped.append)
    asyncio.run(one.end_earlier())
    assert one._job == 0 and stopped == ["slurm:alice/"]


def test_a_job_that_waits_outlives_the_hub(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made()
    monkeypatch.setattr(engine, "is_over", lambda unit: False)
    monkeypatch.setattr(engine, "stop", pytest.fail)
    one._check_pending = True
    # JupyterHub takes the start for failed, and forgets that it has looked when it clears up.
    assert asyncio.run(one.poll()) == 0
    one._check_pending = False
    assert asyncio.run(one.poll()) == 0
    asyncio.run(one.settle())


def test_a_job_that_waits_when_the_hub_is_restarted_ends_with_its_users_right_to_come_in(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, stopped = made(), []
    monkeypatch.setattr(engine, "stop", stopped.append)
    monkeypatch.setattr(engine, "is_over", lambda unit: False)
    one._check_pending = True
    assert asyncio.run(one.poll()) == 0
    asyncio.run(one.settle())
    assert not stopped
    another = made()  # after its look at the start, the hub throws the first one away
    asyncio.run(another.give_up())
    assert stopped == ["slurm:alice/"]


def test_a_notebook_that_runs_is_watched_after_a_restart(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, stopped = made(), []
    one._started = one._check_pending = True
    monkeypatch.setattr(engine, "is_over", lambda unit: False)
    monkeypatch.setattr(engine, "stop", stopped.append)
    assert asyncio.run(one.poll()) is None
    asyncio.run(one.settle())
    assert stopped == ["slurm:alice/"]


def test_a_question_that_fails_in_any_way_is_not_the_end(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one: Any = made()
    one._started, one._check_pending = True, False

    def is_over(unit: str) -> bool:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    monkeypatch.setattr(engine, "is_over", is_over)
    assert asyncio.run(one.poll()) is None


def launched(one: SlurmSpawner, monkeypatch: pytest.MonkeyPatch, then: Callable[[], Any]) -> Any:
    """Launch a notebook whose job gets number 12, do something, and return the address or the refusal."""

    async def answers(folder: Path, owner: str, host: str, port: int) -> bool:
        return owner == "alice/" and host == "10.77.0.12" and port < 50000

    monkeypatch.setattr(reach, "answers", answers)
    monkeypatch.setattr(engine, "submit", lambda order, script: 12)
    monkeypatch.setattr(SlurmSpawner, "get_env", lambda self: {"JUPYTERHUB_API_TOKEN": "secret"})
    monkeypatch.setattr(SlurmSpawner, "get_args", lambda self: ["--arg"])
    monkeypatch.setattr(SlurmSpawner, "server", SimpleNamespace(base_url="/user/alice/"))

    async def run() -> Any:
        task = asyncio.create_task(one.launch())
        while 12 not in handover.EXPECTED and not task.done():
            await asyncio.sleep(0.01)
        await then()
        return await asyncio.wait_for(task, 20)

    try:
        return asyncio.run(run())
    finally:
        assert handover.EXPECTED == {}


async def nothing() -> None:
    """Let the job do nothing."""


def test_a_job_that_asks_gets_its_certificate_and_the_hub_the_address(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, answers = made(), []
    monkeypatch.setattr(engine, "job_of", lambda unit: job(one, ("RUNNING",), node="gpu1", start=time.time()))
    monkeypatch.setattr(cluster, "read", lambda partition: Cluster(Partition("gpu", 4), NODES))

    async def ask() -> None:
        _key, signing = signing_request()
        answers.append(await handover.EXPECTED[12].answer(Request(2001, 12, 41234, signing)))

    assert launched(one, monkeypatch, ask) == "https://10.77.0.12:41234"
    (answer,) = answers
    assert answer["arguments"] == ["--arg"]
    assert answer["groups"] == one.groups
    assert answer["environment"]["JUPYTERHUB_SERVICE_URL"] == "https://0.0.0.0:41234/user/alice/"
    certificate = x509.load_pem_x509_certificate(answer["certificate"].encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [handover.name_of("alice/")]
    # The time in the queue does not count, and the keeper knows when the notebook ends.
    assert one.orm_spawner.started is not None
    assert one.orm_spawner.user_options == {"hours": "4"}


def test_a_notebook_that_does_not_answer_itself_has_not_started(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made()
    monkeypatch.setattr(engine, "job_of", lambda unit: job(one, ("RUNNING",), node="gpu1", start=time.time()))
    monkeypatch.setattr(cluster, "read", lambda partition: Cluster(Partition("gpu", 4), NODES))

    async def ask() -> None:
        await handover.EXPECTED[12].answer(Request(2001, 12, 60000, signing_request()[1]))

    with pytest.raises(RefusedSpawnError, match="began, but does not answer"):
        launched(one, monkeypatch, ask)


def test_a_controller_that_hangs_takes_no_threads_of_the_hub(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one: Any = made()
    one._started, one._check_pending = True, False
    names: list[str] = []
    monkeypatch.setattr(engine, "is_over", lambda unit: names.append(threading.current_thread().name))
    asyncio.run(one.poll())
    assert names and names[0].startswith("slurm")


def test_a_job_is_answered_once(made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch) -> None:
    one = made()
    monkeypatch.setattr(engine, "job_of", lambda unit: job(one, ("RUNNING",), node="gpu1", start=time.time()))
    monkeypatch.setattr(cluster, "read", lambda partition: Cluster(Partition("gpu", 4), NODES))

    async def ask_twice() -> None:
        _key, signing = signing_request()
        answer = handover.EXPECTED[12].answer
        both = [answer(Request(2001, 12, port, signing)) for port in (41234, 41235)]
        found = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(type(each).__name__ for each in found) == ["HandoverError", "dict"]

    assert launched(one, monkeypatch, ask_twice).startswith("https://10.77.0.12:4123")


@pytest.mark.parametrize(("hours", "least", "most"), [(0, 3000, 3650), (4, 1, 2)])
def test_a_certificate_lasts_as_long_as_its_notebook(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch, hours: float, least: int, most: int
) -> None:
    one, answers = made(hours), []
    monkeypatch.setattr(engine, "job_of", lambda unit: job(one, ("RUNNING",), node="gpu1", start=time.time()))
    monkeypatch.setattr(cluster, "read", lambda partition: Cluster(Partition("gpu", hours), NODES))

    async def ask() -> None:
        answers.append(await handover.EXPECTED[12].answer(Request(2001, 12, 41234, signing_request()[1])))

    launched(one, monkeypatch, ask)
    certificate = x509.load_pem_x509_certificate(answers[0]["certificate"].encode())
    assert least <= (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days <= most


def test_notebooks_that_wait_turn_no_others_away() -> None:
    c: Any = Config()
    c.JupyterHub.extra_handlers = []
    own = {"partition": "gpu", "hub_url": "https://hub:8083"}
    spawner.configure(c, {"engines": {"slurm": own}, "nodes_folder": "/etc/jupyterhub/nodes"})
    assert c.JupyterHub.concurrent_spawn_limit == 0


@pytest.mark.parametrize(
    ("values", "death", "words"),
    [
        ({"states": ("CANCELLED",)}, Death("administrator"), "an administrator cancelled it"),
        ({"states": ("CANCELLED",)}, None, "was taken out of the queue"),
        ({"states": ("FAILED",)}, Death("home"), r"\(your files are kept\)\.$"),
        ({"states": ("NODE_FAIL",)}, Death("node"), "the machine that it ran on has failed"),
        ({"states": ("RUNNING",), "start": 1.0, "node": "gpu1"}, None, "began on gpu1, but did not reach"),
        ({"number": 11}, None, "was taken out of the queue"),
        ({"reason": "BadConstraints"}, None, "has what you chose any more"),
    ],
)
def test_a_job_that_comes_to_nothing_is_explained(
    made: Callable[..., SlurmSpawner],
    monkeypatch: pytest.MonkeyPatch,
    values: dict[str, Any],
    death: Death | None,
    words: str,
) -> None:
    one = made()
    monkeypatch.setattr(engine, "job_of", lambda unit: job(one, **values))
    monkeypatch.setattr(engine, "death", lambda unit: death)
    with pytest.raises(RefusedSpawnError, match=words):
        launched(one, monkeypatch, nothing)


def test_a_controller_that_is_away_ends_no_wait(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made()
    answers = iter([EngineError("away"), EngineError("away"), job(one, ("CANCELLED",))])

    def job_of(unit: str) -> Job:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(engine, "job_of", job_of)
    monkeypatch.setattr(engine, "death", lambda unit: None)
    with pytest.raises(RefusedSpawnError, match="taken out of the queue"):
        launched(one, monkeypatch, nothing)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (client.RefusedError("sbatch: error: Invalid account or x"), "your account may not use the cluster"),
        (EngineError("sbatch: timed out"), "The cluster does not answer; try again later"),
    ],
)
def test_a_job_that_is_not_queued_is_explained(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch, error: EngineError, words: str
) -> None:
    one = made()

    def submit(order: submission.Order, script: str) -> int:
        raise error

    monkeypatch.setattr(engine, "submit", submit)
    with pytest.raises(RefusedSpawnError, match=words):
        asyncio.run(one.launch())


def test_the_script_tells_where_the_hub_is_and_nothing_secret(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, scripts = made(), []
    monkeypatch.setattr(engine, "submit", lambda order, script: scripts.append(script) or 12)
    assert one._submit(one._order()) == 12
    (script,) = scripts
    assert "exec /opt/jupyterhub-node/bin/python -I -m gpufarm_hub.slurm.job <<" in script
    assert '"hub": "https://hub:8083"' in script and "PRIVATE KEY" not in script


def test_the_job_of_an_earlier_start_says_nothing_of_this_one(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, seen = made(), []
    earlier = partial(job, one, number=11, node="gpu1")
    steps = [
        (11, earlier(("COMPLETED",))),
        (0, earlier(("COMPLETED", "COMPLETING"))),
        (12, earlier(("COMPLETED",))),
        (12, job(one, reason="Resources")),
        (12, job(one, ("RUNNING",), node="gpu2")),
        (12, job(one, ("FAILED",), node="gpu2")),
    ]

    def of_now(_unit: str) -> Job:
        if not steps:
            raise asyncio.CancelledError
        one._job, found = steps.pop(0)
        return found

    monkeypatch.setattr(engine, "job_of", of_now)

    async def told() -> None:
        async for event in one.progress():
            seen.append(event["message"])

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(told())
    assert seen == [
        "Your notebook is being prepared.",
        "Your notebook waits in the queue of the cluster: what you chose is in use.",
        "Your notebook begins on gpu2.",
    ]


def test_a_start_that_is_stopped_while_it_is_queued_leaves_no_job_behind(
    made: Callable[..., SlurmSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, queued = made(), []

    def submit(order: submission.Order, script: str) -> int:
        time.sleep(0.2)
        queued.append(12)
        return 12

    monkeypatch.setattr(engine, "submit", submit)

    async def stop_at_once() -> None:
        task = asyncio.create_task(one.launch())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert queued == [12]  # before the start is over, so that the stop finds it

    asyncio.run(stop_at_once())
