# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of deployments, with requests, workers and losses in any order."""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from gpufarm.serve.database import Database
from gpufarm.serve.deployments import Deployments, Wanted
from gpufarm.serve.outbox import Outbox
from gpufarm.serve.people import User
from gpufarm.serve.quotas import Quota, Quotas
from gpufarm.serve.refusals import Conflict, Forbidden
from gpufarm.serve.runs import Claim, Ending, Lost, Runs
from gpufarm.serve.statuses import FINAL, Kind, Status, begun
from gpufarm.serve.tables import Callback, Deployment, Run
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from sqlalchemy import select

USERS = [User("https://iam.example.org", name) for name in ("ann", "bob")]
MOST = 4
_fresh = TemporaryDirectory(prefix="gpufarm-serve-")
_made = Path(_fresh.name) / "fresh.db"


class Life(RuleBasedStateMachine):
    """Users and workers; a lease is as long as the test wants it to be."""

    deployments_made = Bundle("deployments_made")
    claims = Bundle("claims")

    @initialize()
    def open(self) -> None:
        self.folder = TemporaryDirectory(prefix="gpufarm-serve-")
        file = Path(self.folder.name) / "serve.db"
        if not _made.exists():
            first = Database(f"sqlite:///{_made}")
            first.upgrade()
            first.engine.dispose()
        shutil.copy(_made, file)
        self.database = Database(f"sqlite:///{file}")
        quotas = Quotas(user=Quota(deployments=MOST))
        self.deployments = Deployments(self.database, quotas, "https://paas")
        self.runs = Runs(self.database, "https://paas")
        self.told: Counter[str] = Counter()
        self.before: dict[str, str] = {}
        self.workers = 0

    def teardown(self) -> None:
        if not hasattr(self, "database"):
            return
        self.everything_ends()
        self.database.engine.dispose()
        self.folder.cleanup()

    @rule(target=deployments_made, user=st.sampled_from(USERS))
    def create(self, user: User):
        wanted = Wanted("notes", "text", machines=1, timeout=60, callback="https://dashboard")
        try:
            return user, self.deployments.create(user, wanted).uuid
        except Forbidden:
            return multiple()

    @rule(which=deployments_made)
    def update(self, which: tuple[User, str]) -> None:
        seen = self.deployments.find(*which)
        wanted = Wanted("notes", "text", machines=1, timeout=60, callback="https://dashboard")
        try:
            self.deployments.update(which[0], seen, wanted)
        except Conflict:
            assert seen.status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_FAILED")

    @rule(which=deployments_made)
    def delete(self, which: tuple[User, str]) -> None:
        before = self.deployments.find(*which).status
        try:
            self.deployments.delete(*which)
        except Conflict:
            assert before in ("DELETE_IN_PROGRESS", "DELETE_COMPLETE")

    @rule(which=deployments_made)
    def reset(self, which: tuple[User, str]) -> None:
        before = self.deployments.find(*which).status
        try:
            self.deployments.reset(*which)
        except Conflict:
            assert before != "DELETE_IN_PROGRESS"

    @rule(target=claims, lost=st.booleans())
    def claim(self, lost: bool):
        self.workers += 1
        found = self.runs.claim(f"worker{self.workers}", -1 if lost else 3600)
        return found if found else multiple()

    @rule(claim=claims, lost=st.booleans())
    def beat(self, claim: Claim, lost: bool) -> None:
        with contextlib.suppress(Lost):
            self.runs.beat(claim, -1 if lost else 3600, "on\n")

    @rule(claim=claims)
    def release(self, claim: Claim) -> None:
        with contextlib.suppress(Lost):
            self.runs.release(claim)

    @rule(claim=claims, well=st.booleans())
    def finish(self, claim: Claim, well: bool) -> None:
        with contextlib.suppress(Lost):
            self.runs.finish(claim, Ending(well=well, reason="" if well else "it failed."))

    @invariant()
    def the_tables_agree(self) -> None:
        if not hasattr(self, "database"):
            return
        with self.database.reading() as session:
            runs = [*session.scalars(select(Run))]
            found = [*session.scalars(select(Deployment))]
            messages = Counter(session.scalars(select(Callback.deployment)))
        for deployment in found:
            own = [run for run in runs if run.deployment == deployment.uuid]
            wanted = [run for run in own if run.state in ("queued", "running") and not run.cancel]
            assert sum(run.state == "running" for run in own) <= 1
            status = Status(deployment.status)
            if status in FINAL:
                assert not wanted
            else:
                assert [begun(Kind(run.kind)) for run in wanted] == [status]
            before = self.before.get(deployment.uuid, "CREATE_IN_PROGRESS")
            assert before != "DELETE_COMPLETE" or status == "DELETE_COMPLETE"
            if status != before and status in FINAL:
                self.told[deployment.uuid] += 1
            self.before[deployment.uuid] = status
            # a claim may end one run and take another, so a message may be about a status that is over
            assert messages[deployment.uuid] >= self.told[deployment.uuid]
        held = Counter(entry.subject for entry in found if entry.status != "DELETE_COMPLETE")
        assert all(number <= MOST for number in held.values())

    def everything_ends(self) -> None:
        """Workers that do their work leave nothing in progress, and each message can be posted."""
        with self.database.changing() as session:
            for run in session.scalars(select(Run).where(Run.state == "running")):
                run.lease = 0.0
        while claim := self.runs.claim("last", 3600):
            self.runs.finish(claim, Ending(well=True))
        self.the_tables_agree()
        assert all(Status(status) in FINAL for status in self.before.values())
        outbox = Outbox(self.database)
        while message := outbox.take():
            assert message.body["status"] in FINAL
            outbox.settled(message)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
