"""Users sign in at an identity provider, and their notebooks run under their accounts on nodes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from lab.visitor import Refused

SLICE = "3g.40gb"
MEMBERS = ["ml-infn-users"]
WHERE = "import getpass, os, socket; print(socket.gethostname(), os.getuid(), getpass.getuser(), os.getcwd())"
NO_ACCOUNT = "has no account that all machines of this service know, so no notebook can be started"


def persons(host):
    return json.loads(host.file("/var/lib/jupyterhub-users/persons.json").content_string)


def test_a_notebook_runs_on_a_node_under_the_account_of_the_name(host, visit, jobs):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn(gpu=SLICE)
    bob.spawn(gpu=SLICE)
    assert set(jobs()) == {"alice", "bob"}
    seen = [visitor.execute(WHERE).split() for visitor in (alice, bob)]
    assert {node for node, *_rest in seen} == {"gpu1", "gpu2"}
    assert [rest for _node, *rest in seen] == [
        ["2001", "alice", "/home/alice"],
        ["2002", "bob", "/home/bob"],
    ]
    assert {"alice", "bob"} <= set(persons(host))
    # Groups of the claim say who administers, and groups of the machine do not.
    assert "running on gpu1 until" in bob.page("/hub/slices")
    with pytest.raises(Refused, match="it is for administrators of this service"):
        alice.page("/hub/slices")


def test_groups_of_the_claim_decide_who_comes_in(visit):
    with pytest.raises(Refused, match="none of the groups that may use this service"):
        visit("mallory")


def test_a_user_without_an_account_is_told_so_and_gets_none(host, visit, tell, passwords):
    tell("mallory", name="erin", groups=MEMBERS)
    with pytest.raises(Refused, match=f"erin {NO_ACCOUNT}. Ask the administrator of this service"):
        visit("erin", passwords["mallory"])
    assert host.run("getent passwd erin").rc == 2
    assert "erin" not in persons(host)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("root", "The account root is no account of a person"),
        ("slurm", "The account slurm is no account of a person"),
        ("robot", "The account robot is no account of a person"),
        ("nobody", "The account nobody is no account of a person"),
        ("debian", r"The account debian can administer this machine \(group sudo\)"),
        ("Carol", "cannot be used on this machine"),
        ("carol ", "cannot be used on this machine"),
        ("-carol", "cannot be used on this machine"),
        ("2003", "cannot be used on this machine"),
        ("carol@example.org", "cannot be used on this machine"),
        ("carol.", NO_ACCOUNT),
    ],
)
def test_no_name_selects_an_account_of_somebody_else(host, visit, tell, passwords, name, words):
    tell("mallory", name=name, groups=MEMBERS)
    with pytest.raises(Refused, match=words):
        visit(name, passwords["mallory"])
    assert name not in persons(host) and "carol" not in persons(host)


def test_a_user_who_changes_the_claim_gets_no_second_account(host, visit, tell, passwords):
    tell("mallory", groups=MEMBERS)
    mallory = visit("mallory")
    with pytest.raises(Refused, match="your account may not use the cluster; ask its administrator"):
        mallory.spawn()  # her account is not declared in Slurm
    tell("mallory", name="carol", groups=MEMBERS)
    with pytest.raises(Refused, match="calls you carol now, and your account here is mallory"):
        visit("carol", passwords["mallory"])
    tell("mallory", groups=["cms"])
    carol = visit("carol")
    carol.spawn()
    assert carol.execute(WHERE).split()[1:3] == ["2003", "carol"]
    tell("mallory", name="carol", sub="somebody else", groups=MEMBERS)
    with pytest.raises(Refused, match="carol belongs to another person"):
        visit("carol", passwords["mallory"])
