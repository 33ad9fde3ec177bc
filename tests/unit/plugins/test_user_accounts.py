"""Lists of users, and what has to be done on a machine for them."""

from __future__ import annotations

import pwd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._accounts.plan import (
    CHANGED,
    KEYS_ONLY,
    LOCKED,
    Account,
    Machine,
    Plan,
    plan,
    read_accounts,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._accounts.request import (
    GROUP,
    User,
    UserProblem,
    read_users,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._accounts.request import (
    plan as plan_role,
)
from ansible_collections.gpufarm.cluster.plugins.modules import user_accounts
from hypothesis import given
from hypothesis import strategies as st

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
SHELLS = frozenset({"/bin/bash", "/bin/zsh"})
EMPTY = Machine({"root": Account(0, "/bin/bash", (), CHANGED)}, frozenset({"root", "video"}), shells=SHELLS)


def problems(users: list[Any], name_suffix: str = "") -> list[str]:
    """The problems of a list as the role sees them."""
    settings = {"users": users, "allow_key_options": False, "name_suffix": name_suffix}
    found: list[str] = plan_role(settings)["problems"]
    return found


def request(name: str, **more: Any) -> dict[str, Any]:
    return {"os_user_name": name, "os_user_ssh_public_key": KEY, **more}


def after(machine: Machine, done: Plan) -> Machine:
    """State of the machine after the plan was carried out."""
    accounts = {name: account._replace(uid=account.uid or 1000) for name, account in done.accounts.items()}
    return machine._replace(
        accounts={**machine.accounts, **accounts},
        groups=machine.groups | {GROUP},
        keys=done.keys,
        sudoers=done.sudoers,
    )


def test_users_in_the_words_of_indigo() -> None:
    users = read_users([request("ada", os_user_add_to_sudoers=True, os_user_guid=None), request("ben")])
    assert users == [User("ada", (KEY,), sudo=True), User("ben", (KEY,))]


def test_a_suffix_keeps_names_apart() -> None:
    assert [user.name for user in read_users([request("ada")], name_suffix="-ssh")] == ["ada-ssh"]
    assert "'ada/x' cannot be an account" in problems([request("ada")], name_suffix="/x")[0]


@pytest.mark.parametrize(
    ("users", "words"),
    [
        ([{}], "User number 1 of the list has no os_user_name"),
        ([request("Ada")], "cannot be an account"),
        ([request("../root")], "cannot be an account"),
        ([request("a" * 33)], "cannot be an account"),
        ([request("ada", os_user_ssh_pubkey=KEY)], "unknown key 'os_user_ssh_pubkey'"),
        ([{"os_user_name": "ada"}], "has no SSH key"),
        ([request("ada", os_user_ssh_public_key="ssh-rsa AAAA")], "The SSH key of the user ada is damaged"),
        ([request("ada"), request("ada")], "is in the list twice"),
        (
            [request("ada", os_user_guid=1500), request("ben", os_user_guid=1500)],
            "Two users have os_user_guid 1500",
        ),
        ([request("ada", os_user_guid=0)], "numbers of persons' accounts"),
        ([request("ada", os_user_add_to_sudoers="maybe")], "it can be true or false"),
        ([request("ada", groups=["sudo"])], "set os_user_add_to_sudoers instead"),
        ([request("ada", groups="video")], "are no list"),
        ([request("ada", shell="bash")], "no plain absolute path"),
        ([request("ada", state="gone")], "it can be present or absent"),
    ],
)
def test_what_nobody_can_have_is_refused(users: list[dict[str, Any]], words: str) -> None:
    [told] = problems(users)
    assert words in told and KEY.split()[1] not in told


def test_everything_that_is_wrong_is_told_at_once() -> None:
    twice = [request("ben", os_user_guid=1500)] * 2
    told = problems([{}, request("Ada"), *twice])
    assert [one.split()[0] for one in told] == ["User", "The", "The", "Two"]
    with pytest.raises(UserProblem) as refusal:
        read_users([{}, request("Ada"), *twice])
    assert str(refusal.value) == " ".join(told)


def test_a_new_user() -> None:
    done = plan(read_users([request("ada", os_user_add_to_sudoers=True, groups=["video"])]), EMPTY)
    assert done.commands[0] == ["groupadd", "--system", GROUP]
    assert done.commands[1][-1] == "ada" and f"{GROUP},video" in done.commands[1]
    assert done.keys == {"ada": (KEY,)}
    assert "ada ALL=(ALL:ALL) NOPASSWD: ALL\n" in str(done.sudoers)


@pytest.mark.parametrize(
    ("on_use", "option"), [(False, "--create-home"), (True, "--no-create-home")], ids=["with", "later"]
)
def test_a_home_is_made_with_the_account_or_at_the_first_login(on_use: bool, option: str) -> None:
    commands = plan(read_users([request("ada")]), EMPTY._replace(homes_on_use=on_use)).commands
    assert option in next(words for words in commands if words[0] == "useradd")


def test_who_is_gone_from_the_list_is_locked_and_comes_back() -> None:
    users = read_users([request("ada", os_user_add_to_sudoers=True), request("ben", groups=["video"])])
    machine = after(EMPTY, plan(users, EMPTY))
    assert plan(users, machine).commands == []
    gone = plan(users[:1], machine)
    assert gone.commands == [["usermod", "--lock", "--expiredate", "1", "--groups", GROUP, "--", "ben"]]
    assert gone.locked == ["ben"] and set(gone.keys) == {"ada"}
    back = plan(users, after(machine, gone))
    assert [command[:3] for command in back.commands] == [["usermod", "--password", "*"]]
    assert back.locked == []


def test_nobody_at_all() -> None:
    assert plan([], EMPTY) == Plan({}, {}, None, [], [])


PERSON = Account(1000, "/bin/bash", (), CHANGED)
OURS = Account(1000, "/bin/bash", (GROUP,), KEYS_ONLY)


@pytest.mark.parametrize("name", ["M\xfcller".encode("latin-1"), "a\u2028b".encode()])
def test_real_names_of_any_kind_hide_no_account(tmp_path: Path, name: bytes) -> None:
    """Names of persons are in no certain encoding, and persons change theirs with chfn."""
    (tmp_path / "passwd").write_bytes(b"ada:x:1000:1000:" + name + b":/home/ada:/bin/bash\n")
    (tmp_path / "group").write_text(f"{GROUP}:x:999:ada\n")
    (tmp_path / "shadow").write_text("ada:*:1:0:99999:7:::\n")
    machine = user_accounts.read_machine([], tmp_path / "keys", tmp_path / "sudoers", tmp_path)
    assert machine.ours() == {"ada": OURS}


def test_numbers_of_a_directory_service_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("passwd", "group", "shadow"):
        (tmp_path / file).touch()
    known = SimpleNamespace(pw_name="zoe")
    monkeypatch.setattr(pwd, "getpwuid", {2000: known}.__getitem__)
    users = read_users([request("ada", os_user_guid=2000), request("ben", os_user_guid=2001)])
    machine = user_accounts.read_machine(users, tmp_path / "keys", tmp_path / "sudoers", tmp_path)
    assert machine.numbers == {2000: "zoe"}


@pytest.mark.parametrize(
    ("user", "machine", "words"),
    [
        (request("root"), EMPTY, "an account of the system itself"),
        (
            request("nobody"),
            Machine({"nobody": PERSON._replace(uid=65534)}),
            "an account of the system itself",
        ),
        (request("ada"), Machine({"ada": PERSON}), "hand it over with: gpasswd -a ada gpufarm-users"),
        (request("ada", state="absent"), Machine({"ada": PERSON}), "was made by somebody else"),
        (
            request("ada"),
            Machine({"ada": PERSON._replace(groups=("jupyterhub-users",))}),
            "belongs to a user of the JupyterHub",
        ),
        (request("ada"), EMPTY._replace(elsewhere=frozenset({"ada"})), "comes from a directory service"),
        (request("ada"), EMPTY._replace(homes=frozenset({"ada"})), "/home/ada is there already"),
        (request("video"), EMPTY, "is that of a group"),
        (request("ada", os_user_guid=2000), EMPTY._replace(accounts={"ada": OURS}), "cannot have 2000"),
        (request("ben", os_user_guid=1000), EMPTY._replace(accounts={"ada": OURS}), "which is that of ada"),
        (
            request("ada", os_user_guid=2000),
            EMPTY._replace(numbers={2000: "zoe"}),
            "which is that of zoe in a directory service",
        ),
        (request("ada", groups=["vidoe"]), EMPTY, "The group vidoe"),
        (request("ada", shell="/bin/fish"), EMPTY, "The shell /bin/fish"),
    ],
)
def test_what_the_machine_cannot_have_is_refused(user: dict[str, Any], machine: Machine, words: str) -> None:
    with pytest.raises(UserProblem, match=words):
        plan(read_users([user]), machine)


def test_nobody_saws_off_the_branch_that_the_run_sits_on() -> None:
    users = read_users([request("ada", os_user_add_to_sudoers=True)])
    machine = after(EMPTY, plan(users, EMPTY))._replace(operators=frozenset({"ada"}))
    assert plan(users, machine).commands == []
    for fewer in ([], [request("ada")]):
        with pytest.raises(UserProblem, match="the one that this run works with"):
            plan(read_users(fewer), machine)


def test_the_tables_of_accounts_are_read() -> None:
    accounts, groups = read_accounts(
        "root:x:0:0::/root:/bin/bash\nada:x:1000:1000::/home/ada:/bin/zsh\nben:x:1001:1001::/home/ben:/bin/bash\n+\n",
        f"root:x:0:\nvideo:x:44:ada,ben\n{GROUP}:x:999:ada\n",
        "root:$y$secret:1::::::\nada:*:1:0:99999:7:::\nben:!*:1:0:99999:7::1:\n",
    )
    assert groups == {"root", "video", GROUP}
    assert accounts == {
        "root": Account(0, "/bin/bash", (), CHANGED),
        "ada": Account(1000, "/bin/zsh", (GROUP, "video"), KEYS_ONLY),
        "ben": Account(1001, "/bin/bash", ("video",), LOCKED),
    }


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), max_size=3))
def test_any_list_is_reached_from_any_other(entries: list[tuple[str, bool, bool]]) -> None:
    unique = {name: request(name, os_user_add_to_sudoers=sudo) for name, sudo, _here in entries}
    first = read_users(
        [entry for entry, (_n, _s, here) in zip(unique.values(), entries, strict=False) if here]
    )
    second = read_users(list(unique.values()))
    machine = after(EMPTY, plan(first, EMPTY))
    done = plan(second, machine)
    again = plan(second, after(machine, done))
    assert again.commands == [] and again.keys == done.keys and set(done.keys) == set(unique)


def test_entries_that_are_no_maps_are_refused() -> None:
    assert problems([request("ada"), "os_user_name=ben"])[0].startswith("The users are no list of maps")
