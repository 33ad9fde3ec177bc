# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of users: who sees what, which statuses allow what, and quotas that hold when many ask at once."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from gpufarm.serve.database import Database
from gpufarm.serve.deployments import Deployments, Filter, Wanted
from gpufarm.serve.people import Person, User
from gpufarm.serve.quotas import Quota, Quotas
from gpufarm.serve.refusals import Conflict, Forbidden, Missing
from gpufarm.serve.runs import Claim, Ending, Lost, Runs
from gpufarm.serve.tables import Audit, Run
from sqlalchemy import select

both = pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
IAM, OTHER_IAM = "https://iam.example.org", "https://other.example.org"
ANN, BOB = User(IAM, "ann"), User(IAM, "bob")
ADMIN = User(IAM, "root", administrator=True)
STRANGERS = [BOB, User(OTHER_IAM, "ann"), User(OTHER_IAM, "root", administrator=True)]
NO_LIMITS = Quotas()
WELL = Ending(well=True, outputs={"url": "https://x"})


def wanted(machines: int = 1, group: str = "") -> Wanted:
    return Wanted("notes", "text", machines=machines, timeout=60, user_group=group)


def store(database: Database, quotas: Quotas = NO_LIMITS) -> tuple[Deployments, Runs]:
    return Deployments(database, quotas, "https://paas"), Runs(database, "https://paas")


def begun(runs: Runs) -> Claim:
    claim = runs.claim("w", 60)
    assert claim
    return claim


def entries(database: Database) -> list[tuple[str, str, str]]:
    with database.reading() as session:
        found = session.scalars(select(Audit).order_by(Audit.id))
        return [(entry.subject, entry.action, entry.deployment) for entry in found]


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda user: f"{user.subject}@{user.issuer[8:13]}")
def test_deployments_of_others_are_not_there(database: Database, stranger: User) -> None:
    deployments, _runs = store(database)
    made = deployments.create(ANN, wanted())
    for attempt in (deployments.find, deployments.delete, deployments.reset):
        with pytest.raises(Missing):
            attempt(stranger, made.uuid)
    with pytest.raises(Missing):
        deployments.update(stranger, made, wanted())
    assert deployments.page(stranger, Filter(stranger), 0, 10) == ([], 0)
    for owner in (ANN, Person(IAM, "root")):
        with pytest.raises(Forbidden):
            deployments.page(stranger, Filter(owner), 0, 10)
    if not stranger.administrator:
        with pytest.raises(Forbidden):
            deployments.page(stranger, Filter(None), 0, 10)
    else:
        assert deployments.page(stranger, Filter(None), 0, 10) == ([], 0)
    assert deployments.find(ANN, made.uuid).status == "CREATE_IN_PROGRESS"


def test_each_look_of_an_administrator_is_noted(database: Database) -> None:
    deployments, _runs = store(database)
    made = deployments.create(ANN, wanted())
    deployments.find(ANN, made.uuid)
    assert entries(database) == [("ann", "create", made.uuid)]
    deployments.find(ADMIN, made.uuid)
    deployments.page(ADMIN, Filter(None), 0, 10)
    deployments.page(ADMIN, Filter(ANN), 0, 10)
    deployments.delete(ADMIN, made.uuid)
    assert entries(database)[1:] == [
        ("root", "read", made.uuid),
        ("root", "list", ""),
        ("root", "list", ""),
        ("root", "delete", made.uuid),
    ]


def test_lists_are_filtered_and_the_newest_is_first(database: Database) -> None:
    deployments, _runs = store(database)
    first, second, third = (deployments.create(ANN, wanted(group=group)) for group in ("a", "b", "a"))
    deployments.delete(ANN, third.uuid)
    mine = [entry.uuid for entry in deployments.page(ANN, Filter(ANN), 0, 10)[0]]
    assert mine == [third.uuid, second.uuid, first.uuid]
    found, total = deployments.page(ANN, Filter(ANN), 1, 2)
    assert ([entry.uuid for entry in found], total) == ([first.uuid], 3)
    found, total = deployments.page(ANN, Filter(ANN, "a", ["DELETE_COMPLETE"]), 0, 10)
    assert ([entry.uuid for entry in found], total) == ([first.uuid], 1)


@both
def test_quotas_hold_when_many_ask_at_once(database: Database) -> None:
    quotas = Quotas(user=Quota(deployments=3), group=Quota(machines=4))
    deployments, _runs = store(database, quotas)

    def attempt(number: int) -> bool:
        try:
            deployments.create(User(IAM, f"user{number % 4}"), wanted(group="g"))
        except Forbidden:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(24))) == 4


def machine(node: str) -> dict[str, str]:
    return {"node": node, "type": "tosca.nodes.Compute", "host": f"host of {node}"}


@pytest.mark.parametrize("given_up", [False, True])
def test_a_removal_that_failed_counts_the_machines_that_are_not_free(
    database: Database, given_up: bool
) -> None:
    deployments, runs = store(database, Quotas(user=Quota(machines=3)))
    made = deployments.create(ANN, wanted(machines=3))
    nodes = [machine("head"), machine("worker"), machine("worker[2]"), {"node": "hub", "type": "x"}]
    runs.finish(begun(runs), Ending(well=True, resources=nodes))
    deployments.delete(ANN, made.uuid)
    claim = begun(runs)
    if given_up:
        deployments.reset(ANN, made.uuid)
    runs.finish(claim, Ending(well=False, reason="m3 is dead", held=["worker[2]"]))
    found = deployments.find(ANN, made.uuid)
    assert (found.status, found.machines) == ("DELETE_FAILED", 1)
    assert [one["node"] for one in found.resources] == ["worker[2]", "hub"]
    deployments.create(ANN, wanted(machines=2))
    with pytest.raises(Forbidden):
        deployments.create(ANN, wanted())


@both
def test_only_an_administrator_gives_machines_up(database: Database) -> None:
    deployments, runs = store(database)
    made = deployments.create(ANN, wanted())
    runs.finish(begun(runs), WELL)
    for user, force in ((ANN, True), (ADMIN, False), (ADMIN, True)):
        deployments.delete(user, made.uuid, force=force)
        claim = begun(runs)
        assert claim.force is (user is ADMIN and force)
        runs.finish(claim, Ending(well=False, reason="m3 is gone"))
    deleted = [(who, what) for who, what, _uuid in entries(database) if "delete" in what]
    assert deleted == [("ann", "delete"), ("root", "delete"), ("root", "force delete")]


def test_quotas_count_what_is_not_gone(database: Database) -> None:
    deployments, runs = store(database, Quotas(user=Quota(deployments=2, machines=3)))
    first = deployments.create(ANN, wanted(2))
    with pytest.raises(Forbidden, match="4 of at most 3 machines"):
        deployments.create(ANN, wanted(2))
    deployments.create(ANN, wanted(1))
    with pytest.raises(Forbidden, match="3 of at most 2 deployments"):
        deployments.create(ANN, wanted(0))
    deployments.create(BOB, wanted(3))
    deployments.delete(ANN, first.uuid)
    changed = deployments.create(ANN, wanted(2))
    while claim := runs.claim("w", 60):
        runs.finish(claim, WELL)
    with pytest.raises(Forbidden, match="4 of at most 3 machines"):
        deployments.update(ANN, deployments.find(ANN, changed.uuid), wanted(3))
    deployments.update(ANN, deployments.find(ANN, changed.uuid), wanted(1))


def test_machines_are_free_when_an_update_has_freed_them(database: Database) -> None:
    deployments, runs = store(database, Quotas(user=Quota(machines=3)))
    made = deployments.create(ANN, wanted(3))

    def ends(how: Ending) -> None:
        claim = runs.claim("w", 60)
        assert claim
        runs.finish(claim, how)

    def has_room(machines: int) -> bool:
        try:
            deployments.delete(ANN, deployments.create(ANN, wanted(machines)).uuid)
        except Forbidden:
            return False
        return True

    ends(WELL)
    deployments.update(ANN, deployments.find(ANN, made.uuid), wanted(1))
    assert not has_room(1)  # the run has not freed any machine
    ends(Ending(well=False, reason="stopped"))
    assert not has_room(1)  # nobody knows which machines it has freed
    deployments.update(ANN, deployments.find(ANN, made.uuid), wanted(2))
    ends(WELL)
    assert has_room(1) and not has_room(2)
    deployments.update(ANN, deployments.find(ANN, made.uuid), wanted(3))
    assert not has_room(1)


def test_a_deployment_over_a_smaller_quota_can_shrink(database: Database) -> None:
    deployments, runs = store(database)
    made = deployments.create(ANN, wanted(3))
    claim = runs.claim("w", 60)
    assert claim
    runs.finish(claim, WELL)
    smaller, _runs = store(database, Quotas(user=Quota(machines=1)))
    smaller.update(ANN, smaller.find(ANN, made.uuid), wanted(2))


def test_a_group_of_another_issuer_is_another_group(database: Database) -> None:
    deployments, _runs = store(database, Quotas(group=Quota(deployments=1)))
    deployments.create(ANN, wanted(group="g"))
    deployments.create(User(OTHER_IAM, "ann"), wanted(group="g"))
    with pytest.raises(Forbidden, match="group g has"):
        deployments.create(BOB, wanted(group="g"))


@both
def test_each_run_is_claimed_once(database: Database) -> None:
    deployments, runs = store(database)
    for _ in range(20):
        deployments.create(ANN, wanted())

    def work(number: int) -> list[int]:
        found = []
        while claim := runs.claim(f"worker{number}", 60):
            found.append(claim.id)
        return found

    with ThreadPoolExecutor(4) as pool:
        claimed = [run for part in pool.map(work, range(4)) for run in part]
    assert len(claimed) == len(set(claimed))
    claimed += work(9)  # PostgreSQL skips what another transaction locks
    assert len(claimed) == len(set(claimed)) == 20


@both
def test_requests_and_workers_that_meet_wait_for_each_other(database: Database) -> None:
    """None is refused because two transactions want the same rows in another order."""
    deployments, runs = store(database)
    for number in range(40):
        made = deployments.create(ANN, wanted())
        lost = runs.claim("w", -1 if number % 2 else 60)
        assert lost
        together = Barrier(2)

        def ends(claim: Claim = lost, together: Barrier = together) -> None:
            together.wait()
            with contextlib.suppress(Lost):
                runs.finish(claim, WELL)

        def loses(together: Barrier = together) -> None:
            together.wait()
            runs.claim("other", 60)

        def deletes(uuid: str = made.uuid, together: Barrier = together) -> None:
            together.wait()
            deployments.delete(ANN, uuid)

        with ThreadPoolExecutor(2) as pool:
            done = [pool.submit(loses if number % 2 else ends), pool.submit(deletes)]
            for one in done:
                one.result()
        while claim := runs.claim("w", 60):
            runs.finish(claim, WELL)


@both
def test_the_last_lines_are_those_of_the_last_runs(database: Database) -> None:
    deployments, _runs = store(database)
    own = deployments.create(ANN, wanted()).uuid
    assert deployments.last_lines(own, 3) == ([], False)
    with database.changing() as session:
        for log in ("1\n2\n", "", "3\n", "4\n"):
            session.add(Run(deployment=own, kind="UPDATE", created=1.0, state="done", log=log))
    assert deployments.last_lines(own, 3) == (["2", "3", "4"], True)
    assert deployments.last_lines(own, 2) == (["3", "4"], True)
    assert deployments.last_lines(own, 4) == (["1", "2", "3", "4"], False)


def test_a_create_becomes_what_the_run_says(database: Database) -> None:
    deployments, runs = store(database)
    made = deployments.create(ANN, wanted())
    claim = runs.claim("w", 60)
    assert claim and claim.kind == "CREATE"
    with pytest.raises(Conflict):
        deployments.update(ANN, deployments.find(ANN, made.uuid), wanted())
    assert runs.beat(claim, 60, "one\n") is False
    runs.finish(claim, Ending(well=True, outputs={"url": "https://x"}, log="two\n"))
    found = deployments.find(ANN, made.uuid)
    assert (found.status, found.outputs, deployments.log(made.uuid)) == (
        "CREATE_COMPLETE",
        {"url": "https://x"},
        "one\ntwo\n",
    )
    with pytest.raises(Conflict):
        deployments.reset(ANN, made.uuid)


def test_an_update_on_an_outdated_base_is_refused(database: Database) -> None:
    deployments, runs = store(database)
    made = deployments.create(ANN, wanted())
    claim = runs.claim("w", 60)
    assert claim
    runs.finish(claim, WELL)
    seen = deployments.find(ANN, made.uuid)
    deployments.update(ANN, seen, wanted())
    claim = runs.claim("w", 60)
    assert claim
    runs.finish(claim, Ending(well=False, reason="no."))
    assert deployments.find(ANN, made.uuid).status == "UPDATE_FAILED"
    with pytest.raises(Conflict, match="another request"):
        deployments.update(ANN, seen, wanted())


def test_a_deletion_cancels_what_runs_and_waits_for_its_end(database: Database) -> None:
    deployments, runs = store(database)
    made = deployments.create(ANN, wanted())
    claim = runs.claim("w", 60)
    assert claim
    deployments.delete(ANN, made.uuid)
    assert runs.claim("other", 60) is None
    assert runs.beat(claim, 60) is True
    with pytest.raises(Conflict):
        deployments.delete(ANN, made.uuid)
    runs.finish(claim, Ending(well=False, reason="stopped."))
    assert deployments.find(ANN, made.uuid).status == "DELETE_IN_PROGRESS"
    claim = runs.claim("w", 60)
    assert claim and claim.kind == "DELETE"
    runs.finish(claim, WELL)
    assert deployments.find(ANN, made.uuid).status == "DELETE_COMPLETE"


def test_an_unbegun_deployment_is_gone_at_once(database: Database) -> None:
    deployments, runs = store(database)
    made = deployments.create(ANN, wanted())
    deployments.delete(ANN, made.uuid)
    assert deployments.find(ANN, made.uuid).status == "DELETE_COMPLETE"
    assert runs.claim("w", 60) is None


def test_a_lost_worker_is_replaced_and_may_not_write(database: Database) -> None:
    deployments, runs = store(database)
    made = deployments.create(ANN, wanted())
    lost = runs.claim("lost", -1)
    claim = runs.claim("w", 60)
    assert lost and claim and (claim.id, claim.attempt) == (lost.id, 2)
    for late in (lambda: runs.beat(lost, 60), lambda: runs.finish(lost, WELL), lambda: runs.release(lost)):
        with pytest.raises(Lost):
            late()
    runs.finish(claim, WELL)
    assert deployments.find(ANN, made.uuid).status == "CREATE_COMPLETE"


def test_a_run_that_loses_all_its_workers_is_said_to_have_failed(database: Database) -> None:
    deployments, runs = store(database)
    made = deployments.create(ANN, wanted())
    for number in range(3):
        assert runs.claim(f"worker{number}", -1)
    assert runs.claim("w", 60) is None
    found = deployments.find(ANN, made.uuid)
    assert found.status == "CREATE_FAILED"
    assert "worker was lost 3 times" in found.reason


def test_a_released_run_is_begun_again_and_never_vanishes(database: Database) -> None:
    deployments, runs = store(database)
    made = deployments.create(ANN, wanted())
    for number in range(9):
        claim = runs.claim(f"worker{number}", 60)
        assert claim and claim.attempt <= 2
        runs.release(claim)
    deployments.delete(ANN, made.uuid)
    assert deployments.find(ANN, made.uuid).status == "DELETE_IN_PROGRESS"


def test_a_long_log_loses_its_beginning(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpufarm.serve.runs.LOG", 10)
    deployments, runs = store(database)
    made = deployments.create(ANN, wanted())
    claim = runs.claim("w", 60)
    assert claim
    runs.beat(claim, 60, "1234567\n")
    runs.beat(claim, 60, "abcdefg\n")
    assert deployments.log(made.uuid) == "7\nabcdefg\n"
