# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of a cluster, and what slurmrestd is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm import (
    configuration,
    rest,
    settings_fit,
    tokens,
)
from test_slurm_controller import machine, planned, problem, settings

VARS = Path(__file__).parents[3] / "playbooks/vars/slurm.yml"
CONTROLLER = """\
ClusterName=physics
SlurmctldHost=ctl1(10.0.0.1)
SlurmctldHost=ctl2(10.0.0.2)
 slurmctldport = 7000
AuthType=auth/munge
AuthAltTypes=auth/other,auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/slurmctld-jwt.key,max_token_lifespan=86400
PrivateData=jobs
NodeName=n1 Gres=gpu:a100:1
PartitionName=gpu Nodes=ALL
# SlurmUser=root
SlurmUser=slurm
"""
MACHINES = {"rest": machine("rest"), "ctl": machine("ctl")}


def plan(current: str | None = CONTROLLER, parsers: str = "", **changes: Any) -> dict[str, Any]:
    given = {
        "controllers": ["ctl"],
        "found": ["ctl"],
        "public_host": "rest.example.org",
        "port": 6820,
        "certificate_type": "self-signed",
        "certificate_file": "",
        "certificate_key_file": "",
        **changes,
    }
    return rest.plan(given, MACHINES, current, parsers)


def test_slurmrestd_is_told_how_to_reach_the_daemons_and_nothing_else() -> None:
    found = plan()
    assert found["problems"] == []
    assert found["lines"] == [
        "ClusterName=physics",
        "SlurmctldHost=ctl1(10.0.0.1)",
        "SlurmctldHost=ctl2(10.0.0.2)",
        "slurmctldport = 7000",
        "AuthType=auth/munge",
        "SlurmUser=slurm",
    ]


def test_what_slurmrestd_is_told_is_what_the_role_of_the_controllers_writes() -> None:
    options = {**configuration.DEFAULTS, **planned(tokens=True, accounting_host="db")["options"]}
    text = "".join(f"{name}={value}\n" for name, value in options.items())
    found = plan(text)
    assert found["problems"] == []
    assert {line.partition("=")[0] for line in found["lines"]} == {*rest.TAKEN} & {*options}
    assert "AccountingStorageHost=db" in found["lines"] and "SlurmctldPort=6817" in found["lines"]
    assert found["plugins"] == ["slurmctld", "slurmdbd"]


def test_the_part_for_slurmdbd_is_there_with_accounting_only() -> None:
    assert plan()["plugins"] == ["slurmctld"]


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("", "v0.0.42"),
        ("Possible data_parser plugins:\ndata_parser/v0.0.42\ndata_parser/v0.0.40\n", "v0.0.42"),
        ("data_parser/v0.0.99\ndata_parser/v0.0.100\ndata_parser/v0.0.9", "v0.0.100"),
    ],
)
def test_the_newest_version_is_taken(printed: str, version: str) -> None:
    assert plan(parsers=printed)["version"] == version


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("rest.example.org", 6820, "https://rest.example.org:6820"),
        ("rest.example.org", 443, "https://rest.example.org"),
        ("fd00::1", 6820, "https://[fd00::1]:6820"),
    ],
)
def test_the_address_is_that_of_users(host: str, port: int, url: str) -> None:
    found = plan(public_host=host, port=port)
    assert (found["url"], found["problems"]) == (url, [])


@pytest.mark.parametrize(
    "text", ["AuthAltTypes=auth/none\n", "AuthType=auth/munge\n", "#AuthAltTypes=auth/jwt\n"]
)
def test_a_controller_without_tokens_is_a_problem(text: str) -> None:
    (found,) = plan(text)["problems"]
    assert found.startswith("ctl gives users no tokens")


def test_a_controller_is_not_judged_before_it_is_set_up() -> None:
    assert plan(None)["problems"] == []
    assert plan("")["problems"] == [
        "ctl has no /etc/slurm/slurm.conf; run the role slurm_controller there first."
    ]


@pytest.mark.parametrize("host", ["", "Rest", "a b", "a/b", "a;return", "-", "x" * 254, "a\nb"])
def test_a_host_that_is_none_is_a_problem(host: str) -> None:
    (found,) = plan(public_host=host)["problems"]
    assert found.startswith("slurm_rest_public_host is ")


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_that_is_none_is_a_problem(port: int) -> None:
    assert plan(port=port)["problems"] == [
        f"slurm_rest_port is {port}, which is no port; give a number from 1 to 65535."
    ]


def test_a_provided_certificate_needs_both_files() -> None:
    files = {"certificate_file": "a", "certificate_key_file": "b"}
    assert plan(certificate_type="provided", **files)["problems"] == []
    for name in files:
        (found,) = plan(certificate_type="provided", **{**files, name: ""})["problems"]
        assert "must both be given" in found


def test_tokens_end_after_the_hours_at_most() -> None:
    found = planned(tokens=True, token_hours=8)["options"]
    assert found["AuthAltTypes"] == "auth/jwt"
    assert found["AuthAltParameters"] == f"jwt_key={tokens.KEY},max_token_lifespan=28800"
    assert found["AuthType"] == "auth/munge"


def test_hours_alone_give_no_tokens() -> None:
    assert not [name for name in planned(token_hours=8)["options"] if name.startswith("AuthAlt")]


def test_a_site_may_have_tokens_of_its_own_without_those_of_the_role() -> None:
    own = {"AuthAltTypes": "auth/jwt", "AuthAltParameters": "jwks=/etc/slurm/jwks.json"}
    assert planned(settings=own)["options"].items() >= own.items()
    problems = [*settings_fit.problems(settings(settings=own, tokens=True))]
    assert problems == [
        f"slurm_controller_settings has {name}, which the role sets itself; set slurm_controller_{variable}."
        for name, variable in (("AuthAltTypes", "tokens"), ("AuthAltParameters", "token_hours"))
    ]


@pytest.mark.parametrize("hours", [-1, 0, 8761])
def test_hours_that_cannot_be_are_a_problem(hours: int) -> None:
    assert problem(token_hours=hours) == (
        f"slurm_controller_token_hours is {hours}; give hours from 1 to 8760."
    )


@pytest.mark.parametrize("hours", [1, 8760])
def test_hours_that_can_be_are_none(hours: int) -> None:
    assert planned(token_hours=hours)["problems"] == []


@pytest.mark.parametrize(
    ("rest", "own", "tokens_are_given"),
    [
        ({}, {}, False),
        ({"rest": {}}, {}, True),
        ({"rest": {"slurm_rest_enabled": "no"}}, {}, False),
        ({"rest": {"slurm_rest_enabled": False}, "other": {}}, {}, True),
        ({"rest": {}}, {"slurm_controller_tokens": False}, False),
        ({}, {"slurm_controller_tokens": True}, True),
    ],
)
def test_a_playbook_gives_tokens_where_a_machine_takes_them(
    rest: dict[str, Any], own: dict[str, Any], tokens_are_given: bool
) -> None:
    loader = DataLoader()
    variables = loader.load_from_file(str(VARS), cache="none", trusted_as_template=True) | {
        "groups": {"slurm_rest": [*rest]} if rest else {},
        "hostvars": {**rest, "ctl": own},
        "inventory_hostname": "ctl",
    }
    templar = Templar(loader, variables)
    for name in ("slurm_controller_tokens", "slurm_accounting_tokens"):
        assert templar.template(variables[name]) is tokens_are_given
