"""Content of a release, which works on a machine without a checkout."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PATH = f"{ROOT}/.venv/bin:{os.environ['PATH']}"
VERSION = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
DELETED = "SECURITY.md"  # in the working tree; git still has it
MAIN = "from gpufarm.cli import main; main()"


class Machine:
    """A machine that has what a release brings, beside the Python packages that it needs."""

    def __init__(self, folder: Path, checkout: Path) -> None:
        self.folder = folder
        subprocess.run(
            [checkout / "scripts/release", folder / "dist"],
            env={**os.environ, "PATH": PATH},
            check=True,
            capture_output=True,
        )
        (self.wheel,) = (folder / "dist").glob("*.whl")
        (self.collection,) = (folder / "dist").glob("*.tar.gz")
        with zipfile.ZipFile(self.wheel) as archive:
            archive.extractall(folder / "packages")

    def install(self, collection: Path, name: str) -> Path:
        """Install a collection in a folder of its own; return where it is."""
        command = [
            "ansible-galaxy",
            "collection",
            "install",
            "--no-deps",
            "--offline",
            "-p",
            self.folder / name,
        ]
        subprocess.run(
            [*command, collection],
            cwd=self.folder,
            env={"PATH": PATH, "HOME": str(self.folder), "ANSIBLE_HOME": str(self.folder / "home")},
            check=True,
            capture_output=True,
        )
        return self.folder / name / "ansible_collections/gpufarm/cluster"

    def gpufarm(self, *words: str | Path, collections: str = "") -> tuple[int, str]:
        """Run the command; return its exit status and what it wrote."""
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words],
            cwd=self.folder,
            env={
                "PATH": PATH,
                "HOME": str(self.folder),
                "PYTHONPATH": str(self.folder / "packages"),
                "ANSIBLE_COLLECTIONS_PATH": collections and str(self.folder / collections),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Machine:
    subprocess.run(["git", "add", "--all"], cwd=checkout, check=True)
    (checkout / DELETED).unlink()
    return Machine(tmp_path_factory.mktemp("machine"), checkout)


@pytest.fixture(scope="module")
def installed(machine: Machine) -> Iterator[Path]:
    return machine.install(machine.collection, "installed")


def tracked() -> set[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return set(listed.decode().split("\0"))


def test_the_collection_has_files_of_the_repository_and_no_machinery(machine: Machine) -> None:
    with tarfile.open(machine.collection) as archive:
        files = {member.name for member in archive if member.isfile()}
    assert files - tracked() == {"MANIFEST.json", "FILES.json", "CHANGELOG.md"}
    assert "README.md" in files and DELETED not in files
    assert {
        "roles/mig/tasks/main.yml",
        "tosca/templates/ml_infn.yaml",
        "tosca/gpufarm/cli.py",  # the role paas_service installs the deployer
        "plugins/modules/gpu_info.py",
    } <= files
    machinery = ("lab", "molecule", "scripts", "tests", "requirements")
    assert not [name for name in files if name.startswith((*(f"{one}/" for one in machinery), "."))]


def test_the_changelog_has_what_the_fragments_say(machine: Machine) -> None:
    with tarfile.open(machine.collection) as archive:
        changelog = archive.extractfile("CHANGELOG.md").read().decode()
    assert (
        "Release summary" in changelog and "gpufarm\\_validate" not in changelog.partition("New Modules")[0]
    )
    assert "mig\\_partition" in changelog.partition("New Modules")[2]


def test_the_wheel_has_the_command_alone(machine: Machine) -> None:
    names = zipfile.ZipFile(machine.wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "gpufarm",
        machine.wheel.name.split("-py3")[0] + ".dist-info",
    }
    assert "gpufarm/probe/probe.yml" in names


def test_without_the_collection_the_command_says_how_to_get_it(machine: Machine) -> None:
    (machine.folder / "hosts").write_text("localhost\n")
    template = ROOT / "tosca/templates/gpu_node.yaml"
    for words in (("validate", "ml_infn"), ("plan", template, "--pool", "hosts")):
        status, said = machine.gpufarm(*words)
        assert status != 0
        assert f"ansible-galaxy collection install gpufarm-cluster-{VERSION}.tar.gz" in said, said
        assert "Traceback" not in said


def test_with_the_collection_the_command_knows_its_templates(machine: Machine, installed: Path) -> None:
    status, said = machine.gpufarm("validate", "ml_infn", "--json", collections="installed")
    assert (status, json.loads(said)["valid"]) == (0, True)
    status, said = machine.gpufarm("validate", "ml_inf", collections="installed")
    assert status != 0 and "did you mean ml_infn?" in said
    status, said = machine.gpufarm("plan", "gpu_node", "--pool", "nowhere", collections="installed")
    assert f"copy {installed}/inventories/example" in said


def test_a_collection_of_another_version_is_refused(machine: Machine) -> None:
    manifest = machine.install(machine.collection, "newer") / "MANIFEST.json"
    content = json.loads(manifest.read_text())
    content["collection_info"]["version"] = "7.0.0"
    manifest.write_text(json.dumps(content))
    status, said = machine.gpufarm("validate", "ml_infn", collections="newer")
    assert status != 0
    assert f"version 7.0.0 of gpufarm.cluster, and this program is version {VERSION}" in said


def test_an_installed_collection_can_be_packed_for_other_orchestrators(
    machine: Machine, installed: Path
) -> None:
    status, said = machine.gpufarm("package", "gpu_node", "--output", "x.csar", collections="installed")
    assert status == 0, said
    with zipfile.ZipFile(machine.folder / "x.csar") as archive:
        archive.extractall(machine.folder / "csar")
    again = machine.install(machine.folder / f"csar/collections/gpufarm-cluster-{VERSION}.tar.gz", "again")
    files = {path.relative_to(again) for path in again.rglob("*") if path.is_file()}
    assert files == {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()}
