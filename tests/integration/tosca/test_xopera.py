# SPDX-License-Identifier: GPL-3.0-or-later
"""xOpera sets up what is packed for it on a host of the bench, and takes it away again."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import bench as benches
from lab.bench import Bench
from lab.inventory import inventory
from lab.spec import HostSpec
from lab.system import run

TEMPLATES = Path(__file__).resolve().parents[3] / "tosca" / "templates"
PROGRAMS = Path(sys.executable).parent
# Collections that gpufarm.cluster needs, which would come from Ansible Galaxy.
OTHERS = Path(sysconfig.get_path("purelib"))

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes mounts and network namespaces: needs root"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench("xopera", tmp_path_factory.mktemp("lab"), benches.cache_dir(), lambda _text: None)
    try:
        made.up([HostSpec("gpu1", gpus=("a100-80gb:1",)), HostSpec("iam", iam=True)])
        yield made
    finally:
        made.down()


class Service:
    """A package, as xOpera deploys it."""

    def __init__(self, opera: Path, bench: Bench, folder: Path, name: str, inputs: dict[str, Any]) -> None:
        self.folder = folder / name
        self.template = f"{name}.yaml"
        self.inputs = folder / "inputs.yaml"
        self.inputs.write_text(yaml.safe_dump(inputs))
        host = inventory(bench.status())["_meta"]["hostvars"]["gpu1"]
        collections = folder / "collections"
        self.environment = os.environ | {
            "PATH": f"{opera}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": f"{collections}:{OTHERS}",
            "OPERA_SSH_USER": host["ansible_user"],
            "OPERA_SSH_IDENTITY_FILE": host["ansible_ssh_private_key_file"],
        }
        archive = folder / f"{name}.csar"
        package = [PROGRAMS / "gpufarm", "package", TEMPLATES / self.template, "--output", archive]
        self.run(*package, "--address", f"server={host['ansible_host']}", cwd=folder)
        self.run("opera", "unpackage", archive, "--destination", self.folder, cwd=folder)
        (collection,) = (self.folder / "collections").iterdir()
        install = [PROGRAMS / "ansible-galaxy", "collection", "install", "--no-deps", collection]
        self.run(*install, "--collections-path", collections, cwd=folder)

    def run(self, *command: str | Path, cwd: Path | None = None) -> str:
        done = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def deploy(self) -> dict[str, Any]:
        """Deploy; the outputs."""
        self.run("opera", "deploy", "--inputs", self.inputs, self.template)
        outputs = json.loads(self.run("opera", "outputs", "--format", "json"))
        return {name: output["value"] for name, output in outputs.items()}


def on_host(bench: Bench, command: str) -> str:
    return run(["ssh", "-F", bench.ssh_config, "gpu1", command])


def slices(bench: Bench) -> list[str]:
    """The compute instances on the host's GPUs, as the driver lists them."""
    return on_host(
        bench, "find /proc/driver/nvidia/capabilities -path '*/mig/gi*/ci*' -name access"
    ).splitlines()


def test_a_gpu_machine(opera: Path, bench: Bench, tmp_path: Path) -> None:
    service = Service(opera, bench, tmp_path, "gpu_node", {"gpu_partition_flavor": "2x 3g.40gb MIG GPUs"})
    outputs = service.deploy()
    assert len(outputs["gpu_slices"]) == len(slices(bench)) == 2
    assert outputs["gpu_driver_installed"]
    service.run("opera", "undeploy")
    assert slices(bench) == []


def test_notebooks_on_slices(opera: Path, bench: Bench, tmp_path: Path) -> None:
    iam = bench.status()["iam"]
    inputs = {
        "iam_url": iam["url"],
        "iam_ca_file": iam["ca_file"],
        "gpu_partition_flavor": "7x 1g.10gb MIG GPUs",
    }
    service = Service(opera, bench, tmp_path, "ml_infn", inputs)
    outputs = service.deploy()
    assert len(outputs["gpu_slices"]) == len(slices(bench)) == 7
    context = ssl.create_default_context(cadata=on_host(bench, "cat /etc/jupyterhub/tls/ca.crt"))
    with urllib.request.urlopen(f"{outputs['jupyter_endpoint']}/hub/health", context=context) as answer:
        assert answer.status == 200
    service.run("opera", "undeploy")
    assert slices(bench) == []
