"""Rights of notebooks in containers, their names, and the download of their images."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import pytest
import yaml
from gpufarm_hub.spawning import container, containers, engines, pulling, units
from gpufarm_hub.spawning.container import GpuAccess, NoGpuAccessError, Plan
from gpufarm_hub.spawning.engine import Death, EngineError
from gpufarm_hub.spawning.mounts import Bind
from gpufarm_hub.spawning.pulling import PullError

PLAN = Plan(
    uid=1001,
    gid=5000,
    groups=[1001],
    home="/home/alice",
    memory=1 << 30,
    cores=1.5,
    processes=100,
    temporary="20M",
    network="jupyterhub",
    binds=[Bind("/cvmfs", "/cvmfs"), Bind("/srv/ours", "/data", read_only=False)],
)


def test_a_container_has_no_privilege_and_writes_to_the_home_only() -> None:
    config = container.host_config(PLAN)
    assert config["cap_drop"] == ["ALL"] and config["security_opt"] == ["no-new-privileges"]
    assert config["read_only"] and config["pids_limit"] == 100 and config["group_add"] == ["1001"]
    assert config["mem_limit"] == config["memswap_limit"] == 1 << 30
    assert config["cpu_quota"] / config["cpu_period"] == 1.5
    assert not {"privileged", "devices", "device_requests", "runtime", "cap_add"} & set(config)
    mounts = {mount["Target"]: mount for mount in config["mounts"]}
    assert {path for path, mount in mounts.items() if not mount["ReadOnly"]} == {"/home/alice", "/data"}
    assert {mount["BindOptions"]["Propagation"] for mount in mounts.values()} == {"rslave"}
    assert container.user_of(PLAN) == "1001:5000"


def test_what_is_hidden_in_a_folder_is_empty() -> None:
    plan = Plan(**{**PLAN.__dict__, "hidden": ["/data/staff"]})
    [mount] = [mount for mount in container.host_config(plan)["mounts"] if mount["Target"] == "/data/staff"]
    assert mount["Type"] == "tmpfs" and mount["ReadOnly"]


def test_kernels_of_any_image_add_packages_of_the_user() -> None:
    """The package that starts them is mounted from where the role puts it."""
    root = Path(__file__).parents[3]
    variables = container.environment_of(replace(PLAN, image="registry.example.org/ml@sha256:12"))
    assert variables["GPUFARM_IMAGE"] == "registry.example.org/ml@sha256:12"
    settings = yaml.safe_load((root / "roles/jupyterhub/vars/main/engine_docker.yml").read_text())
    [mount] = [
        mount
        for mount in container.host_config(PLAN)["mounts"]
        if mount["Source"] == settings["__jupyterhub_layers_folder"]
    ]
    assert mount["ReadOnly"]
    assert variables["JUPYTER_PATH"].startswith(f"{mount['Target']}/")
    inside = variables["JUPYTER_PATH"].removeprefix(f"{mount['Target']}/")
    assert (root / "packages/environment" / inside / "kernels/python3/kernel.json").is_file()


@pytest.mark.parametrize("access", list(GpuAccess))
def test_slices_are_given_in_one_way_only(access: GpuAccess) -> None:
    plan = Plan(**{**PLAN.__dict__, "slices": ["MIG-1", "MIG-2"], "access": access})
    config, environment = container.host_config(plan), container.environment_of(plan)
    assert environment["CUDA_VISIBLE_DEVICES"] == "MIG-1,MIG-2"
    if access is GpuAccess.CDI:
        [request] = config["device_requests"]
        assert request["Driver"] == "cdi"
        assert request["DeviceIDs"] == ["nvidia.com/gpu=MIG-1", "nvidia.com/gpu=MIG-2"]
        assert "runtime" not in config and environment["NVIDIA_VISIBLE_DEVICES"] == "void"
    else:
        assert config["runtime"] == "nvidia" and "device_requests" not in config
        assert environment["NVIDIA_VISIBLE_DEVICES"] == "MIG-1,MIG-2"


def test_without_slices_the_runtime_is_told_to_give_none() -> None:
    assert container.environment_of(PLAN)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert container.environment_of(PLAN)["CUDA_VISIBLE_DEVICES"] == ""


def test_how_an_engine_gives_gpus() -> None:
    assert container.gpu_access({"CDISpecDirs": ["/run/cdi"], "Runtimes": {"nvidia": {}}}) is GpuAccess.CDI
    assert container.gpu_access({"CDISpecDirs": None, "Runtimes": {"nvidia": {}}}) is GpuAccess.RUNTIME
    with pytest.raises(NoGpuAccessError, match=r"Docker 20\.10\.24 knows neither CDI"):
        container.gpu_access({"ServerVersion": "20.10.24", "Runtimes": {"runc": {}}})


@pytest.mark.parametrize(
    ("owner", "unit"),
    [
        ("alice/", "docker:jupyterhub-notebook-alice"),
        ("alice/second", "docker:jupyterhub-notebook-alice--second"),
        ("a.b_c-d/", "docker:jupyterhub-notebook-a-2Eb-5Fc-2Dd"),
        ("alice--second/", "docker:jupyterhub-notebook-alice-2D-2Dsecond"),
        ("alice/A b", "docker:jupyterhub-notebook-alice---41-20b"),
    ],
)
def test_each_notebook_has_a_container_of_its_own(owner: str, unit: str) -> None:
    assert containers.name_of(owner) == unit
    assert engines.of(unit) is engines.called("docker")
    assert engines.of(units.name_of(owner)) is engines.called("systemd")


class FakeDocker:
    """One container."""

    def __init__(
        self,
        state: str = "running",
        cpu: int = 0,
        failure: Exception | None = None,
        status: int = 0,
        out_of_memory: bool = False,
    ) -> None:
        self.state, self.cpu, self.failure, self.calls = state, cpu, failure, list[str]()
        self.status, self.out_of_memory = status, out_of_memory

    def __call__(self, **options: Any) -> FakeDocker:
        return self

    def inspect_container(self, name: str) -> dict[str, Any]:
        self._fail()
        request = {"DeviceIDs": ["nvidia.com/gpu=MIG-7"]}
        state = {"Status": self.state, "ExitCode": self.status, "OOMKilled": self.out_of_memory}
        return {"State": state, "HostConfig": {"DeviceRequests": [request]}}

    def top(self, name: str, ps_args: str) -> dict[str, Any]:
        self._fail()
        if self.state != "running":
            raise docker.errors.APIError("not running", SimpleNamespace(status_code=409))
        assert ps_args == "-eo pid"
        return {"Titles": ["PID"], "Processes": [["71"], ["72"]]}

    def containers(self, **options: Any) -> list[dict[str, Any]]:
        self._fail()
        assert options == {"all": True, "filters": {"name": "^/jupyterhub-notebook-"}}
        return [{"Names": ["/jupyterhub-notebook-alice"], "State": self.state}]

    def stats(self, name: str, **options: Any) -> dict[str, Any]:
        self._fail()
        return {"cpu_stats": {"cpu_usage": {"total_usage": self.cpu}}}

    def stop(self, name: str, timeout: int) -> None:
        self._fail()
        self.calls.append(f"stop {name}")

    def remove_container(self, name: str, **options: Any) -> None:
        self.calls.append(f"remove {name}")

    def close(self) -> None: ...

    def _fail(self) -> None:
        if self.failure:
            raise self.failure


def engine(monkeypatch: pytest.MonkeyPatch, **state: Any) -> FakeDocker:
    fake = FakeDocker(**state)
    monkeypatch.setattr(docker, "APIClient", fake)
    return fake


@pytest.mark.parametrize(
    ("state", "over"), [("running", False), ("paused", False), ("removing", False), ("exited", True)]
)
def test_which_containers_are_over(monkeypatch: pytest.MonkeyPatch, state: str, over: bool) -> None:
    engine(monkeypatch, state=state)
    assert containers.is_over("docker:x") is over


def test_a_container_that_is_gone_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, failure=docker.errors.NotFound("no such container"))
    assert containers.is_over("docker:x")
    assert containers.cpu_seconds("docker:x") is None
    containers.stop("docker:x")
    assert containers.processes("docker:x") == frozenset()
    assert containers.death("docker:x") is None


@pytest.mark.parametrize(
    ("status", "out_of_memory", "death"),
    [
        (0, False, None),
        (143, False, None),
        (1, False, Death("status", 1)),
        (139, False, Death("signal", 11)),
        (137, True, Death("memory")),
        (0, True, None),  # a kernel needed too much memory, and the user shut JupyterLab down later
        (1, True, Death("status", 1)),
    ],
)
def test_how_a_container_died(
    monkeypatch: pytest.MonkeyPatch, status: int, out_of_memory: bool, death: Death | None
) -> None:
    engine(monkeypatch, state="exited", status=status, out_of_memory=out_of_memory)
    assert containers.death("docker:x") == death


def test_a_docker_that_does_not_answer_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, failure=docker.errors.APIError("hung"))
    for ask in (
        containers.is_over,
        containers.death,
        containers.cpu_seconds,
        containers.processes,
        containers.stop,
        containers.revoke_devices,
    ):
        with pytest.raises(EngineError, match="docker:x"):
            ask("docker:x")


@pytest.mark.parametrize("state", ["running", "exited"])
def test_which_containers_run(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    engine(monkeypatch, state=state)
    assert containers.running() == ([containers.name_of("alice/")] if state == "running" else [])
    engine(monkeypatch, failure=docker.errors.APIError("hung"))
    with pytest.raises(EngineError, match="looking for notebooks"):
        containers.running()


def test_what_containers_can_reach_and_which_processes_are_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch)
    assert containers.reach() == {containers.name_of("alice/"): {"MIG-7"}}
    assert containers.processes("docker:x") == {71, 72}
    engine(monkeypatch, state="exited")
    assert containers.reach() == {}
    assert containers.processes("docker:x") == frozenset(), "one that is made and not started has none"


def test_a_container_is_stopped_and_deleted_also_when_its_slice_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = engine(monkeypatch)
    containers.revoke_devices("docker:x")
    assert fake.calls == ["stop x", "remove x"]


@pytest.mark.parametrize(("nanoseconds", "seconds"), [(1_500_000_000, 1.5), (0, None)])
def test_cpu_time(monkeypatch: pytest.MonkeyPatch, nanoseconds: int, seconds: float | None) -> None:
    engine(monkeypatch, cpu=nanoseconds)
    assert containers.cpu_seconds("docker:x") == seconds


def pull(*lines: dict[str, Any]) -> Iterator[str]:
    return iter(list(pulling.progress(lines)))


def test_the_pull_is_told_in_words() -> None:
    def layer(number: str, mebibytes: int) -> dict[str, Any]:
        detail = {"current": mebibytes << 20, "total": 100 << 20}
        return {"status": "Downloading", "id": number, "progressDetail": detail}

    assert list(
        pull(
            {"status": "Pulling from bench/notebook", "id": "1"},
            layer("a", 10),
            layer("a", 10),
            layer("b", 50),
            {"status": "Download complete", "id": "a"},
            {"status": "Status: Downloaded newer image"},
        )
    ) == ["10 of 100 MiB", "60 of 200 MiB", "150 of 200 MiB"]


def test_a_pull_that_fails_is_told_in_the_words_of_the_registry() -> None:
    with pytest.raises(PullError, match="could not be pulled: no such manifest"):
        list(pull({"errorDetail": {}, "error": "no such manifest"}))
