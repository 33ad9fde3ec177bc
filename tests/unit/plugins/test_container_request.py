"""Requests for containers are checked, compared with quota and cluster, and written as apps."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._container_request import (
    mebibytes,
    password_hash,
    plan,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.app import read_app
from hypothesis import given
from hypothesis import strategies as st

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJxQ0O1hN9fDqkW0cYVh1fHj0cZ8mX0m6Wq3b0n8v0aX ada@laptop"
REQUEST: dict[str, Any] = {
    "kind": "notebook",
    "owner": "ada",
    "name": "lab",
    "image": "registry.example.org/lab/torch:2.5",
    "cpus": 4.0,
    "memory": "16 GiB",
    "disk": "20 GB",
    "gpus": 1,
    "libraries": ["torch==2.5.1", "scikit-learn"],
    "ssh_keys": "",
    "password": "correct horse battery",
    "home_root": "/lustre/home",
    "gateway": "apps.example.org",
}
SSH = REQUEST | {"kind": "ssh", "ssh_keys": KEY, "password": ""}


def cluster(**limits: float) -> dict[str, Any]:
    free = {"cpus": 8, "mem": 65536, "disk": 100000, "gpus": 2}
    return {
        "agents": [
            {"state": "active", "resources": free, "allocated": {"gpus": 1}},
            {"state": "active", "resources": {"cpus": 64, "mem": 8192, "disk": 9}, "allocated": {}},
            {"state": "draining", "resources": dict.fromkeys(free, 10**6), "allocated": {}},
        ],
        "quotas": [{"role": "ada", "limits": limits, "consumed": {"gpus": 1, "cpus": 2}}] if limits else [],
    }


def test_a_notebook_is_an_app_that_marathon_takes() -> None:
    found = plan(REQUEST, cluster(gpus=2))
    assert found["problems"] == [] and found["shortages"] == []
    app = found["app"]
    assert read_app(app) == app
    assert (app["id"], app["user"], app["gpus"], app["mem"], app["disk"]) == (
        "/ada/lab",
        "ada",
        1,
        16384,
        19074,
    )
    assert app["labels"]["HAPROXY_0_PATH"] == "/ada/lab" and app["container"]["type"] == "MESOS"
    assert app["container"]["volumes"][0] == {
        "hostPath": "/lustre/home/ada",
        "containerPath": "/lustre/home/ada",
        "mode": "RW",
    }
    assert app["env"] == {
        "HOME": "/lustre/home/ada",
        "USER": "ada",
        "GPUFARM_NAME": "lab",
        "GPUFARM_PATH": "/ada/lab",
    }
    assert app["healthChecks"][0]["path"] == "/ada/lab/api"
    assert "PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --user" in app["cmd"]
    assert "'torch==2.5.1' 'scikit-learn'" in app["cmd"]
    assert app["unreachableStrategy"]["inactiveAfterSeconds"] > 0


def test_the_password_is_nowhere_and_its_hash_is_what_jupyter_checks() -> None:
    found = plan(REQUEST)
    assert "correct horse" not in json.dumps(found)
    algorithm, salt, digest = found["secret_env"]["GPUFARM_PASSWORD_HASH"].split(":")
    assert digest == hashlib.new(algorithm, b"correct horse battery" + salt.encode()).hexdigest()
    assert "GPUFARM_PASSWORD_HASH" not in found["app"]["env"]
    assert plan(REQUEST) == found, "the same request is the same app"
    assert password_hash("a", "/a/b") != password_hash("a", "/a/c")


@pytest.mark.parametrize("request_", [REQUEST, SSH])
def test_what_is_run_is_a_shell_script(request_: dict[str, Any]) -> None:
    script = plan(request_)["app"]["cmd"]
    done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for word in ("sshd" if request_ is SSH else "jupyter lab", "exec ", "umask 077"):
        assert word in script


def test_ssh_takes_keys_and_no_password() -> None:
    found = plan(SSH)
    assert found["problems"] == [] and found["secret_env"] == {}
    assert found["app"]["env"]["GPUFARM_SSH_KEYS"] == KEY
    assert found["app"]["labels"]["HAPROXY_0_MODE"] == "tcp"
    assert "PasswordAuthentication=no" in found["app"]["cmd"]


def test_a_password_for_ssh_is_refused() -> None:
    [text] = plan(SSH | {"password": "correct horse battery"})["problems"]
    assert "SSH takes keys only" in text and "correct" not in text


def run_ssh_script(folder: Path, **env: str) -> str:
    """Run what an SSH container runs, with an sshd that tells what it was given, and return what it tells."""
    (folder / "sshd").write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@"\nenv\nfor word; do [ -f "$word" ] && cat "$word"; done\n'
        'cat "$(dirname "$word")/authorized_keys" 2>/dev/null || true\n'
    )
    (folder / "sshd").chmod(0o755)
    app = plan(SSH | {"libraries": []})["app"]
    values = app["env"] | {"PATH": f"{folder}:/usr/bin:/bin", "PORT0": "31000", "TMPDIR": str(folder)} | env
    done = subprocess.run(["sh", "-c", app["cmd"]], env=values, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_ssh_server_gets_the_host_key_as_a_file_and_not_as_a_variable(tmp_path: Path) -> None:
    told = run_ssh_script(tmp_path, GPUFARM_HOST_KEY="the private key").splitlines()
    assert told.count("the private key") == 1 and "GPUFARM_HOST_KEY" not in " ".join(told)
    [file] = tmp_path.glob("*/host_key")
    assert file.stat().st_mode & 0o777 == 0o600 and told[told.index("-h") + 1] == str(file)
    assert file.with_name("authorized_keys").read_text() == KEY + "\n"


def test_sessions_have_the_paths_of_the_image(tmp_path: Path) -> None:
    told = run_ssh_script(
        tmp_path, GPUFARM_HOST_KEY="key", LD_LIBRARY_PATH="/usr/local/nvidia/lib64"
    ).splitlines()
    [line] = [one for one in told if one.startswith("SetEnv=")]
    path = f"/lustre/home/ada/.local/bin:{tmp_path}:/usr/bin:/bin:/usr/sbin"
    assert line == f'SetEnv=PATH="{path}" LD_LIBRARY_PATH="/usr/local/nvidia/lib64"'


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "desktop"}, "choose ssh or notebook"),
        ({"owner": "Ada"}, "no account"),
        ({"owner": "root/x"}, "no account"),
        ({"name": "a b"}, "small letters, digits and dashes"),
        ({"image": "x; rm -rf /"}, "name an image"),
        ({"libraries": ["torch'; curl evil"]}, "name Python packages"),
        ({"libraries": ["--index-url=http://evil"]}, "name Python packages"),
        ({"libraries": ["git+https://evil/x"]}, "name Python packages"),
        ({"home_root": "/home/../etc"}, "give a folder"),
        ({"gateway": ""}, "no name of a machine"),
        ({"cpus": 0}, "0.1 to 1024"),
        ({"gpus": -1}, "whole GPUs"),
        ({"memory": "16"}, "a number with its unit"),
        ({"memory": "1 MB"}, "128 MiB at least"),
        ({"disk": "-1 GB"}, "a number with its unit"),
        ({"password": "short"}, "12 characters or more"),
    ],
)
def test_what_cannot_be_asked_for(wrong: dict[str, Any], words: str) -> None:
    found = plan(REQUEST | wrong)
    [text] = found["problems"]
    assert words in text and text.endswith(".") and found["app"] == {}


@pytest.mark.parametrize("keys", ["", "ssh-rsa nothing", "-----BEGIN OPENSSH PRIVATE" + " KEY-----"])
def test_keys_that_are_none(keys: str) -> None:
    [text] = plan(SSH | {"ssh_keys": keys})["problems"]
    assert "container_request_ssh_keys" in text


@pytest.mark.parametrize("owner", ["daemon", "mesos", "nobody", "slurm", "systemd-network", "www-data"])
def test_no_account_of_the_system_owns_a_container(owner: str) -> None:
    """The service takes the owner from a claim, whose value users may choose when they register."""
    planned = plan(REQUEST | {"owner": owner})
    assert planned["problems"] == [
        f"container_request_owner is {owner}, an account of the system; name the user's account."
    ]


def test_the_root_account_owns_no_container() -> None:
    [text] = plan(REQUEST | {"owner": "root"})["problems"]
    assert "root" in text


def test_everything_wrong_is_told_at_once() -> None:
    assert len(plan(REQUEST | {"owner": "", "image": "", "memory": "", "password": ""})["problems"]) == 4


def test_the_quota_that_is_short_is_named() -> None:
    [text] = plan(REQUEST, cluster(gpus=1, cpus=64))["shortages"]
    assert text.startswith("The quota of ada is 1 GPUs, 1 are in use, and 1 are asked for;")
    both = plan(REQUEST, cluster(gpus=1, cpus=4))["shortages"]
    assert len(both) == 2
    # Resources of an earlier container of this name are freed.
    apps = [{"id": "/ada/lab", "instances": 1, "gpus": 1, "cpus": 2}]
    assert plan(REQUEST, cluster(gpus=1, cpus=4), apps)["shortages"] == []


def test_what_the_cluster_lacks_is_named() -> None:
    [text] = plan(REQUEST | {"gpus": 2}, cluster())["shortages"]
    assert text == "No machine of the cluster has 2 GPUs free; the most is 1. Ask for less, or later."
    [text] = plan(REQUEST | {"cpus": 32}, cluster())["shortages"]
    assert "at the same time" in text
    assert (
        plan(REQUEST | {"gpus": 0, "cpus": 32, "disk": "0 MB", "memory": "4 GB"}, cluster())["shortages"]
        == []
    )
    assert len(plan(REQUEST, {"agents": [], "quotas": []})["shortages"]) == 4


@given(st.integers(1, 10**6), st.sampled_from(["MB", "MiB", "GB", "GiB", "TB", "TiB"]))
def test_sizes_are_never_rounded_down(number: int, unit: str) -> None:
    power = {"M": 2, "G": 3, "T": 4}[unit[0]]
    exact = number * (1024**power if "i" in unit else 1000**power)
    assert 0 <= mebibytes(f"{number} {unit}") * 2**20 - exact < 2**20
