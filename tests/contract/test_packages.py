"""Python that machines get: of one version, complete, and installed without a network."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.lookup import deployer, python_project
from ansible_collections.gpufarm.cluster.plugins.module_utils._version import VERSION
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECTS = sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))


def test_all_have_the_version_of_the_collection():
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
    assert {python_project.project(name)["version"] for name in PROJECTS} == {VERSION} == {version}


@pytest.mark.parametrize("name", PROJECTS)
@pytest.mark.parametrize("lock", ["hub.lock", "collaborative.lock"])
def test_the_uv_of_each_lock_builds_a_project_itself(name, lock):
    text = (ROOT / "roles/jupyterhub/files" / lock).read_text()
    pinned = re.search(r"^uv==(\S+)", text, re.M)[1]
    about = tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())
    (backend,) = map(Requirement, about["build-system"]["requires"])
    assert (backend.name, about["build-system"]["build-backend"]) == ("uv_build", "uv_build")
    assert backend.specifier.contains(pinned)


@pytest.mark.parametrize("name", [*PROJECTS, "the deployer"])
def test_what_is_installed_is_the_whole_project(name, tmp_path):
    """As the module python_environment installs it."""
    project = deployer.project() if name == "the deployer" else python_project.project(name)
    for path, text in project["files"].items():
        file = tmp_path / "source" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    environment = tmp_path / "environment"
    quiet = ["--offline", "--no-cache", "--no-config", "--quiet"]
    subprocess.run(["uv", "venv", *quiet, environment], check=True)
    command = [
        "uv",
        "pip",
        "install",
        *quiet,
        "--no-deps",
        "--no-index",
        "--python",
        environment / "bin/python",
    ]
    subprocess.run([*command, tmp_path / "source"], check=True)
    (packages,) = environment.glob("lib/python3*/site-packages")
    for path, text in project["files"].items():
        if path != "pyproject.toml":
            top, _, rest = path.partition("/")
            installed = environment / rest if top == "data" else packages / path
            assert installed.read_text() == text
    (found,) = importlib.metadata.distributions(name=project["name"], path=[str(packages)])
    assert found.version == project["version"]
    for point in found.entry_points:
        module, _, function = point.value.partition(":")
        source = project["files"][module.replace(".", "/") + ".py"]
        assert not function or re.search(rf"^(def|class) {function}\b", source, re.M), point


def test_the_notebook_server_loads_the_notices():
    files = python_project.project("notebook")["files"]
    enabled = json.loads(files["data/etc/jupyter/jupyter_server_config.d/gpufarm_notices.json"])
    assert enabled["ServerApp"]["jpserver_extensions"] == {"gpufarm_notices": True}
    assert "gpufarm_notices/__init__.py" in files


def test_the_deployer_is_the_package_of_a_release_with_what_it_runs():
    project = deployer.project()
    released = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    about = tomllib.loads(project["files"]["pyproject.toml"])["project"]
    for fact in ("name", "version", "license", "requires-python", "scripts"):
        assert about[fact] == released[fact]
    collection = "ansible_collections/gpufarm/cluster"
    files = project["files"]
    assert json.loads(files[f"{collection}/MANIFEST.json"])["collection_info"]["version"] == VERSION
    assert f"{collection}/tosca/playbooks/paas_service/configure.yml" in files
    assert "ansible_collections/community/crypto/plugins/modules/get_certificate.py" in files
    assert not [name for name in files if name.startswith(f"{collection}/tosca/gpufarm")]


def test_the_uv_of_the_lock_of_the_service_builds_the_deployer_itself():
    pinned = re.search(r"^uv==(\S+)", (ROOT / "roles/paas_service/files/serve.lock").read_text(), re.M)[1]
    (backend,) = map(Requirement, tomllib.loads(deployer.PROJECT)["build-system"]["requires"])
    assert backend.name == "uv_build" and backend.specifier.contains(pinned)
