# SPDX-License-Identifier: GPL-3.0-or-later
"""An app and a job in the words of INDIGO's types, on the fakes of Marathon and Chronos."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from lab.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
APPS = ROOT / "tests" / "unit" / "tosca" / "data" / "indigo" / "apps.yaml"
PASSWORD = "for-the-tests"


@contextmanager
def running(module: str, *words: str) -> Iterator[str]:
    """Run a fake as a program, and yield its URL."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    program = subprocess.Popen(
        [sys.executable, "-m", module, *words, "--http_port", str(port), "--hostname", "127.0.0.1"],
        cwd=ROOT,
        env=os.environ | {"MESOSPHERE_HTTP_CREDENTIALS": f"me:{PASSWORD}"},
        stdout=subprocess.DEVNULL,
    )
    try:
        for _attempt in range(2400):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        program.terminate()
        program.wait(PATIENCE)


def ask(url: str) -> Any:
    login = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    with urllib.request.urlopen(
        urllib.request.Request(url, headers={"Authorization": f"Basic {login}"})
    ) as answer:
        return json.load(answer)


def gpufarm(folder: Path, *words: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gpufarm", *words],
        env=os.environ | {"GPUFARM_STATE_DIR": str(folder / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_app_and_a_job(tmp_path: Path) -> None:
    memory = ("--internal_store_backend", "mem", "--master", "zk://m/mesos")
    with (
        running("lab.marathon.server", *memory, "--enable_features", "gpu_resources") as marathon,
        running("lab.chronos.server", "--zk_hosts", "mem") as chronos,
    ):
        servers = {"marathon_app": marathon, "chronos_job": chronos}
        where = {f"{role}_urls": [url] for role, url in servers.items()}
        where |= {f"{role}_user": "me" for role in servers} | {
            f"{role}_password": PASSWORD for role in servers
        }
        where["indigo_load_balancer_ips"] = ["192.0.2.9"]
        pool = tmp_path / "hosts.yml"
        pool.write_text(yaml.safe_dump({"all": {"vars": where, "hosts": {"somewhere": {}}}}))
        gpufarm(tmp_path, "deploy", APPS, "--pool", pool)
        (app,) = ask(f"{marathon}/v2/apps")["apps"]
        assert app["gpus"] == 1 and app["container"]["type"] == "MESOS" and app["tasksRunning"] == 1
        assert json.loads(gpufarm(tmp_path, "outputs", "apps", "--json"))["gateway"] == "192.0.2.9"
        gpufarm(tmp_path, "deploy", APPS, "--pool", pool, "--input", "gpus=0")
        (app,) = ask(f"{marathon}/v2/apps")["apps"]
        assert app["id"].startswith("/tensorflow-") and app["env"] == {"TOKEN": "opensesame"}
        assert app["container"]["portMappings"][0]["containerPort"] == 8888
        jobs = {job["name"].partition("-")[0]: job for job in ask(f"{chronos}/v1/scheduler/jobs")}
        job, upload = jobs["job"], jobs["upload"]
        assert (
            upload["parents"] == [job["name"]]
            and job["container"]["image"] == "indigodatacloud/ambertools_app"
        )
        assert {"name": "OUTPUT_FILENAME", "value": "result"} in job["environmentVariables"]
        gpufarm(tmp_path, "deploy", APPS, "--pool", pool, "--name", "others")
        assert len(ask(f"{marathon}/v2/apps")["apps"]) == 2 and len(ask(f"{chronos}/v1/scheduler/jobs")) == 4
        gpufarm(tmp_path, "undeploy", "others", "--yes")
        assert ask(f"{marathon}/v2/apps")["apps"][0]["id"] == app["id"]
        gpufarm(tmp_path, "undeploy", "apps", "--yes")
        assert ask(f"{marathon}/v2/apps")["apps"] == [] and ask(f"{chronos}/v1/scheduler/jobs") == []
