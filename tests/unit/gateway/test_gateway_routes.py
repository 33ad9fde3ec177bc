"""Labels of apps become routes, or one sentence each; what belongs to one app harms no other."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.claims import settle
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.configuration import (
    backends,
    place_map,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.routes import (
    UNDERSTOOD,
    Check,
    Route,
    Server,
    Settings,
    check_apps,
)
from hypothesis import given
from hypothesis import strategies as st

SETTINGS = Settings(("external",), "gate.example.org", (10000, 10100))


def app(
    app_id: str = "/users/anna/plots", labels: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """An app on the host's network with two ports and two tasks."""
    return {
        "id": app_id,
        "labels": {"HAPROXY_GROUP": "external"} | (labels or {}),
        "portDefinitions": [{"port": 10001}, {"port": 10002}],
        "networks": [{"mode": "host"}],
        "tasks": [
            {"id": "t1", "host": "agent1", "ports": [31001, 31002], "state": "TASK_RUNNING"},
            {"id": "t2", "host": "10.0.0.2", "ports": [31005, 31006], "state": "TASK_RUNNING"},
        ],
    } | more


def routes(*apps: dict[str, Any]) -> list[Route]:
    found = check_apps(apps, SETTINGS)
    assert found.problems == {}
    return found.routes


def sentence(**more: Any) -> str:
    """Problems of an app with one port."""
    found = check_apps([app(portDefinitions=[{"port": 10001}], **more)], SETTINGS)
    assert found.routes == []
    [(_app, [text])] = found.problems.items()
    return text


def test_service_ports_are_served_as_tcp_and_names_as_http() -> None:
    first, second = routes(app(labels={"HAPROXY_1_VHOST": "Plots.example.org, b.example.org"}))
    assert (first.port, first.mode, first.places) == (10001, "tcp", ())
    assert (second.port, second.mode, second.places) == (0, "http", ("plots.example.org/", "b.example.org/"))
    assert first.servers == (Server("10.0.0.2", 31005), Server("agent1", 31001))


def test_a_path_alone_is_one_of_the_gateways_own_name() -> None:
    assert routes(app(labels={"HAPROXY_0_PATH": "/anna/", "HAPROXY_1_ENABLED": "false"}))[0].places == (
        "gate.example.org/anna/",
    )


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, [0, 1]),
        ({"HAPROXY_GROUP": "internal"}, []),
        ({"HAPROXY_GROUP": "internal,external"}, [0, 1]),
        ({"HAPROXY_GROUP": "", "HAPROXY_1_GROUP": "external"}, [1]),
        ({"HAPROXY_0_GROUP": "internal"}, [1]),
        ({"HAPROXY_0_ENABLED": "false"}, [1]),
    ],
)
def test_groups_say_which_ports_are_served(labels: dict[str, str], expected: list[int]) -> None:
    assert [route.index for route in routes(app(labels=labels))] == expected


def test_apps_without_our_labels_are_none_of_our_business() -> None:
    assert (
        check_apps([{"id": "/x"}, {"id": "/y", "labels": None}, {"id": "NOT AN ID"}], SETTINGS).problems == {}
    )


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"HAPROXY_0_VHOST": "a b"}, "is not a host name"),
        ({"HAPROXY_0_VHOST": "a.example.org\nglobal"}, "is not a host name"),
        ({"HAPROXY_0_VHOST": "-a"}, "is not a host name"),
        ({"HAPROXY_0_VHOST": "gate.example.org"}, "the gateway's own name belongs to all"),
        ({"HAPROXY_0_PATH": "plots"}, "is not a path"),
        ({"HAPROXY_0_PATH": "/a b"}, "is not a path"),
        ({"HAPROXY_0_PATH": "/a/../b"}, "a dot or two"),
        ({"HAPROXY_0_PATH": "/a'\""}, "is not a path"),
        ({"HAPROXY_0_MODE": "udp"}, "is none of http, tcp"),
        ({"HAPROXY_0_MODE": "tcp", "HAPROXY_0_PATH": "/a"}, "exist in http only"),
        ({"HAPROXY_0_BALANCE": "hdr(x)"}, "is none of roundrobin"),
        ({"HAPROXY_0_PATH": "/.well-known/acme-challenge"}, "is below /.well-known, which speaks for all"),
        (
            {"HAPROXY_0_VHOST": "a.example.org,gate.example.org", "HAPROXY_0_PATH": "/.well-known"},
            "is below /.well-known, which speaks for all",
        ),
        ({"HAPROXY_0_STICKY": "maybe"}, "is neither true nor false"),
        ({"HAPROXY_0_STICKY": "true"}, "exist in mode http only"),
        ({"HAPROXY_0_HTTP_BACKEND_PROXYPASS_PATH": "/a"}, "mode http only"),
        ({"HAPROXY_0_REDIRECT_TO_HTTPS": "false", "HAPROXY_0_PATH": "/a"}, "by HTTPS only"),
        ({"HAPROXY_0_PORT": "10001x"}, "is not a port"),
        ({"HAPROXY_0_PORT": "22"}, "is not among those of the gateway (10000 to 10100)"),
        ({"HAPROXY_7_VHOST": "a.example.org"}, "a label names port 7, and it has 1 port(s)"),
    ],
)
def test_what_cannot_be_followed_is_told(labels: dict[str, str], words: str) -> None:
    text = sentence(labels=labels)
    assert words in text and text.startswith("/users/anna/plots") and text.endswith(".")


@pytest.mark.parametrize(
    "more",
    [
        {"tasks": [{"id": "t", "host": "h", "ports": ["x"], "state": "TASK_RUNNING"}]},
        {"portDefinitions": [{"port": "many"}]},
        {"healthChecks": [{"intervalSeconds": []}], "portDefinitions": [{"port": 10001}]},
        {"labels": ["HAPROXY_GROUP"]},
        {"tasks": 7},
    ],
)
def test_an_app_that_is_described_in_another_way_leaves_the_others_alone(more: dict[str, Any]) -> None:
    found = check_apps([app("/broken") | more, app("/fine", portDefinitions=[{"port": 10009}])], SETTINGS)
    assert [route.app for route in found.routes if route.app != "/broken"] == ["/fine"]


def test_labels_without_effect_are_told_and_harm_nothing() -> None:
    labels = {"HAPROXY_0_BACKEND_HEAD": "backend x\n", "HAPROXY_DEPLOYMENT_GROUP": "g", "HAPROXY_0_\nX": ""}
    found = check_apps([app(labels=labels)], SETTINGS)
    assert len(found.routes) == 2 and found.problems == {}
    [[text]] = found.notes.values()
    assert "HAPROXY_0_BACKEND_HEAD and HAPROXY_DEPLOYMENT_GROUP and a label with an odd name" in text


def test_only_tasks_that_are_well_get_requests() -> None:
    def task(name: str, alive: bool | None, state: str = "TASK_RUNNING") -> dict[str, Any]:
        results = [] if alive is None else [{"alive": alive}]
        return {"id": name, "host": name, "ports": [1], "state": state, "healthCheckResults": results}

    def chosen(*tasks: dict[str, Any], checks: tuple[Any, ...] = ({"protocol": "MESOS_HTTP"},)) -> list[str]:
        [one] = routes(app(portDefinitions=[{"port": 10001}], tasks=list(tasks), healthChecks=list(checks)))
        return [server.host for server in one.servers]

    assert chosen(task("a", True), task("b", False), task("c", None)) == ["a"]
    assert chosen(task("a", None), task("b", False)) == ["a"]
    assert chosen(task("a", False)) == []
    assert chosen(task("a", True), task("b", True, "TASK_KILLING"), task("c", True, "TASK_STAGING")) == ["a"]
    assert chosen(task("a", None), task("b", None), checks=()) == ["a", "b"]


def test_containers_with_a_network_of_their_own() -> None:
    bridge = {
        "networks": [{"mode": "container/bridge"}],
        "container": {"portMappings": [{"containerPort": 8888, "hostPort": 0, "servicePort": 10005}]},
        "portDefinitions": [],
        "tasks": [{"id": "t", "host": "agent1", "ports": [31001], "state": "TASK_RUNNING"}],
    }
    [route] = routes(app(**bridge))
    assert (route.port, route.servers) == (10005, (Server("agent1", 31001),))
    own = bridge | {
        "networks": [{"mode": "container", "name": "net"}],
        "container": {"portMappings": [{"containerPort": 8888, "servicePort": 10005}]},
        "tasks": [{"id": "t", "host": "agent1", "ipAddresses": [{"ipAddress": "10.9.0.7"}]}],
    }
    assert routes(app(**own))[0].servers == (Server("10.9.0.7", 8888),)


def test_health_checks_are_haproxys_too() -> None:
    def check(**health: Any) -> Check:
        checks = [{"protocol": "MESOS_HTTP", "path": "/hub", "portIndex": 0, "intervalSeconds": 30} | health]
        return routes(app(labels={"HAPROXY_0_PATH": "/x"}, healthChecks=checks))[0].check

    assert check() == Check("/hub", 10)
    assert check(intervalSeconds=1) == Check("/hub", 2)
    assert check(protocol="MESOS_TCP") == Check("", 10)
    assert check(path="/a b") == Check("", 10)
    assert check(portIndex=1) == Check()


@pytest.mark.parametrize(("address", "place"), [("192.0.2.7", "192.0.2.7"), ("2001:db8::7", "[2001:db8::7]")])
def test_tasks_are_reached_at_addresses_of_both_kinds(address: str, place: str) -> None:
    written = backends(routes(app()), {"agent1": address}, "/cert", "*:{port}")
    assert f"server agent1:31001 {place}:31001" in written


# Pattern of each line of the written configuration: words of ours, names and numbers that were checked.
LINE = re.compile(
    r"""(backend|frontend)\ [a-z0-9._-]+|\ {4}(
    mode\ (http|tcp)|balance\ [a-z-]+|bind\ \*:[0-9]+(\ ssl\ crt\ /cert)?(\ alpn\ h2,http/1.1)?
    |default_backend\ [a-z0-9._-]+|option\ (forwardfor|httpchk|idle-close-on-response)
    |http-request\ (del-header\ (X-Forwarded-\ -m\ beg|X-Real-IP|X-Scheme|Forwarded)
      |set-header\ X-Forwarded-Proto\ https?
      |disable-l7-retry\ unless\ METH_GET
      |replace-path\ \^[]\[A-Za-z0-9._~+,;=:@/-]+\(/\.\*\)\?\$\ \\1
       \ if\ \{\ path\ -m\ beg\ [A-Za-z0-9._~+,;=:@/-]+\ \}
      |set-path\ /\ if\ \{\ path\ [A-Za-z0-9._~+,;=:@/-]+\ \})
    |log-format\ "%ci\ %b\ %s\ %tsc\ %Tt"|retry-on\ conn-failure\ empty-response
    |cookie\ gpufarm_task_[0-9a-f]{16}\ insert\ indirect\ nocache\ httponly(\ secure)?
    |http-response\ set-header\ Strict-Transport-Security\ "max-age=15768000"
    |http-check\ send\ meth\ GET\ uri\ /[A-Za-z0-9._~+,;=:@/?&%-]*(\ ver\ HTTP/1.1\ hdr\ Host\ [a-z0-9.-]+)?
    |default-server\ check\ inter\ [0-9]+s\ fall\ 3\ rise\ 1
    |server\ [a-z0-9.:-]+\ [0-9.:\[\]a-f]+(\ cookie\ [0-9a-f]{16})?)?|""",
    re.VERBOSE,
)
TEXT = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["true", "http", "tcp", "/a", "/a/b.c+d", "a.example.org", "gate.example.org", "10007", "source"]
    ),
)
LABELS = st.dictionaries(
    st.sampled_from(
        [f"HAPROXY_{index}_{word}" for index in (0, 1) for word in (*UNDERSTOOD, "BACKEND_HEAD")]
    ),
    TEXT,
)
APPS = st.builds(
    lambda app_id, labels, host, path: app(
        app_id,
        labels,
        healthChecks=[{"protocol": "HTTP", "path": path}],
        tasks=[{"id": "t", "host": host, "ports": [31001, 31002], "state": "TASK_RUNNING"}],
    ),
    st.one_of(st.sampled_from(["/a", "/a/b", "/b"]), st.text(max_size=20)),
    LABELS,
    st.one_of(st.sampled_from(["agent1", "10.0.0.1", "fe80::1"]), st.text(max_size=20)),
    TEXT,
)


@given(st.lists(APPS, max_size=4))
def test_nothing_of_a_label_reaches_the_configuration_as_anything_but_a_word(
    apps: list[dict[str, Any]],
) -> None:
    settled = settle(check_apps(apps, SETTINGS).routes, {})
    hosts = {server.host for route in settled.routes for server in route.servers}
    text = backends(settled.routes, dict.fromkeys(hosts, "10.0.0.9"), "/cert", "*:{port}")
    for line in text.split("\n"):
        assert LINE.fullmatch(line), line
    for line in place_map(settled.routes).splitlines():
        assert re.fullmatch(r"[a-z0-9.-]+/[A-Za-z0-9._~+,;=:@/-]* [a-z0-9._-]+", line), line
    names = [route.name for route in settled.routes]
    claims = [claim for route in settled.routes for claim in route.claims]
    assert len(set(names)) == len(names) and len(set(claims)) == len(claims)


def test_all_frontends_leave_out_what_clients_say_of_themselves() -> None:
    template = Path(__file__).parents[3] / "roles" / "app_gateway" / "templates" / "haproxy.cfg.j2"
    of_names = re.findall("http-request del-header .*", template.read_text())
    written = backends([Route("/a", 0, port=10001)], {}, "/cert", "*:{port}")
    assert of_names == re.findall("http-request del-header .*", written)
    names = {line.split()[2] for line in of_names}
    assert names == {"X-Forwarded-", "X-Real-IP", "X-Scheme", "Forwarded"}


def test_a_browser_stays_with_its_tasks_of_several_apps() -> None:
    """Apps below one name share its cookies, so one for all would only know the task of the last app."""
    sticky = [Route(f"/{name}", 0, places=(f"x/{name}/",), sticky=True) for name in "ab"]
    written = backends([*sticky, Route("/c", 0, places=("x/c/",))], {}, "/cert", "*:{port}")
    cookies = re.findall(r"cookie (gpufarm_task_[0-9a-f]{16}) insert", written)
    assert len(set(cookies)) == 2 == written.count(" insert ")


def test_who_has_a_name_keeps_it() -> None:
    mine = Route("/m", 0, places=("x/", "y/"))
    theirs = Route("/a", 0, places=("x/",))
    free = Route("/z", 0, places=("z/",))
    first = settle([mine, free], {})
    assert first.holders == {"x/": "m_0", "y/": "m_0", "z/": "z_0"}
    second = settle([theirs, mine, free], first.holders)
    assert [route.app for route in second.routes] == ["/m", "/z"]
    assert second.problems == {"/a": ["/a, port 0 is not served: x is taken by backend m_0."]}
    third = settle([theirs, free], second.holders)
    assert [route.app for route in third.routes] == ["/a", "/z"] and third.problems == {}


def test_nobody_takes_a_part_of_the_path_of_another_group() -> None:
    notebook = Route("/ada/nb", 0, places=("x/ada/nb/",))
    thief = Route("/bob/a", 0, places=("x/ada/nb/login/",))
    held = settle([notebook], {}).holders
    settled = settle([thief, notebook], held)
    assert [route.app for route in settled.routes] == ["/ada/nb"]
    assert settled.problems == {
        "/bob/a": [
            "/bob/a, port 0 is not served: x/ada/nb/login is below x/ada/nb, which backend ada_nb_0 of"
            " another group has."
        ]
    }
    assert [route.app for route in settle([thief], settled.holders).routes] == ["/bob/a"]


def test_a_group_divides_its_own_path_and_beginnings_of_paths_take_nothing_away() -> None:
    part = Route("/ada/api", 0, places=("x/ada/nb/api/",))
    notebook = Route("/ada/nb", 0, places=("x/ada/nb/",))
    other = Route("/bob/b", 0, places=("x/ada/nb2/", "x/ada/"))
    assert len(settle([part, notebook, other], settle([notebook], {}).holders).routes) == 3


def test_newcomers_are_decided_on_alike_by_every_gateway() -> None:
    one, other = Route("/a", 0, port=10001), Route("/b", 0, port=10001)
    assert settle([one, other], {}) == settle([other, one], {})
    assert [route.app for route in settle([other, one], {}).routes] == ["/a"]


ROUTES = st.lists(
    st.builds(
        Route,
        st.sampled_from(["/a", "/b", "/c", "/d"]),
        st.sampled_from([0, 1]),
        st.lists(st.sampled_from(["u/", "v/", "w/"]), unique=True).map(tuple),
    ),
    unique_by=lambda route: route.name,
)


@given(ROUTES, st.dictionaries(st.sampled_from(["u/", "v/", "w/"]), st.sampled_from(["a_0", "b_1", "c_0"])))
def test_every_place_has_one_route_and_holders_that_ask_on_never_lose(
    asked: list[Route], holders: dict[str, str]
) -> None:
    settled = settle(asked, holders)
    claims = [claim for route in settled.routes for claim in route.claims]
    assert len(claims) == len(set(claims))
    for route in asked:
        if all(holders.get(claim) == route.name for claim in route.claims):
            assert route in settled.routes
