"""Apps and jobs of INDIGO's types in the words of Marathon and Chronos."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpufarm.cluster.plugins.filter.indigo_definition import indigo_definition
from ansible_collections.gpufarm.cluster.plugins.module_utils._indigo_app import (
    IndigoError,
    chronos_job,
    compose_definition,
    environment,
    marathon_app,
    mebibytes,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.app import PATH

APP: dict[str, Any] = {
    "name": "Tensor_Flow",
    "image": "tensorflow/tensorflow:2.0.0-gpu-jupyter",
    "command": "jupyter notebook --port $PORT0",
    "num_cpus": 0.5,
    "mem_size": "1 GB",
    "num_gpus": 0,
    "publish_ports": [{"protocol": "tcp", "source": 8888}, {"source": 22, "target": 10022}],
    "uris": ["https://example.org/data.tgz"],
    "labels": {"owner": "ada"},
    "constraints": [["hostname", "UNIQUE"]],
    "privileged": True,
    "force_pull_image": True,
}


def test_an_app_in_docker() -> None:
    assert marathon_app(APP) == {
        "id": "/tensor-flow",
        "cmd": "jupyter notebook --port $PORT0",
        "cpus": 0.5,
        "mem": 953.674,
        "fetch": [{"uri": "https://example.org/data.tgz"}],
        "constraints": [["hostname", "UNIQUE"]],
        "labels": {"owner": "ada", "HAPROXY_GROUP": "external"},
        "networks": [{"mode": "container/bridge"}],
        "container": {
            "type": "DOCKER",
            "docker": {"image": APP["image"], "forcePullImage": True, "privileged": True},
            "portMappings": [
                {"containerPort": 8888, "hostPort": 0, "servicePort": 0, "protocol": "tcp"},
                {"containerPort": 22, "hostPort": 0, "servicePort": 10022, "protocol": "tcp"},
            ],
        },
    }


def test_an_app_with_gpus_is_run_by_mesos_itself() -> None:
    found = marathon_app({**APP, "num_gpus": 2})
    assert found["gpus"] == 2 and found["networks"] == [{"mode": "host"}]
    assert found["container"] == {"type": "MESOS", "docker": {"image": APP["image"], "forcePullImage": True}}
    assert found["portDefinitions"] == [{"port": 0, "protocol": "tcp"}, {"port": 10022, "protocol": "tcp"}]


def test_deployments_of_one_template_have_apps_and_jobs_of_their_own() -> None:
    job = {**APP, "schedule": "", "parents": ["first"]}
    one, other = (
        {**job, "made_for": f"deployment {name} of 2026-11-28T10:00:00Z"} for name in ("one", "two")
    )
    assert PATH.fullmatch(marathon_app(one)["id"])
    assert marathon_app(one)["id"] == marathon_app(dict(one))["id"] != marathon_app(other)["id"]
    assert chronos_job(one)["name"] != chronos_job(other)["name"]
    first = chronos_job({**one, "name": "first"})["name"]
    assert chronos_job(one)["parents"] == [first] != chronos_job(other)["parents"]


def test_what_is_not_said() -> None:
    empty = dict.fromkeys(APP, None) | {"name": "x", "image": "mysql"}
    found = marathon_app(empty)
    assert found["cpus"] == 1 and "cmd" not in found and found["labels"] == {} and "gpus" not in found


def test_a_job() -> None:
    job = {**APP, "schedule": "R0/2015-12-25T17:22:00Z/PT5M", "retries": 3, "num_gpus": 1}
    found = chronos_job(job)
    assert (found["name"], found["retries"], found["gpus"]) == ("Tensor_Flow", 3, 1)
    assert found["container"]["type"] == "MESOS"
    assert chronos_job({**job, "num_gpus": 0})["container"]["type"] == "DOCKER"


def test_a_job_without_a_schedule_is_run_once() -> None:
    job = {**APP, "schedule": ""}
    once = chronos_job({**job, "parents": [None]})
    assert once["schedule"] == "R1//P1Y" and "parents" not in once
    after = chronos_job({**job, "parents": ["first"]})
    assert after["parents"] == ["first"] and "schedule" not in after


def test_a_container_of_docker() -> None:
    words = {
        "appname": "nginx",
        "image": "nginx",
        "tag": "1.27",
        "command": "sh -c 'echo $HOME'",
        "ports": ["8080:80"],
        "volume": "/data_on_container",
        "variables": ["PASSWORD", "MODE"],
    }
    assert compose_definition(words) == {
        "services": {
            "nginx": {
                "image": "nginx:1.27",
                "container_name": "nginx",
                "restart": "unless-stopped",
                "ports": ["8080:80"],
                "environment": ["MODE", "PASSWORD"],
                "volumes": ["/data:/data_on_container"],
                "command": "sh -c 'echo $$HOME'",
            }
        }
    }
    least = compose_definition({"appname": "web", "image": "nginx", "tag": "", "volume": ""})
    web = {"image": "nginx:latest", "container_name": "web", "restart": "unless-stopped"}
    assert least == {"services": {"web": web}}
    odd = compose_definition({**words, "ports": ["$PORT:80"]})["services"]["nginx"]
    assert odd["ports"] == ["$$PORT:80"], "Compose replaces no variable"


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.27", "nginx:1.27"),
        ("registry.example.org:5000/web/nginx", "registry.example.org:5000/web/nginx:latest"),
        ("registry.example.org:5000/nginx:1", "registry.example.org:5000/nginx:1"),
        ("nginx@sha256:0123", "nginx@sha256:0123"),
    ],
)
def test_an_image_has_one_tag(image: str, said: str) -> None:
    found = compose_definition({"appname": "web", "image": image, "tag": "latest"})
    assert found["services"]["web"]["image"] == said


def test_the_environment_of_a_container() -> None:
    assert environment([{"A": "1", "B": 2}, {"key": "C", "value": "3"}, {"A": "4"}]) == {
        "A": "4",
        "B": "2",
        "C": "3",
    }
    assert environment([{"A": True}, {"key": "B", "value": False}]) == {"A": "true", "B": "false"}
    for wrong in (["A=1"], [{"A": ["x"]}]):
        with pytest.raises(IndigoError, match="no map of names to texts"):
            environment(wrong)  # type: ignore[arg-type]
    with pytest.raises(IndigoError, match="environment_variables gives A no value; write one or remove it"):
        environment([{"A": None}])
    for none in (None, "A=1", {"A": "1"}):
        with pytest.raises(IndigoError, match="environment_variables is no list of maps"):
            environment(none)


@pytest.mark.parametrize(
    ("words", "service", "said"),
    [
        ({"image": "nginx"}, "compose", "^compose needs the property appname of the template; write it$"),
        (None, "marathon", "^the properties of the template are no map that marathon can run; correct them$"),
        ({**APP, "num_cpus": "many"}, "chronos", "^the properties of the template are no map that chronos"),
        (7, "environment", "^environment_variables is no list of maps"),
    ],
)
def test_what_cannot_be_said_is_refused_in_a_sentence(words: Any, service: str, said: str) -> None:
    with pytest.raises(AnsibleFilterError, match=said):
        indigo_definition(words, service)


def test_volumes_are_refused() -> None:
    with pytest.raises(IndigoError, match="volumes of an INDIGO template are not supported"):
        marathon_app({**APP, "volumes": ["tensorflow:/tf:rw:dvdi:rexray"]})


@pytest.mark.parametrize(
    ("size", "found"), [("512 MB", 488.281), ("1 GiB", 1024), ("4096 MiB", 4096), ("2 gb", 1907.349)]
)
def test_memory(size: str, found: float) -> None:
    assert mebibytes(size) == found


@pytest.mark.parametrize("size", ["", "x", "5 XB", "-1 MB", "1 2 MB"])
def test_no_memory(size: str) -> None:
    with pytest.raises(IndigoError, match="is no amount of memory"):
        mebibytes(size)
