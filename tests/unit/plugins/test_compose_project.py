"""A Compose project: what is refused, what differs, and what is waited for."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._compose.project import (
    Container,
    containers,
    differences,
    digests,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._compose.settings import plan

SETTINGS: dict[str, Any] = {
    "state": "present",
    "name": "tracking",
    "definition": {"services": {"web": {"image": "nginx:1.27"}}},
    "url": "",
    "checksum": "",
    "secret_env": {},
    "wait_timeout": 300,
}


def test_good_settings() -> None:
    assert plan(SETTINGS)["problems"] == []
    fetched = {"definition": {}, "url": "https://example.org/compose.yaml", "checksum": f"sha256:{'a' * 64}"}
    assert plan({**SETTINGS, **fetched, "secret_env": {"PASSWORD": "x", "N": 3}})["problems"] == []
    assert plan({**SETTINGS, "state": "absent", "definition": {}})["problems"] == []


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        *(
            ({"name": name}, "takes for no name")
            for name in ("", "Tracking", "a/b", "-a", "../etc", "a" * 64, "a\n")
        ),
        ({"definition": {}}, "and not both"),
        ({"url": "https://example.org/c.yaml"}, "and not both"),
        *(
            ({"definition": {}, "url": url}, "begins with https://")
            for url in (
                "http://example.org/c",
                "file:///etc/shadow",
                "https://u:p@example.org/c",
                "https://a b/c",
            )
        ),
        ({"checksum": "md5:0"}, "write it as sha256:"),
        ({"definition": {"version": "3"}}, "has no services"),
        ({"definition": {"services": {"a b": {"image": "x"}}}}, "has a service 'a b'"),
        ({"definition": {"services": {"web": {"ports": []}}}}, "has no image"),
        ({"secret_env": {"a-b": "x"}}, "has no name that programs take"),
        *(
            ({"secret_env": {name: "x"}}, "would change what Docker does")
            for name in ("PATH", "LD_PRELOAD", "DOCKER_HOST", "COMPOSE_FILE", "PYTHONPATH", "https_proxy")
        ),
        ({"secret_env": {"A": ["x"]}}, "has no text as its value"),
        ({"secret_env": {"A": "x\0"}}, "has no text as its value"),
        ({"wait_timeout": 0}, "at least 1 second"),
    ],
)
def test_bad_settings(wrong: dict[str, Any], word: str) -> None:
    (told,) = plan({**SETTINGS, **wrong})["problems"]
    assert word in told and told.endswith(".")


def test_values_of_secrets_are_not_told() -> None:
    told = plan({**SETTINGS, "secret_env": {"A": ["opensesame"], "b-c": "opensesame", "PATH": "opensesame"}})
    assert len(told["problems"]) == 3 and "opensesame" not in str(told)


def inspected(**state: Any) -> dict[str, Any]:
    label = "com.docker.compose"
    return {
        "Id": "1234",
        "Config": {
            "Image": "nginx:1.27",
            "Labels": {
                f"{label}.service": state.pop("service", "web"),
                f"{label}.config-hash": "abc",
                f"{label}.project.config_files": "/etc/x.yaml",
                f"{label}.oneoff": state.pop("oneoff", "False"),
            },
        },
        "State": {"Status": "running", "ExitCode": 0, **state},
        "NetworkSettings": {"Ports": {"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8080"}], "90/tcp": None}},
    }


def one(**state: Any) -> Container:
    return containers([inspected(**state)])[0]


def test_what_docker_tells() -> None:
    web = one()
    assert (web.service, web.digest, web.files, web.ports) == (
        "web",
        "abc",
        "/etc/x.yaml",
        ("0.0.0.0:8080->80/tcp",),
    )
    assert containers([inspected(oneoff="True")]) == [], "a single run by hand"


@pytest.mark.parametrize(
    ("state", "is_well", "has_failed", "told"),
    [
        ({}, True, False, "web is running"),
        ({"Health": {"Status": "healthy"}}, True, False, "web is healthy"),
        ({"Health": {"Status": "starting"}}, False, False, "web is starting"),
        ({"Health": {"Status": "unhealthy"}}, False, False, "web is unhealthy"),
        ({"Status": "restarting", "ExitCode": 1}, False, False, "web is restarting"),
        ({"Status": "exited", "ExitCode": 0}, True, False, "web ended with 0"),
        ({"Status": "exited", "ExitCode": 137}, False, True, "web ended with 137"),
        ({"Status": "created"}, False, True, "web is created"),
    ],
)
def test_states(state: dict[str, Any], is_well: bool, has_failed: bool, told: str) -> None:
    container = one(**state)
    assert (container.is_well, container.has_failed, container.told()) == (is_well, has_failed, told)


def test_differences() -> None:
    wanted = digests("web abc\ndatabase def\n")
    assert differences(wanted, []) == ["database is missing", "web is missing"]
    assert differences({"web": "abc"}, [one()]) == []
    assert differences({"web": "xyz"}, [one()]) == ["web has other settings"]
    assert differences({"web": "abc"}, [one(Status="exited", ExitCode=3)]) == ["web ended with 3"]
    assert differences({"web": "abc"}, [one(Status="exited")]) == [], "it has done what it was for"
    assert differences({}, [one()]) == ["web is no longer wanted"]
    assert differences({"web": "abc"}, [one(), one(Status="exited", ExitCode=1)]) == ["web ended with 1"], (
        "one of two"
    )
