# SPDX-License-Identifier: GPL-3.0-or-later
"""A user installs packages over an image, whatever Python its kernel has."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from environment_user import LIBRARY, SOURCE, User, make_python

IMAGE = SOURCE / "image"
NOTEBOOK = "registry.example.org/ml/notebook"
# In place of jupyter_core: folders of JUPYTER_PATH, then those of the Python of the notebook server.
PATHS = """
import os, sys
def jupyter_path(name):
    folders = [*os.environ["JUPYTER_PATH"].split(":"), sys.prefix + "/share/jupyter"]
    return [f"{folder}/{name}" for folder in folders]
"""


@dataclass
class ImageUser(User):
    """A user of an image, whose Python is in `shared`."""

    image: str = f"{NOTEBOOK}@sha256:{'1' * 64}"

    def run(self, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return super().run(*words, **{"GPUFARM_IMAGE": self.image, "JUPYTER_PATH": str(IMAGE), **variables})

    def begin(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Start a kernel as Jupyter does."""
        words = json.loads((IMAGE / "kernels/python3/kernel.json").read_text())["argv"]
        named = {"python3": f"{self.shared}/bin/python", "{connection_file}": "connection"}
        words = [
            named.get(word, word).replace("{resource_dir}", f"{IMAGE}/kernels/python3") for word in words
        ]
        return self.run(*words, **variables)

    def start(self, **variables: str) -> dict[str, Any]:
        done = self.begin(**variables)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def command(self, *words: object) -> subprocess.CompletedProcess[str]:
        return self.run(f"{self.shared}/bin/python", "-I", IMAGE / "start.py", "command", *words)

    def install(self, wheels: Path, *names: str, **variables: str) -> str:
        """Install as `!pip install` in a cell does; return what pip complains about."""
        path = self.start()["variables"]["PATH"]
        words = ("pip", "install", "--no-index", "--find-links", wheels, *names)
        done = self.run(*words, PATH=path, **variables)
        return "" if done.returncode == 0 else done.stderr

    @property
    def layer(self) -> Path:
        return next((self.home / ".local/share/gpufarm/environments").glob(f"*/{self.image[-12:]}"))


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("image") / "venv"
    packages = make_python(folder)
    (packages / "jupyter_core").mkdir()
    (packages / "jupyter_core/__init__.py").touch()
    (packages / "jupyter_core/paths.py").write_text(PATHS)
    return folder


@pytest.fixture
def user(python: Path, tmp_path: Path) -> ImageUser:
    home, runtime = tmp_path / "home", tmp_path / "runtime"
    home.mkdir()
    runtime.mkdir()
    return ImageUser(python, home, runtime)


def kernel_of_image(folder: Path, *argv: object, **variables: str) -> Path:
    """Describe the kernel of an image, in a folder of JUPYTER_PATH behind ours."""
    file = folder / "share/kernels/python3/kernel.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"argv": [str(word) for word in argv], "env": variables}))
    return folder / "share"


def test_a_kernel_has_the_packages_of_the_image_and_those_of_the_user(user: ImageUser, wheels: Path) -> None:
    found = user.start()
    assert (found["numbers"], found["mine"], found["argv"]) == ("1.0", None, ["-f", "connection"])
    assert found["prefix"] == str(user.layer)
    assert user.install(wheels, "mine", "numbers_of_all==2.0") == ""
    found = user.start()
    assert (found["numbers"], found["mine"]) == ("2.0", "2.0")
    assert not (user.shared / LIBRARY / "mine.py").exists()
    listed = "mine            2.0\nnumbers_of_all  2.0\n"
    assert user.command("list").stdout == listed
    path = found["variables"]["PATH"]
    again = user.run(
        "sh",
        IMAGE / "bin/gpufarm-environment",
        "list",
        PATH=path,
        GPUFARM_IMAGE_PYTHON=f"{user.shared}/bin/python",
    )
    assert again.stdout == listed


def test_each_image_has_packages_of_its_own(user: ImageUser, wheels: Path) -> None:
    user.install(wheels, "mine")
    other = ImageUser(user.shared, user.home, user.runtime, "registry.example.org/other@sha256:" + "1" * 64)
    assert other.start()["mine"] is None


def test_packages_go_along_to_a_new_version_of_the_image(user: ImageUser, wheels: Path) -> None:
    user.install(wheels, "mine==1.0")
    newer = ImageUser(user.shared, user.home, user.runtime, f"{NOTEBOOK}@sha256:{'2' * 64}")
    assert newer.start(PIP_FIND_LINKS=str(wheels), PIP_NO_INDEX="1")["mine"] is None
    end = time.monotonic() + 60
    while not (newer.layer / "carried.json").exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert newer.start()["mine"] == "1.0"
    assert user.start()["mine"] == "1.0", "the former version still has it"


def test_a_package_that_breaks_the_kernel_is_left_out_after_two_starts(user: ImageUser) -> None:
    user.start()
    (user.layer / LIBRARY / "debugpy_of_kernel.py").write_text("raise RuntimeError('broken')\n")
    assert [user.begin().returncode for _ in range(2)] == [1, 1]
    assert user.start()["prefix"] == str(user.shared)
    assert user.command("reset").returncode == 0
    assert user.start()["prefix"] == str(user.layer)


def test_settings_of_the_image_are_kept_unless_pip_would_refuse_them(user: ImageUser, wheels: Path) -> None:
    assert user.start(PYTHONPATH="/opt/spark/python")["variables"]["PYTHONPATH"] == "/opt/spark/python"
    assert user.install(wheels, "mine", PIP_USER=user.start(PIP_USER="1")["variables"]["PIP_USER"]) == ""


def test_the_python_of_the_images_own_kernel_is_used(user: ImageUser, tmp_path: Path, wheels: Path) -> None:
    """Some images have the notebook server in one Python, and the packages for users in another one."""
    packages = make_python(tmp_path / "conda")
    (packages / "numbers_of_all.py").write_text('VERSION = "3.0"\n')
    argv = [tmp_path / "conda/bin/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    share = kernel_of_image(tmp_path, *argv, PYTHONPATH="${HOME}/more")
    found = user.start(JUPYTER_PATH=f"{IMAGE}:{share}")
    assert (found["numbers"], found["prefix"]) == ("3.0", str(user.layer))
    assert found["variables"]["PYTHONPATH"] == f"{user.home}/more"


def test_the_python_of_a_distribution_takes_packages_too(
    user: ImageUser, tmp_path: Path, wheels: Path
) -> None:
    """By itself, that of Debian and Ubuntu refuses them: "externally-managed-environment" (PEP 668)."""
    argv = ["/usr/bin/python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    share = kernel_of_image(tmp_path, *argv, PYTHONPATH=str(user.shared / LIBRARY))
    variables = {"JUPYTER_PATH": f"{IMAGE}:{share}"}
    found = user.start(**variables)["variables"]
    known = {name: found[name] for name in ("PATH", "PYTHONPATH")}
    done = user.run("pip", "install", "--no-index", "--find-links", wheels, "mine", **known)
    assert done.returncode == 0, done.stderr
    found = user.start(**variables)
    assert (found["mine"], found["prefix"]) == ("2.0", str(user.layer))


def test_another_kernel_starts_as_it_is(user: ImageUser, tmp_path: Path) -> None:
    share = kernel_of_image(tmp_path, "echo", "xeus", "{connection_file}")
    assert user.begin(JUPYTER_PATH=f"{IMAGE}:{share}").stdout == "xeus connection\n"
    done = user.run(
        f"{user.shared}/bin/python", "-I", IMAGE / "start.py", "command", "list", JUPYTER_PATH=str(share)
    )
    assert (done.returncode, done.stderr) == (
        1,
        "The kernel of this image is none over which packages can be added.\n",
    )


def test_a_kernel_of_the_users_own_starts_as_it_is(user: ImageUser, tmp_path: Path) -> None:
    make_python(user.home / "own")
    argv = [user.home / "own/bin/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    share = kernel_of_image(tmp_path, *argv)
    assert user.start(JUPYTER_PATH=f"{IMAGE}:{share}")["prefix"] == str(user.home / "own")


def test_a_python_that_is_too_old_starts_the_kernel_of_the_image(user: ImageUser) -> None:
    code = (
        "import runpy, sys; sys.version_info = (3, 10); runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    )
    words = [f"{user.shared}/bin/python", "-c", code, IMAGE / "run.py"]
    done = user.run(*words, "kernel", "-f", "connection")
    assert json.loads(done.stdout)["prefix"] == str(user.shared)
    assert "3.11 or later" in user.run(*words, "command", "list").stderr
