# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Definitions of apps are compared after what a server fills in, and refused when they cannot be."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon import wait
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.app import (
    DEFAULTS,
    FIELDS,
    AppProblem,
    difference,
    problems,
    read_app,
    read_path,
    warnings,
)
from hypothesis import given
from hypothesis import strategies as st

from lab.marathon import apps as server

APP = {"id": "/a", "cmd": "true"}
WORD = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)
NUMBER = st.integers(0, 40000)
PORT = st.fixed_dictionaries(
    {}, optional={"port": NUMBER, "name": WORD, "labels": st.dictionaries(WORD, WORD)}
)
MAPPING = st.fixed_dictionaries(
    {"containerPort": NUMBER}, optional={"servicePort": NUMBER, "hostPort": NUMBER, "name": WORD}
)
CONTAINER = st.fixed_dictionaries(
    {"docker": st.fixed_dictionaries({"image": WORD}, optional={"forcePullImage": st.booleans()})},
    optional={
        "type": st.sampled_from(["MESOS", "DOCKER"]),
        "portMappings": st.lists(MAPPING, max_size=3),
        "volumes": st.lists(
            st.sampled_from(
                [
                    {"containerPath": "/x", "hostPath": "/y", "mode": "RO"},
                    {"containerPath": "data", "mode": "RW", "persistent": {"size": 512}},
                    {
                        "containerPath": "fast",
                        "mode": "RW",
                        "persistent": {"size": 512, "profileName": "ssd"},
                    },
                    {"containerPath": "/z", "mode": "RW", "external": {"name": "z", "provider": "dvdi"}},
                ]
            ),
            max_size=2,
        ),
    },
)
CHECK = st.fixed_dictionaries(
    {},
    optional={
        "protocol": st.sampled_from(["HTTP", "TCP", "COMMAND", "MESOS_HTTP", "MESOS_TCP"]),
        "intervalSeconds": NUMBER,
        "delaySeconds": NUMBER,
        "portIndex": st.integers(0, 2),
        "port": NUMBER,
        "ignoreHttp1xx": st.booleans(),
    },
)
NETWORKS = st.sampled_from(
    [[{"mode": "container/bridge"}], [{"mode": "container"}], [{"name": "own"}], [{"mode": "host"}]]
)


def with_fitting_ports(definition: dict[str, Any]) -> dict[str, Any]:
    """Leave out ports that a server would drop."""
    definition = copy.deepcopy(definition)
    if any(one.get("mode") != "host" for one in definition.get("networks", ())):
        definition.pop("portDefinitions", None)
    else:
        definition.get("container", {}).pop("portMappings", None)
    return definition


DEFINITIONS = st.fixed_dictionaries(
    {"id": st.just("/a/b"), "cmd": WORD},
    optional={
        "instances": st.integers(0, 9),
        "cpus": st.sampled_from([0.5, 1, 4]),
        "mem": NUMBER,
        "env": st.dictionaries(WORD, WORD),
        "labels": st.dictionaries(WORD, WORD),
        "constraints": st.lists(st.just(["hostname", "UNIQUE"]), max_size=2),
        "container": CONTAINER,
        "portDefinitions": st.lists(PORT, max_size=3),
        "networks": NETWORKS,
        "check": st.sampled_from(
            [{"http": {"path": "/"}}, {"tcp": {"port": 80}}, {"exec": {"command": {"shell": "true"}}}]
        ),
        "healthChecks": st.lists(CHECK, max_size=2),
        "fetch": st.lists(st.just({"uri": "http://x/y"}), max_size=2),
        "upgradeStrategy": st.fixed_dictionaries({}, optional={"maximumOverCapacity": st.just(0)}),
        "unreachableStrategy": st.just("disabled"),
        "requirePorts": st.booleans(),
    },
).map(with_fitting_ports)


@given(DEFINITIONS)
def test_what_a_server_fills_in_is_no_difference(wanted: dict[str, Any]) -> None:
    assert list(problems(wanted)) == []
    assert difference(server.complete(wanted, "*"), read_app(wanted)) == ({}, {})


@given(DEFINITIONS, st.sampled_from(["cmd", "cpus", "instances", "env", "labels", "mem"]))
def test_a_change_of_one_field_is_found_and_no_other(wanted: dict[str, Any], field: str) -> None:
    value = {"env": {"NEW": "1"}, "labels": {"new": "1"}, "cmd": "other-command"}.get(field, 77777)
    before, after = difference(server.complete(wanted, "*"), read_app({**wanted, field: value}))
    assert set(before) | set(after) == {field} and after[field] == value


@given(DEFINITIONS)
def test_a_field_that_is_left_out_goes_back_to_its_default(wanted: dict[str, Any]) -> None:
    current = server.complete({**wanted, "user": "root", "tty": True, "maxLaunchDelaySeconds": 9}, "*")
    before, after = difference(current, read_app(wanted))
    assert before == {"user": "root", "tty": True, "maxLaunchDelaySeconds": 9}
    assert after == {"tty": False, "maxLaunchDelaySeconds": 300}


def test_a_new_app_shows_what_is_requested() -> None:
    assert difference({}, read_app(APP)) == ({}, APP)


@pytest.mark.parametrize("path", ["", "/", "/A", "a_b", "/a/-b", "/a-", "/a b", "/a/../b"])
def test_paths_that_are_none(path: str) -> None:
    with pytest.raises(AppProblem, match="is no path"):
        read_path(path)


@pytest.mark.parametrize(("path", "absolute"), [("a", "/a"), ("/a/b/", "/a/b"), ("/a.b-c/0", "/a.b-c/0")])
def test_paths(path: str, absolute: str) -> None:
    assert read_path(path) == absolute


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cmd": "x", "args": ["y"]}, "both cmd and args"),
        ({"cmd": ""}, "nothing to run"),
        ({"gpus": 0.5}, "gpus is 0.5; give a whole number"),
        ({"cpus": True}, "cpus is True"),
        ({"gpus": 1, "container": {"docker": {"image": "x"}}}, "type DOCKER, which gets no devices"),
        (
            {"gpus": 1, "container": {"type": "MESOS", "docker": {"image": "x", "privileged": True}}},
            "no docker.privileged",
        ),
        ({"constraints": [["hostname", "NEAR"]]}, "is none: give a field"),
        ({"residency": {}}, "residency is outdated; use unreachableStrategy"),
        (
            {"container": {"docker": {"image": "x", "network": "BRIDGE"}}},
            r"container.docker.network is outdated; use networks\.",
        ),
        (
            {"container": {"docker": {"image": "x"}, "portMappings": [{"containerPort": 80}]}},
            "container.portMappings and the network of the host, where Marathon drops them",
        ),
        (
            {"networks": [{"mode": "container/bridge"}], "portDefinitions": [{"port": 80}]},
            "portDefinitions and a network of its own, where Marathon drops them",
        ),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(AppProblem, match=words):
        read_app({**APP, **change})


def test_what_is_mostly_not_meant_is_warned_of() -> None:
    assert "no GPUs" in " ".join(warnings({**APP, "gpus": 1}))
    assert "does not scale" in " ".join(warnings({**APP, "healthChecks": [{"protocol": "HTTP"}]}))
    fine = {**APP, "gpus": 1, "upgradeStrategy": {"minimumHealthCapacity": 0, "maximumOverCapacity": 0}}
    assert list(warnings(fine)) == []


def test_every_default_belongs_to_a_field() -> None:
    assert set(DEFAULTS) < set(FIELDS)


def test_nothing_offered_names_quota_and_feature() -> None:
    item = {
        "count": 2,
        "role": "ada",
        "app": {"id": "/a"},
        "processedOffersSummary": {"processedOffersCount": 0},
    }
    assert "offers nothing to role ada" in wait.waiting(item)
    assert "quota" in wait.waiting(item)


def test_a_failed_app_tells_when_it_is_tried_again() -> None:
    item = {"count": 1, "app": {"id": "/a"}, "delay": {"timeLeftSeconds": 7, "overdue": False}}
    assert "is tried again in 7 seconds" in wait.waiting(item)


def test_a_reason_that_is_new_is_told_by_its_name() -> None:
    rows = [{"reason": "Other", "declined": 1, "processed": 1}]
    summary = {"processedOffersCount": 1, "rejectSummaryLastOffers": rows}
    assert "1 declined for Other" in wait.waiting({"app": {}, "processedOffersSummary": summary})


MAPPED = {"networks": [{"mode": "container/bridge"}]}
PERSISTENT = {"containerPath": "data", "mode": "RW", "persistent": {"size": 512}}


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("healthChecks", [{"protocol": "MESOS_TCP", "portIndex": 1}], [{"protocol": "MESOS_TCP"}]),
        ("healthChecks", [{"protocol": "MESOS_HTTP", "path": "/"}], [{"protocol": "MESOS_HTTP"}]),
        ("container", {"volumes": [PERSISTENT]}, {"volumes": [{**PERSISTENT, "persistent": {"size": 1024}}]}),
        ("container", {"volumes": [PERSISTENT]}, {"volumes": [{**PERSISTENT, "mode": "RO"}]}),
        ("check", {"http": {"path": "/"}}, {"http": {"path": "/"}, "delaySeconds": 9}),
        ("networks", [{"name": "one"}], [{"name": "other"}]),
        ("constraints", [["hostname", "UNIQUE"]], [["hostname", "UNIQUE"], ["rack", "GROUP_BY"]]),
    ],
)
def test_a_change_beside_what_a_server_fills_in_is_found(field: str, before: Any, after: Any) -> None:
    current = server.complete({**APP, **MAPPED, field: before}, "*")
    assert set(difference(current, read_app({**APP, **MAPPED, field: after})).after) == {field}


def test_the_order_of_constraints_is_no_difference() -> None:
    rules = [["hostname", "UNIQUE"], ["rack", "GROUP_BY"]]
    assert difference({**APP, "constraints": rules}, {**APP, "constraints": rules[::-1]}) == ({}, {})
