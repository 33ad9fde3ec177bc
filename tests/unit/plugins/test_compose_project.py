"""A Compose project: what is refused, what differs, and what is waited for."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._compose.project import (
    Container,
    applied,
    containers,
    differences,
    dotenv,
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
    assert (
        plan({**SETTINGS, **fetched, "secret_env": {"PASSWORD": "x", "N": 3, "PATH": "y"}})["problems"] == []
    )
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
        ({"definition": ["web"]}, "has no services"),
        ({"definition": {"services": {"a b": {"image": "x"}}}}, "has a service 'a b'"),
        ({"definition": {"services": {"web": {"ports": []}}}}, "has no image"),
        ({"secret_env": {"a-b": "x"}}, "has no name that programs take"),
        *(
            ({"secret_env": {name: "x"}}, "would change what Docker does")
            for name in ("LD_PRELOAD", "DOCKER_HOST", "COMPOSE_FILE", "docker_context")
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
    told = plan({**SETTINGS, "secret_env": {"A": ["opensesame"], "b-c": "opensesame", "LD_X": "opensesame"}})
    assert len(told["problems"]) == 3 and "opensesame" not in str(told)


def inspected(**state: Any) -> dict[str, Any]:
    label = "com.docker.compose"
    return {
        "Id": state.pop("id", "1234"),
        "Name": "/tracking-web-1",
        "RestartCount": state.pop("restarts", 0),
        "Config": {
            "Image": "nginx:1.27",
            "Labels": {
                f"{label}.service": "web",
                f"{label}.project.config_files": "/etc/x.yaml",
                f"{label}.oneoff": state.pop("oneoff", "False"),
            },
        },
        "HostConfig": {"RestartPolicy": {"Name": state.pop("policy", "no")}},
        "State": {"Status": "running", "ExitCode": 0, **state},
        "NetworkSettings": {"Ports": {"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8080"}], "90/tcp": None}},
    }


def one(**state: Any) -> Container:
    return containers([inspected(**state)])[0]


def test_what_docker_tells() -> None:
    web = one(restarts=3, policy="always")
    assert (web.name, web.service, web.files) == ("tracking-web-1", "web", "/etc/x.yaml")
    assert (web.ports, web.restarts, web.policy) == (("0.0.0.0:8080->80/tcp",), 3, "always")
    assert one(oneoff="True").is_single and not web.is_single


@pytest.mark.parametrize(
    ("state", "is_well", "has_failed", "told"),
    [
        ({}, True, False, "web is running"),
        ({"Health": {"Status": "healthy"}}, True, False, "web is healthy"),
        ({"Health": {"Status": "starting"}}, False, False, "web is starting"),
        ({"Health": {"Status": "unhealthy"}}, False, False, "web is unhealthy"),
        ({"Status": "restarting", "ExitCode": 1}, False, False, "web is restarting"),
        ({"Status": "exited", "ExitCode": 0}, True, False, "web has ended with 0"),
        ({"Status": "exited", "ExitCode": 0, "policy": "on-failure"}, True, False, "web has ended with 0"),
        (
            {"Status": "exited", "ExitCode": 0, "policy": "unless-stopped"},
            False,
            True,
            "web has ended with 0",
        ),
        ({"Status": "exited", "ExitCode": 137}, False, True, "web has ended with 137"),
        ({"Status": "created"}, False, False, "web is created"),
        ({"Status": "paused"}, False, True, "web is paused"),
    ],
)
def test_states(state: dict[str, Any], is_well: bool, has_failed: bool, told: str) -> None:
    container = one(**state)
    assert (container.is_well, container.has_failed, container.told()) == (is_well, has_failed, told)


def test_differences() -> None:
    web, single = one(), one(id="9", oneoff="True")
    before = applied("file", [web, single])
    assert differences("file", "", []) == ["nothing was applied"]
    assert differences("file", before, [web, single]) == []
    assert differences("file", before, [web]) == [], "a single run by hand is none of the services"
    assert differences("other", before, [web]) == ["the settings have changed"]
    assert differences("file", before, []) == ["containers are missing"]
    assert differences("file", before, [web, one(id="5")]) == ["tracking-web-1 was not made by this role"]
    assert differences("file", before, [one(Status="exited", ExitCode=3)]) == ["web has ended with 3"]
    assert differences("file", before, [one(Status="exited")]) == [], "it has done what it was for"
    assert differences("file", before, [one(Status="restarting")]) == ["web is restarting"]


@pytest.mark.parametrize("damaged", ["x", "[]", "7", '{"digest": 7, "containers": 3}', "null"])
def test_a_damaged_memory_is_none(damaged: str) -> None:
    assert differences("file", damaged, [one()])[0] == "the settings have changed"


def test_values_are_in_no_memory() -> None:
    assert "opensesame" not in applied("password: opensesame", [one()])


def test_files_of_values() -> None:
    values = {"A": "it's $5", "B": 'a "b" \\ c', "C": "two\nlines", "D": ""}
    assert dotenv(values, 1) == "A='it\\'s $5'\nB='a \"b\" \\\\ c'\nC='two\nlines'\nD=''\n"
    assert dotenv(values, 2) == 'A="it\'s \\$5"\nB="a \\"b\\" \\\\ c"\nC="two\nlines"\nD=""\n'
