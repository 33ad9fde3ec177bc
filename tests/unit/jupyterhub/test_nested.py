"""Notebooks in which users start containers: units, the filter of system calls, settings of Podman."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import ctypes.util
import os
import pwd
import re
import subprocess
import sys
import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpufarm_hub.spawning import nested, nested_probe, sealed, systemd_spawner, units
from gpufarm_hub.spawning.spawner import NotebookSpawner
from gpufarm_hub.spawning.systemd_spawner import SANDBOX, SystemdSliceSpawner

CACHE = """\
12 libs found in cache `/etc/ld.so.cache'
\tlibnvidia-ml.so.1 (libc6,x86-64) => /usr/local/lib/libnvidia-ml.so.1
\tlibnvidia-ml.so.1 (libc6,x86-64) => /usr/lib/libnvidia-ml.so.1
\tlibnvidia-ml.so (libc6,x86-64) => /usr/lib/libnvidia-ml.so
\tlibcuda.so.1 (libc6) => /usr/lib32/libcuda.so.1
\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1
\tlibnvidia-ptxjitcompiler.so.1 (libc6,x86-64) => /usr/lib/libnvidia-ptxjitcompiler.so.1
\tlibcudart.so.12 (libc6,x86-64) => /usr/lib/libcudart.so.12
\tlibc.so.6 (libc6,x86-64) => /lib/libc.so.6
"""
HAS_SECCOMP = pytest.mark.skipif(not ctypes.util.find_library("seccomp"), reason="needs libseccomp")


def test_only_the_drivers_libraries_of_64_bits_go_into_containers() -> None:
    assert nested.libraries(CACHE) == {
        "libnvidia-ml.so.1": "/usr/local/lib/libnvidia-ml.so.1",
        "libcuda.so.1": "/usr/lib/libcuda.so.1",
        "libnvidia-ptxjitcompiler.so.1": "/usr/lib/libnvidia-ptxjitcompiler.so.1",
    }


def test_podman_shares_all_namespaces_but_those_of_users_and_mounts() -> None:
    told = tomllib.loads(nested.settings(["/dev/nvidia0"], {"/a": "/b"}, {"NAME": 'a "word"'}))
    containers = told["containers"]
    assert {name for name, value in containers.items() if value == "host"} == {
        f"{kind}ns" for kind in ("cgroup", "ipc", "net", "pid", "user", "uts")
    }
    assert containers["devices"] == ["/dev/nvidia0"]
    assert containers["volumes"] == ["/b:/a:ro"]
    assert containers["env"] == ['NAME=a "word"']
    assert told["engine"]["runtimes"][told["engine"]["runtime"]] == [str(nested.RUNTIME)]


def test_images_are_kept_in_the_home_and_all_their_files_are_the_users() -> None:
    told = tomllib.loads(nested.storage("/home/a b", "vfs"))["storage"]
    assert (told["driver"], told["graphroot"]) == ("vfs", "/home/a b/.local/share/containers/storage")
    assert told["options"]["ignore_chown_errors"] == "true"


def test_the_runtime_ends_the_first_process_where_podman_asks_for_all(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.write_text(
        nested.RUNTIME_TEXT.replace("/usr/bin/crun", "printf '%s\\n'").replace("exec printf", "printf")
    )
    called = subprocess.run(
        ["sh", runtime, "kill", "--all", "a b", "9"], capture_output=True, text=True, check=True
    )
    assert called.stdout.splitlines() == ["kill", "a b", "9"]


def launched(monkeypatch: pytest.MonkeyPatch, *, containers: bool, owner: str = "alice/") -> dict[str, Any]:
    """Return what systemd is asked to start for a notebook."""
    asked: dict[str, Any] = {}

    async def start(_unit: str, **given: Any) -> None:
        asked.update(given)

    asyncio.run(_launch(monkeypatch, start, containers, owner))
    return asked


async def _launch(
    monkeypatch: pytest.MonkeyPatch, start: Callable[..., Awaitable[None]], containers: bool, owner: str
) -> None:
    monkeypatch.setattr(systemd_spawner.systemd, "start_transient_service", start)
    monkeypatch.setattr(systemd_spawner.pwd, "getpwnam", lambda _name: pwd.getpwuid(os.geteuid()))
    monkeypatch.setattr(systemd_spawner.addresses, "free", lambda _subnet: "172.30.252.2")
    monkeypatch.setattr(NotebookSpawner, "get_env", lambda _self: {"HOME": "/home/alice"}, raising=False)
    made = SystemdSliceSpawner.__new__(SystemdSliceSpawner)
    made.user = SimpleNamespace(name="alice", groups=[], settings={}, url="/", escaped_name="alice")
    made.containers, made.sealed, made.cmd, made.unit_name = (
        containers,
        ["seal"],
        ["notebook"],
        units.name_of(owner),
    )
    made._binds, made.folders, made.temporary, made.processes = [], [], "1G", 10
    made.mem_limit, made.cpu_limit = 2 << 30, 1.0
    monkeypatch.setattr(SystemdSliceSpawner, "get_args", lambda _self: ["--argument"])
    monkeypatch.setattr(SystemdSliceSpawner, "file_group_id", lambda _self, gid: gid)
    await made.equip([])
    await made.launch()


@pytest.mark.parametrize("containers", [False, True])
def test_the_sandbox_is_loosened_by_what_containers_need_and_where_they_are_allowed(
    monkeypatch: pytest.MonkeyPatch, containers: bool
) -> None:
    asked = launched(monkeypatch, containers=containers)
    properties = asked["properties"]
    changed = {name for name, value in SANDBOX.items() if name in properties and properties[name] != value}
    assert changed - {"InaccessiblePaths"} == (set(nested.LOOSENED) if containers else set())
    assert asked["cmd"] == (["seal", "notebook"] if containers else ["notebook"])
    assert ("/dev/null:/etc/subuid" in properties["BindReadOnlyPaths"]) == (
        containers and Path("/etc/subuid").exists()
    )
    assert ("CONTAINERS_CONF" in asked["environment_variables"]) == containers


def test_no_name_of_a_server_is_that_of_a_link_in_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd makes one there by what follows a colon, and what begins below it is somebody else's."""
    owners = ("alice/", "bob/", "alice/gpu", "bob/gpu", "alice/jupyterhub-notebook-bob")
    folders = [
        launched(monkeypatch, containers=False, owner=owner)["properties"]["RuntimeDirectory"]
        for owner in owners
    ]
    assert len(set(folders)) == len(owners)
    assert all(re.fullmatch("jupyterhub-environment-[0-9a-f]{32}", folder) for folder in folders)


def test_a_start_that_is_given_up_leaves_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether systemd is asked before or after the hub gives it up."""
    runs: set[str] = set()

    async def systemd_run(unit: str) -> None:
        await asyncio.sleep(0.1)
        runs.add(unit)

    async def start(unit: str, **_given: Any) -> None:
        program = asyncio.ensure_future(systemd_run(unit))
        begun.set()
        await asyncio.shield(program)

    async def give_up() -> None:
        launch = asyncio.ensure_future(_launch(monkeypatch, start, containers=False, owner="alice/"))
        await begun.wait()
        launch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await launch
        await asyncio.sleep(0.2)

    begun = asyncio.Event()
    monkeypatch.setattr(units, "stop", runs.discard)
    asyncio.run(give_up())
    assert not runs


def run_sealed(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"from gpufarm_hub.spawning import sealed\nsealed.seal()\n{code}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(sealed.__file__).parents[2])},
    )
    return done.stdout + done.stderr


@HAS_SECCOMP
@pytest.mark.parametrize("kind", ["net", "pid", "ipc", "uts", "cgroup", "time"])
def test_other_namespaces_are_refused_to_what_is_started(kind: str) -> None:
    told = run_sealed(f"import subprocess; subprocess.run(['unshare', '--{kind}', 'true'])")
    assert "not permitted" in told


@HAS_SECCOMP
def test_mounts_go_by_the_old_call_alone() -> None:
    code = "import ctypes as c; print(c.CDLL(None, use_errno=True).syscall({}, -1, 0), c.get_errno())"
    for number in (428, 429, 430, 431, 432, 433, 442, 435):  # the same on all processors, clone3 the last
        assert run_sealed(code.format(number)).strip() == "-1 38"


@HAS_SECCOMP
def test_processes_and_threads_are_started_as_ever() -> None:
    code = "import subprocess, threading; t = threading.Thread(target=print, args=['thread'])"
    assert run_sealed(f"{code}; t.start(); t.join(); subprocess.run(['echo', 'process'])").split() == [
        "thread",
        "process",
    ]


def test_a_kernel_that_takes_no_filter_starts_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(
        seccomp_init=lambda _action: 1,
        seccomp_syscall_resolve_name=lambda _name: 1,
        seccomp_arch_resolve_name=lambda _name: 1,
        seccomp_arch_add=lambda *_: 0,
        seccomp_rule_add_array=lambda *_: 0,
        seccomp_load=lambda _rules: -22,
    )
    monkeypatch.setattr(sealed.ctypes, "CDLL", lambda _name: library)
    monkeypatch.setattr(sealed.os, "execvp", lambda *_: pytest.fail("the notebook was started"))
    monkeypatch.setattr(sealed.sys, "argv", ["sealed", "true"])
    with pytest.raises(SystemExit, match="takes no filter of system calls: Invalid argument"):
        sealed.main()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a home and a folder of settings."""
    folder = tmp_path / "settings"
    for name, file in {
        "SETTINGS": "containers.conf",
        "STORAGE": "storage.conf",
        "RUNTIME": "runtime",
    }.items():
        monkeypatch.setattr(nested, name, folder / file)
    monkeypatch.setattr(nested, "FOLDER", folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_images_that_are_there_are_kept(home: Path) -> None:
    (home / ".local/share/containers/storage/vfs").mkdir(parents=True)
    assert sealed.driver_of(home) == "vfs"
    (home / ".local/share/containers/storage/overlay").mkdir()
    assert sealed.driver_of(home) == "overlay"


@pytest.mark.parametrize(("status", "driver"), [(0, "overlay"), (32, "vfs")])
def test_the_driver_is_that_which_the_file_system_allows(
    home: Path, monkeypatch: pytest.MonkeyPatch, status: int, driver: str
) -> None:
    done = subprocess.CompletedProcess([], status)
    monkeypatch.setattr(sealed.subprocess, "run", lambda *_args, **_more: done)
    assert sealed.driver_of(home) == driver
    assert not list(home.iterdir())


def test_a_full_home_keeps_no_images_in_layers(home: Path) -> None:
    assert sealed.driver_of(home / "missing") == "vfs"


def test_the_settings_name_the_devices_of_the_notebook_and_its_slice(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev = home / "dev"
    (dev / "nvidia-caps").mkdir(parents=True)
    for name in ("nvidia0", "nvidiactl", "null", "nvidia-caps/nvidia-cap12"):
        (dev / name).touch()
    monkeypatch.setattr(sealed, "DEV", dev)
    monkeypatch.setattr(sealed, "driver_of", lambda _home: "vfs")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1")
    monkeypatch.setattr(
        sealed.subprocess, "run", lambda *_args, **_more: subprocess.CompletedProcess([], 0, CACHE)
    )
    sealed.prepare()
    containers = tomllib.loads(nested.SETTINGS.read_text())["containers"]
    names = ["nvidia-caps/nvidia-cap12", "nvidia0", "nvidiactl"]
    assert containers["devices"] == [str(dev / name) for name in names]
    assert "CUDA_VISIBLE_DEVICES=MIG-1" in containers["env"]
    assert f"LD_LIBRARY_PATH={nested.LIBRARIES}" in containers["env"]
    assert f"/usr/lib/libcuda.so.1:{nested.LIBRARIES}/libcuda.so.1:ro" in containers["volumes"]
    assert nested.RUNTIME.stat().st_mode & 0o777 == 0o700


def test_a_notebook_without_a_slice_gives_containers_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed, "DEV", home)
    monkeypatch.setattr(sealed, "driver_of", lambda _home: "vfs")
    sealed.prepare()
    containers = tomllib.loads(nested.SETTINGS.read_text())["containers"]
    assert containers["devices"] == containers["env"] == containers["volumes"] == []


def test_a_notebook_starts_where_settings_cannot_be_written(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nested.FOLDER.write_text("a file in its place")
    started: list[list[str]] = []
    monkeypatch.setattr(sealed, "seal", lambda: None)
    monkeypatch.setattr(sealed, "DEV", home)
    monkeypatch.setattr(sealed.os, "execvp", lambda file, command: started.append([file, *command]))
    monkeypatch.setattr(sealed.sys, "argv", ["sealed", "notebook", "--argument"])
    sealed.main()
    assert started == [["notebook", "notebook", "--argument"]]
    assert "Podman has no settings" in capsys.readouterr().err


def test_the_probe_has_the_sandbox_of_notebooks() -> None:
    command = nested_probe.command("/usr/bin/podman")
    given = {one for one in command if one.startswith("--property=")}
    assert {f"--property={name}={value}" for name, value in {**SANDBOX, **nested.LOOSENED}.items()} <= given
    assert command[-1] == "/usr/bin/podman"


@pytest.mark.parametrize("status", [0, 1])
def test_the_probe_tells_that_no_container_starts(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    done = subprocess.CompletedProcess([], status, "", "crun: denied")
    monkeypatch.setattr(nested_probe.subprocess, "run", lambda *_args, **_more: done)
    monkeypatch.setattr(nested_probe.sys, "argv", ["probe", "podman"])
    if status:
        with pytest.raises(SystemExit, match="No container starts in a notebook: crun: denied"):
            nested_probe.main()
    else:
        nested_probe.main()
