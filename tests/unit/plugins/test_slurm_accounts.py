"""Accounts of a Slurm cluster: what is declared, what slurmdbd has, and the commands in between."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.accounts import (
    AccountsProblem,
    Limits,
    Request,
    problems,
    read_request,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.associations import (
    ACCOUNTS,
    ASSOCIATIONS,
    QUALITIES,
    RESOURCES,
    USERS,
    Books,
    Entry,
    commands,
    read_books,
    wanted,
)
from hypothesis import given
from hypothesis import strategies as st

MARK = "made by gpufarm.cluster for farm"
# Output of sacctmgr 24.11.5 of Debian 13: an account of this role, one of somebody else, and Slurm's own.
ANSWERS = {
    ASSOCIATIONS: """\
farm|root|||1||||normal|
farm|root||root|1||||normal|
farm|course|root||parent|gres/gpu:1g.10gb=3,mem=256G|cpu=1200,gres/gpu:1g.10gb=600|7|long,normal|long
farm|course||alice|7|cpu=2|||long,normal|long
farm|physics|root||10||||normal|
other|root|||1||||normal|
other|shared|root||1||||normal|
other|shared||bob|1||||normal|
""",
    ACCOUNTS: f"course|{MARK}\nphysics|physics | chemistry\nroot|root\n",
    QUALITIES: f"normal|0||||||Normal | default\nlong|10|1-00:00:00|cpu=4|||gres/gpu=2|{MARK}\n",
    USERS: "alice|course\nroot|root\n",
    RESOURCES: "cpu|\nmem|\nfs|disk\ngres|gpu\ngres|gpu:1g.10gb\n",
}
EMPTY = Books(
    {"root": Entry(qualities=("normal",))},
    resources=frozenset({"cpu", "mem", "gres/gpu", "gres/gpu:1g.10gb"}),
)
LIMITS = {"slices": {"1g.10gb": 3}, "memory": 256, "jobs": 7, "slice_hours": {"1g.10gb": 10}, "cpu_hours": 20}


def test_what_sacctmgr_prints_is_understood() -> None:
    books = read_books(ANSWERS, "farm")
    running, minutes = {"gres/gpu:1g.10gb": 3, "mem": 262144}, {"cpu": 1200, "gres/gpu:1g.10gb": 600}
    assert books.accounts == {
        "root": Entry(qualities=("normal",)),
        "course": Entry("root", "parent", Limits(running, minutes, 7), ("long", "normal"), "long"),
        "physics": Entry("root", "10", Limits(), ("normal",)),
    }
    assert books.elsewhere == {"shared"}
    assert {user for _account, user in books.users} == {"root", "alice"}
    assert books.users["course", "alice"].limits == Limits({"cpu": 2})
    assert books.qualities["long"].longest == 1440
    assert books.qualities["long"].user_limits.running == {"gres/gpu": 2}
    assert (books.ours, books.our_qualities) == ({"course"}, {"long"})
    assert "gres/gpu:1g.10gb" in books.resources


def test_what_is_there_already_needs_no_command() -> None:
    account = {
        "name": "course",
        "fairshare": "parent",
        "users": ["alice"],
        "limits": LIMITS,
        "user_limits": {"cpus": 2},
        "qos": ["long", "normal"],
    }
    quality = {
        "name": "long",
        "priority": 10,
        "longest_job": 24,
        "limits": {"cpus": 4},
        "user_limits": {"gpus": 2},
    }
    books = read_books(ANSWERS, "farm")
    after = wanted(read_request([account], [quality]), books, {})
    assert commands(books, after, "farm") == []


def test_the_commands_of_a_new_account() -> None:
    request = read_request([{"name": "course", "users": ["ben"], "groups": ["phd"], "limits": LIMITS}], [])
    after = wanted(request, EMPTY, {"phd": ["ada", "ben"]})
    assert [" ".join(call) for call in commands(EMPTY, after, "farm")] == [
        f"add account name=course cluster=farm description=course organization={MARK} parent=root",
        "modify account where name=course cluster=farm set GrpTRES=gres/gpu:1g.10gb=3,mem=262144 "
        "GrpTRESMins=cpu=1200,gres/gpu:1g.10gb=600 GrpJobs=7",
        "add user name=ada account=course cluster=farm",
        "add user name=ben account=course cluster=farm",
    ]


def test_what_is_no_longer_declared_goes_and_what_others_made_stays() -> None:
    books = read_books(ANSWERS, "farm")
    after = wanted(Request(), books, {})
    assert [" ".join(call) for call in commands(books, after, "farm")] == [
        "delete user where name=alice account=course cluster=farm",
        "delete account where name=course cluster=farm",
        "modify account where name=course set organization=course",
        "delete qos where name=long",
    ]
    assert set(after.accounts) == {"root", "physics"}


def test_a_limit_that_is_no_longer_declared_ends() -> None:
    books = read_books(ANSWERS, "farm")
    request = read_request([{"name": "course", "users": ["alice"], "limits": {"gpus": 1}}], [])
    [call] = [
        one for one in commands(books, wanted(request, books, {}), "farm") if one[:2] == ["modify", "account"]
    ]
    assert "GrpTRES=gres/gpu=1,gres/gpu:1g.10gb=-1,mem=-1" in call
    assert "GrpTRESMins=cpu=-1,gres/gpu:1g.10gb=-1" in call
    assert "GrpJobs=-1" in call


@pytest.mark.parametrize(
    ("accounts", "qualities", "said"),
    [
        ([{"name": "Physics"}], [], "The account 'Physics' has a name that Slurm does not take"),
        ([{"name": "a b"}], [], "has a name that Slurm does not take"),
        ([{"name": "a,b"}], [], "has a name that Slurm does not take"),
        ([{"name": "a\n"}], [], "has a name that Slurm does not take"),
        ([{"name": "root"}], [], "The account root belongs to Slurm"),
        ([{"name": "a"}, {"name": "a"}], [], "The account a is declared twice"),
        ([{"name": "a", "parent": "a"}], [], "The account a is below itself"),
        ([{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}], [], "The account b is below itself"),
        ([{"name": "a", "parent": "b set x"}], [], "The parent 'b set x' of the account a cannot"),
        ([{"name": "a", "users": ["ada,ben"]}], [], "has the user 'ada,ben', which cannot be a login"),
        ([{"name": "a", "users": ["-x"]}], [], "has the user '-x', which cannot be a login"),
        ([{"name": "a", "fairshare": 0}], [], "has the fairshare '0'"),
        ([{"name": "a", "limits": {"gpus": -1}}], [], "The limits of a have -1 for gpus"),
        ([{"name": "a", "limits": {"slices": {"1g.10gb": "x"}}}], [], "have 'x' for slices 1g.10gb"),
        ([{"name": "a", "limits": {"slices": {"1g,cpu": 1}}}], [], "slices '1g,cpu', which cannot be"),
        ([{"name": "a", "limits": {"slices": 3}}], [], "have slices that are no map"),
        ([{"name": "a", "limits": {"gpu": 3, "disk": 1}}], [], "have disk, gpu, which is no limit"),
        ([{"name": "a", "qos": ["long", "long"]}], [], "names a quality of service twice"),
        ([], [{"name": "q", "priority": -1}], "has the priority -1"),
        ([], [{"name": "q", "longest_job": 0}], "admits no job"),
        ([], [{"name": "q", "user_limits": {"jobs": 1}}], "use user_limits of an account"),
    ],
)  # fmt: skip
def test_refusals_name_the_thing(accounts: list[Any], qualities: list[Any], said: str) -> None:
    with pytest.raises(AccountsProblem) as caught:
        read_request(accounts, qualities)
    assert said in str(caught.value)
    assert problems("farm", accounts, qualities)


@pytest.mark.parametrize(
    ("account", "said"),
    [
        ({"name": "physics"}, "The account physics was not made by this role for this cluster"),
        ({"name": "shared"}, "The account shared is one of another cluster"),
        ({"name": "a", "parent": "nope"}, "below nope, which is none"),
        ({"name": "a", "parent": "course"}, "below course, which is no longer declared"),
        ({"name": "a", "qos": ["long"]}, "The quality of service long of the account a is none"),
        ({"name": "a", "limits": {"slices": {"9g.99gb": 1}}}, "Slurm does not count gres/gpu:9g.99gb"),
    ],
)
def test_what_slurmdbd_cannot_have_is_refused(account: dict[str, Any], said: str) -> None:
    with pytest.raises(AccountsProblem) as caught:
        wanted(read_request([account], []), read_books(ANSWERS, "farm"), {})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([], "The group phd of the account a has no members on this host"),
        (["Alice"], "The member 'Alice' of the group phd cannot be a login"),
        (["u[1-3]"], "The member 'u[1-3]' of the group phd cannot be a login"),
        (["ada,ben"], "The member 'ada,ben' of the group phd cannot be a login"),
    ],
)
def test_members_that_slurm_would_misunderstand_are_refused(members: list[str], said: str) -> None:
    with pytest.raises(AccountsProblem) as caught:
        wanted(read_request([{"name": "a", "groups": ["phd"]}], []), EMPTY, {"phd": members})
    assert said in str(caught.value)


def test_an_account_of_somebody_else_below_one_that_goes_is_not_lost() -> None:
    answers = {**ANSWERS, ASSOCIATIONS: ANSWERS[ASSOCIATIONS] + "farm|theirs|course||1||||normal|\n"}
    with pytest.raises(
        AccountsProblem, match="The account theirs, which this role did not make, is below course"
    ):
        wanted(Request(), read_books(answers, "farm"), {})


def test_an_account_that_others_made_of_a_former_one_is_theirs() -> None:
    books = read_books({**ANSWERS, ACCOUNTS: "course|course\n"}, "farm")
    with pytest.raises(AccountsProblem, match="The account course was not made by this role"):
        wanted(read_request([{"name": "course"}], []), books, {})
    assert commands(books, wanted(Request(), books, {}), "farm") == [["delete", "qos", "where", "name=long"]]


def test_an_account_has_the_qualities_of_the_one_above() -> None:
    answers = {
        **ANSWERS,
        ASSOCIATIONS: (
            "farm|root|||1||||normal|\nfarm|dept|root||1||||high,normal|\nfarm|sub|dept||1||||low|low\n"
        ),
    }
    books = read_books({**answers, ACCOUNTS: f"dept|dept\nsub|{MARK}\n"}, "farm")
    after = wanted(read_request([{"name": "sub", "parent": "dept"}], []), books, {})
    assert commands(books, after, "farm")[0] == [
        "modify", "account", "where", "name=sub", "cluster=farm", "set", "qos=", "defaultqos=-1",
    ]  # fmt: skip


def test_what_another_cluster_has_stays() -> None:
    books = read_books(ANSWERS, "other")
    assert (books.ours, books.our_qualities) == (frozenset(), frozenset())


@pytest.mark.parametrize("name", ["Farm", "farm,other", "--help", "farm other", ""])
def test_a_name_that_is_no_cluster_is_refused(name: str) -> None:
    assert "cannot be the name of a cluster" in problems(name, [], [])[0]


def test_a_quality_of_somebody_else_is_refused() -> None:
    with pytest.raises(AccountsProblem, match="The quality of service normal was not made by this role"):
        wanted(read_request([], [{"name": "normal"}]), read_books(ANSWERS, "farm"), {})


class Dbd:
    """Tables of slurmdbd that follow the commands as sacctmgr(1) describes them, and answer as it does."""

    def __init__(self) -> None:
        self.accounts: dict[str, dict[str, str]] = {}
        self.users: dict[tuple[str, str], dict[str, str]] = {}
        self.qualities: dict[str, dict[str, str]] = {"normal": {"description": "Normal QOS default"}}
        self.defaults: dict[str, str] = {}
        self.rows: dict[str, str] = {}

    def do(self, call: Sequence[str]) -> None:
        verb, kind = call[:2]
        words = dict(word.split("=", 1) for word in call[2:] if "=" in word)
        name = words.pop("name")
        key = (words.pop("account", ""), name)
        if verb == "add" and kind == "account":
            assert name not in self.accounts
            assert words["parent"] in {"root", *self.accounts}
            self.accounts[name] = words
            self.rows.setdefault(name, words["organization"])
        elif verb == "add" and kind == "user":
            assert key[0] in self.accounts
            self.users[key] = {}
            if (self.defaults.get(name), name) not in self.users:
                self.defaults[name] = key[0]
        elif verb == "add":
            self.qualities[name] = words
        elif verb == "modify" and "organization" in words:
            self.rows[name] = words["organization"]
        elif verb == "modify" and "defaultaccount" in words:
            assert (words["defaultaccount"], name) in self.users
            self.defaults[name] = words["defaultaccount"]
        elif verb == "modify":
            table: Mapping[Any, dict[str, str]] = {
                "account": self.accounts, "user": self.users, "qos": self.qualities
            }[kind]  # fmt: skip
            row = table[key if kind == "user" else name]
            for option, value in words.items():
                self.change(row, option, value)
            assert {*row.get("qos", "normal").split(",")} <= {*self.qualities}
        elif kind == "user":
            others = [one for one in self.users if one[1] == name and one != key]
            assert self.defaults[name] != key[0] or not others, (
                "You can not remove the default account of a user"
            )
            del self.users[key]
        elif kind == "account":
            assert name not in [one.get("parent") for one in self.accounts.values()]
            assert name not in [one[0] for one in self.users]
            del self.accounts[name]
        else:
            assert not [one for one in self.accounts.values() if name in one.get("qos", "").split(",")]
            del self.qualities[name]

    @staticmethod
    def change(row: dict[str, str], option: str, value: str) -> None:
        if option in ("qos", "defaultqos") and value in ("", "-1"):
            row.pop(option, None)
            return
        if not option.startswith(("GrpTRES", "MaxTRES")):
            row[option] = "" if value == "-1" else value
            return
        limits = dict(one.rsplit("=", 1) for one in row.get(option, "").split(",") if one)
        limits.update(one.rsplit("=", 1) for one in value.split(","))
        row[option] = ",".join(f"{one}={number}" for one, number in limits.items() if number != "-1")

    def answers(self) -> dict[str, str]:
        def row(account: str, parent: str, user: str, of: Mapping[str, str], up: Mapping[str, str]) -> str:
            limits = [of.get(option, "") for option in ("GrpTRES", "GrpTRESMins", "GrpJobs")]
            qualities = [up.get("qos", "normal"), up.get("defaultqos", "")]
            return "|".join(["farm", account, parent, user, of.get("fairshare", "1"), *limits, *qualities])

        def inherited(name: str) -> Mapping[str, str]:
            while name in self.accounts and "qos" not in self.accounts[name]:
                name = self.accounts[name]["parent"]
            return self.accounts.get(name, {})

        rows = ["farm|root|||1||||normal|"]
        rows += [row(name, one["parent"], "", one, inherited(name)) for name, one in self.accounts.items()]
        rows += [
            row(account, "", user, one, inherited(account)) for (account, user), one in self.users.items()
        ]
        options = (
            "Priority",
            "MaxWall",
            "GrpTRES",
            "GrpTRESMins",
            "GrpJobs",
            "MaxTRESPerUser",
            "description",
        )
        qualities = []
        for name, one in self.qualities.items():
            words = [one.get(option, "") for option in options]
            words[1] = f"{int(words[1]) // 60:02}:{int(words[1]) % 60:02}:00" if words[1] else ""
            qualities.append("|".join([name, *words]))
        return {
            ASSOCIATIONS: "\n".join(rows),
            ACCOUNTS: "\n".join(f"{name}|{organization}" for name, organization in self.rows.items()),
            QUALITIES: "\n".join(qualities),
            USERS: "\n".join(f"{name}|{default}" for name, default in self.defaults.items()),
            RESOURCES: ANSWERS[RESOURCES],
        }


NAMES = st.sampled_from(["a", "b", "c", "d"])
SOME_LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "gpus": st.integers(0, 9),
        "cpus": st.integers(0, 9),
        "memory": st.integers(0, 9),
        "jobs": st.integers(0, 9),
        "slices": st.dictionaries(st.just("1g.10gb"), st.integers(0, 9)),
        "gpu_hours": st.integers(0, 99),
    },
)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    names = draw(st.lists(NAMES, unique=True))
    qualities = draw(st.lists(st.sampled_from(["long", "short"]), unique=True))
    accounts = [
        {
            "name": name,
            "parent": draw(st.sampled_from(["root", *names[:number]])),
            "fairshare": draw(st.sampled_from([1, 5, "parent"])),
            "users": draw(st.lists(st.sampled_from(["ada", "ben", "eve"]), unique=True)),
            "limits": draw(SOME_LIMITS),
            "user_limits": draw(SOME_LIMITS),
            "qos": draw(st.lists(st.sampled_from(["normal", *qualities]), unique=True)),
        }
        for number, name in enumerate(names)
    ]
    of_users = st.fixed_dictionaries({}, optional={"gpus": st.integers(0, 9)})
    return read_request(
        draw(st.permutations(accounts)),
        [
            {
                "name": name,
                "priority": draw(st.integers(0, 9)),
                "longest_job": draw(st.one_of(st.none(), st.integers(1, 20))),
                "limits": draw(SOME_LIMITS),
                "user_limits": draw(of_users),
            }
            for name in qualities
        ],
    )


@given(st.lists(requests(), min_size=1, max_size=3))
def test_the_commands_lead_from_any_state_to_any_request(sequence: list[Request]) -> None:
    """And a second run has nothing to do."""
    dbd = Dbd()
    for request in sequence:
        before = read_books(dbd.answers(), "farm")
        after = wanted(request, before, {})
        for call in commands(before, after, "farm"):
            dbd.do(call)
        reached = read_books(dbd.answers(), "farm")
        assert commands(reached, wanted(request, reached, {}), "farm") == []
        assert set(reached.accounts) == {"root", *(one.name for one in request.accounts)}
        users = {(one.name, user) for one in request.accounts for user in one.users}
        assert set(reached.users) == users
        for account, user in users:
            assert (dbd.defaults[user], user) in users, account
