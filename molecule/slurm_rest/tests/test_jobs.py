"""Users submit, watch and cancel their jobs over HTTPS, and see nothing of others."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable

from conftest import API, Rest, on

# ESLURM_ACCESS_DENIED (slurm/slurm_errno.h). The status of the answer is 200, as it is about several jobs.
NOT_ALLOWED = 2002
Eventually = Callable[[Callable[[], bool]], None]


def test_a_job_runs_as_its_user_and_ends(rest: Rest, tokens: dict[str, str], eventually: Eventually) -> None:
    status, number = rest.submit(tokens["alice"], "id -un; hostname", "first")
    assert status == 200
    eventually(lambda: rest.state(tokens["alice"], number) == "COMPLETED")
    assert on("n1", "cat", "/home/alice/first.out").split() == ["alice", "n1"]
    assert on("n1", "stat", "--format=%U", "/home/alice/first.out").strip() == "alice"


def test_a_bearer_token_and_the_own_name_do_as_well(rest: Rest, tokens: dict[str, str]) -> None:
    for headers in (
        {"Authorization": f"Bearer {tokens['alice']}"},
        {"X-SLURM-USER-TOKEN": tokens["alice"], "X-SLURM-USER-NAME": "alice"},
    ):
        assert rest.ask(f"/slurm/{API}/jobs", headers=headers)[0] == 200


def test_a_job_is_cancelled_by_its_user_only(
    rest: Rest, tokens: dict[str, str], eventually: Eventually
) -> None:
    _status, number = rest.submit(tokens["alice"], "sleep 600", "long")
    eventually(lambda: rest.state(tokens["alice"], number) == "RUNNING")
    assert rest.state(tokens["bob"], number) == ""
    for path, body in ((f"job/{number}", None), ("jobs/", {"jobs": [str(number)]})):
        _status, text = rest.ask(f"/slurm/{API}/{path}", tokens["bob"], "DELETE", body)
        assert [one["error"]["code"] for one in json.loads(text)["status"]] == [NOT_ALLOWED]
    assert rest.ask(f"/slurm/{API}/job/{number}", tokens["bob"], "POST", {"name": "mine"})[0] != 200
    assert rest.state(tokens["alice"], number) == "RUNNING"
    assert rest.ask(f"/slurm/{API}/job/{number}", tokens["alice"], "DELETE")[0] == 200
    eventually(lambda: rest.state(tokens["alice"], number) == "CANCELLED")


def test_users_see_no_jobs_of_others(rest: Rest, tokens: dict[str, str]) -> None:
    _status, number = rest.submit(tokens["alice"], "true", "private")

    def numbers(user: str, path: str) -> set[int]:
        status, text = rest.ask(path, tokens[user])
        assert status == 200, text
        return {job["job_id"] for job in json.loads(text)["jobs"]}

    assert number in numbers("alice", f"/slurm/{API}/jobs")
    assert number not in numbers("bob", f"/slurm/{API}/jobs")
    for path in (
        "jobs/state",
        "jobs/state/",
        "/jobs//state",
        "jobs/%73tate",
        "jobs%2fstate",
        "./jobs/state",
        "JOBS/state",
    ):
        assert rest.ask(f"/slurm/{API}/{path}", tokens["bob"])[0] == 404, path


def test_users_see_what_their_jobs_have_used(
    rest: Rest, tokens: dict[str, str], eventually: Eventually
) -> None:
    """slurmdbd takes the tokens, too, and shows the jobs of others to nobody."""
    _status, number = rest.submit(tokens["alice"], "true", "recorded")

    def recorded(user: str) -> list[str]:
        status, text = rest.ask(f"/slurmdb/{API}/job/{number}", tokens[user])
        return [job["user"] for job in json.loads(text)["jobs"]] if status == 200 else []

    eventually(lambda: recorded("alice") == ["alice"])
    assert recorded("bob") == []


def test_users_submit_for_nobody_else(rest: Rest, tokens: dict[str, str], eventually: Eventually) -> None:
    """A job that names another user is refused, or is the user's own."""
    body = {
        "script": "#!/bin/sh\nid -un\n",
        "job": {
            "name": "other",
            "user_id": "alice",
            "current_working_directory": "/tmp",
            "environment": ["PATH=/usr/bin:/bin"],
            "standard_output": "/home/bob/other.out",
        },
    }
    status, text = rest.ask(f"/slurm/{API}/job/submit", tokens["bob"], "POST", body)
    if status == 200:
        number = json.loads(text)["job_id"]
        eventually(lambda: rest.state(tokens["bob"], number) == "COMPLETED")
        assert on("n1", "cat", "/home/bob/other.out").strip() == "bob"


def test_users_administer_nothing(rest: Rest, tokens: dict[str, str]) -> None:
    for method, path, body in (
        ("POST", f"/slurm/{API}/node/n1", {"state": ["DRAIN"], "reason": "mine"}),
        ("DELETE", f"/slurm/{API}/node/n1", None),
        ("GET", f"/slurm/{API}/reconfigure", None),
        (
            "POST",
            f"/slurmdb/{API}/users/",
            {"users": [{"name": "bob", "administrator_level": ["Administrator"]}]},
        ),
        ("DELETE", f"/slurmdb/{API}/account/physics", None),
    ):
        status, text = rest.ask(path, tokens["bob"], method, body)
        assert status != 200, (path, text)
    assert "n1" in on("ctl", "sinfo", "--noheader", "--Node", "--states=idle,mix,alloc", "--format=%N")
    assert (
        on("ctl", "sacctmgr", "--noheader", "--parsable2", "show", "user", "bob", "format=Admin").strip()
        == "None"
    )
