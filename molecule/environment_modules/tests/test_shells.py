"""Users load modules in all kinds of shells, and a file system that hangs holds no login up."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from os import environ

import pytest
from testinfra.host import Host

# No variable of the test's own shell reaches those of users.
CLEAN = "env -i HOME=/home/ada USER=ada LOGNAME=ada PATH=/usr/bin:/bin"
SHELLS = {
    "bash login": "bash -lc",
    "zsh login": "zsh -lc",
    "zsh": "zsh -c",
    "sh login": "sh -lc",
    # bash takes itself for the command of SSH by this variable.
    "bash over SSH": "env SSH_CLIENT='::1 1 22' bash -c",
}


def said(host: Host, shell: str, command: str) -> str:
    done = host.run(f"runuser -u ada -- {CLEAN} {SHELLS[shell]} %s", command)
    assert done.rc == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_a_program_runs_after_its_module_is_loaded(host: Host, shell: str) -> None:
    assert said(host, shell, "module load greet && greet") == "hello 1.0\n"
    assert said(host, shell, "module load greet/1.0 greet/2.0 && greet") == "hello 2.0\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_failed_module_is_an_error(host: Host, shell: str) -> None:
    assert said(host, shell, "module load nothing 2>/dev/null || echo failed") == "failed\n"


def test_the_command_of_a_real_ssh_session_has_modules(host: Host) -> None:
    name = host.check_output("hostname")
    state = environ.get("LAB_STATE_DIR", "/var/lib/gpufarm-lab")
    config = f"{state}/{environ['LAB_BENCH']}/ssh_config"
    # No shared connection, which would be root's.
    words = ["ssh", "-F", config, "-o", "User=ada", "-o", "ControlPath=none", name]
    done = subprocess.run([*words, "module load greet && greet"], capture_output=True, text=True, check=False)
    assert done.stdout == "hello 1.0\n", done.stderr


def test_a_batch_script_has_the_modules_of_the_session_that_sends_it(host: Host) -> None:
    script = "#!/bin/bash\nset -euo pipefail\nmodule load greet\ngreet\n"
    host.check_output("printf %s > /tmp/batch && chmod 755 /tmp/batch", script)
    for shell in ("bash login", "bash over SSH"):
        assert said(host, shell, "/tmp/batch") == "hello 1.0\n"
    host.check_output("rm /tmp/batch")


def test_what_is_declared_is_what_users_have(host: Host) -> None:
    loaded = 'module load lab/whom && printf "%s|" "$LAB_PATH" "$GREET" "$LOADEDMODULES"'
    for shell in ("bash login", "zsh login"):
        assert said(host, shell, loaded).split("|")[:3] == [
            "/srv/first:/srv/second",
            "$(touch /tmp/run-by-mistake)'\"`\\é",
            "greet/1.0:lab/whom/1",
        ]
    for command in ("module load lab/whom solo", "module help greet/1.0", "module spider greet/1.0"):
        host.run(f"runuser -u ada -- {CLEAN} bash -lc %s", command)
    assert not host.file("/tmp/run-by-mistake").exists


def test_a_family_and_a_conflict_keep_modules_apart(host: Host) -> None:
    loaded = said(host, "bash login", "module load lab/whom lab/who 2>/dev/null; echo $LOADEDMODULES")
    assert "lab/who/1" in loaded and "lab/whom/1" not in loaded
    loaded = said(
        host, "bash login", "module load solo; module load lab/whom 2>/dev/null; echo $LOADEDMODULES"
    )
    assert loaded == "solo/1\n"


def test_toolkits_and_environments_are_modules(host: Host) -> None:
    shown = said(host, "bash login", "module -t --redirect avail")
    assert "cuda/12.4\n" in shown and "cuda/12\n" not in shown and "ml/small/0123456789ab\n" in shown
    assert "course" not in shown
    assert said(host, "bash login", "module load cuda && nvcc && echo $CUDA_HOME").split("\n")[:2] == [
        "release 12.4",
        "/usr/local/cuda-12.4",
    ]
    python = said(host, "bash login", "module load ml/small && python3 -c 'import sys; print(sys.prefix)'")
    assert python == "/opt/gpufarm/environments/small/0123456789ab\n"


def test_trees_of_others_and_of_users_are_searched(host: Host) -> None:
    assert said(host, "bash login", "module load theirs mine && echo $THEIRS $MINE") == "yes yes\n"
    path = said(host, "bash login", "echo $MODULEPATH").strip().split(":")
    assert path[:4] == [
        "/home/ada/modulefiles",
        "/srv/site/modules",
        "/opt/gpufarm/modules/found",
        "/srv/others",
    ]
    assert "/srv/missing" not in path


def test_modules_of_another_user_are_not_searched(host: Host) -> None:
    assert "/home/ada" not in host.check_output("env HOME=/home/ada bash -lc 'echo $MODULEPATH'")


def test_manuals_of_the_system_are_found_beside_those_of_modules(host: Host) -> None:
    assert said(host, "bash login", "module load greet; echo $MANPATH").strip().endswith(":")


@pytest.fixture
def _hanging(host: Host) -> Iterator[None]:
    if host.check_output("hostname") != "modules13":
        pytest.skip("the file system is this machine's own")
    # The kernel answers what it has asked within the last second.
    host.check_output("pkill -STOP -x sshfs && sleep 3")
    yield
    host.check_output("pkill -CONT -x sshfs")


@pytest.mark.usefixtures("_hanging")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_tree_that_hangs_is_left_out(host: Host, shell: str) -> None:
    command = "module load cuda && nvcc && echo $MODULEPATH"
    done = host.run(f"timeout 100 runuser -u ada -- {CLEAN} {SHELLS[shell]} %s", command)
    assert done.rc == 0, done.stdout + done.stderr
    assert "/srv/site/modules does not answer; its modules are left out." in done.stderr
    assert "/srv/site" not in done.stdout and "/srv/others" in done.stdout


@pytest.mark.usefixtures("_hanging")
def test_a_login_that_uses_no_modules_does_not_touch_trees(host: Host) -> None:
    done = host.run(f"timeout 100 runuser -u ada -- {CLEAN} {SHELLS['bash over SSH']} %s", "echo done")
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_only_root_writes_what_users_run(host: Host) -> None:
    for path in (
        "/srv/site/modules/greet/1.0.lua",
        "/etc/gpufarm/modules.sh",
        "/etc/gpufarm/environment_modules.json",
    ):
        assert (host.file(path).user, host.file(path).mode) == ("root", 0o644)
    assert host.check_output("ls /srv/site/modules/.gpufarm").split() == ["modules12", "modules13"]
    assert json.loads(host.file("/etc/gpufarm/environment_modules.json").content_string)["trees"][2:] == [
        "/srv/others",
        "/srv/missing",
    ]
