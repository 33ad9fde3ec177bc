# SPDX-License-Identifier: GPL-3.0-or-later
"""A user installs packages over a shared environment, and a kernel starts whatever became of them."""

from __future__ import annotations

import json
import os
import time
import zipfile
from pathlib import Path

import pytest
from environment_user import LIBRARY, User


def install(user: User, wheels: Path, *names: str) -> str:
    """Install as `!pip install` in a cell does, without an index."""
    variables = user.start()["variables"]
    known = {name: variables[name] for name in ("PATH", "PIP_CONSTRAINT")}
    done = user.run("pip", "install", "--no-index", "--find-links", wheels, *names, **known)
    return "" if done.returncode == 0 else done.stderr


def test_a_kernel_has_the_packages_of_the_environment(user: User) -> None:
    found = user.start()
    assert (found["numbers"], found["mine"], found["argv"]) == ("1.0", None, ["-f", "connection"])
    assert found["prefix"] == found["variables"]["VIRTUAL_ENV"] == str(user.layer)
    assert found["variables"]["PATH"].split(":")[:2] == [f"{user.layer}/bin", f"{user.shared}/bin"]
    assert user.notice == ""


def test_one_has_what_one_installs_and_others_do_not(user: User, wheels: Path, tmp_path: Path) -> None:
    assert install(user, wheels, "mine") == ""
    assert user.start()["mine"] == "2.0"
    other = User(user.shared, tmp_path / "other", user.runtime)
    other.home.mkdir()
    assert other.start()["mine"] is None
    assert not (user.shared / LIBRARY / "mine.py").exists()


def test_ones_own_version_comes_before_the_shared_one(user: User, wheels: Path) -> None:
    assert install(user, wheels, "numbers_of_all==2.0") == ""
    assert user.start()["numbers"] == "2.0"
    assert "numbers_of_all  2.0" in user.command("list").stdout


def test_what_a_kernel_is_made_of_stays(user: User, wheels: Path) -> None:
    assert "ipykernel" in install(user, wheels, "ipykernel==99.0")
    assert user.start()["numbers"] == "1.0"


@pytest.mark.parametrize("name", ["json.py", "ipykernel.py", "gpufarm_environment.py"])
def test_a_file_with_the_name_of_a_module_keeps_no_kernel_from_its_start(user: User, name: str) -> None:
    (user.home / name).write_text("raise RuntimeError('not this one')\n")
    assert user.start()["numbers"] == "1.0"


def test_variables_of_the_notebook_server_do_not_change_what_is_found(user: User, wheels: Path) -> None:
    assert user.start(PYTHONPATH=str(wheels), PYTHONHOME="/nowhere")["variables"]["PYTHONPATH"] is None


@pytest.mark.parametrize("broken", ["ipykernel/__init__.py", "debugpy_of_kernel.py"])
def test_a_package_that_breaks_the_kernel_is_left_out_after_two_starts(user: User, broken: str) -> None:
    user.start()
    (user.layer / LIBRARY / broken).parent.mkdir(exist_ok=True)
    (user.layer / LIBRARY / broken).write_text("raise RuntimeError('broken')\n")
    words = (user.shared / "bin/python", "-I", "-m", "gpufarm_environment.kernel")
    assert [user.run(*words).returncode for _ in range(2)] == [1, 1]
    found = user.start()
    assert found["prefix"] == str(user.shared)
    assert not found["variables"]["IPYTHONDIR"].startswith(str(user.home))
    assert "started without the packages that you installed, as it did not start with them" in user.notice
    assert user.command("reset").returncode == 0
    assert user.start()["prefix"] == str(user.layer)
    assert user.notice == ""


def mark(user: User, process: int, machine: str = os.uname().nodename) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    (user.layer / f"starting.{machine}.{boot}.{process}").touch()


def test_kernels_that_start_at_the_moment_are_no_failures(user: User) -> None:
    user.start()
    mark(user, os.getpid())
    mark(user, os.getppid())
    assert user.start()["prefix"] == str(user.layer)
    assert user.notice == ""


# Another kernel makes the link to the interpreter just before this one does.
FASTER = """
import sys
from pathlib import Path
from gpufarm_environment import shared
from gpufarm_environment.layer import Layer

layer, link = Layer(shared.read(), Path.home()), Path.symlink_to

def faster(path, target):
    if not layer.python.is_symlink():
        link(layer.python, target)
    link(path, target)

Path.symlink_to = faster
layer.prepare()
"""


def test_the_first_kernels_start_at_the_same_moment(user: User) -> None:
    """JupyterLab starts the kernels of all notebooks that were open, also after a new version."""
    done = user.run(user.shared / "bin/python", "-I", "-c", FASTER)
    assert done.returncode == 0, done.stderr
    assert user.start()["prefix"] == str(user.layer)
    assert not list((user.layer / "bin").glob(".*"))


def test_a_start_that_was_killed_and_those_on_other_machines_are_no_failures(user: User) -> None:
    user.start()
    mark(user, 4194305)  # above the highest number of a process
    mark(user, 4194305, "elsewhere")
    mark(user, 4194306, "elsewhere")
    assert user.start()["prefix"] == str(user.layer)
    mark(user, 4194306)
    assert user.start()["prefix"] == str(user.layer), "a start that worked ends the count"


@pytest.mark.parametrize(
    "damage", ["pyvenv.cfg", "bin/python", "bin/pip", f"{LIBRARY}/gpufarm-environment.pth"]
)
def test_a_damaged_layer_is_mended_and_keeps_its_packages(user: User, wheels: Path, damage: str) -> None:
    install(user, wheels, "mine==1.0")
    file = user.layer / damage
    file.unlink()
    file.write_text("nonsense\n")
    found = user.start()
    assert (found["numbers"], found["mine"]) == ("1.0", "1.0")
    assert user.notice == ""


def test_a_home_that_takes_nothing_is_told(user: User) -> None:
    (user.home / ".local").write_text("a file where a folder belongs\n")
    found = user.start()
    assert found["prefix"] == str(user.shared) and found["numbers"] == "1.0"
    assert "cannot be used (Not a directory)" in user.notice


def test_packages_go_along_to_a_new_version(user: User, second: Path, wheels: Path) -> None:
    install(user, wheels, "mine==1.0", "numbers_of_all==2.0")
    newer = User(second, user.home, user.runtime)
    variables = {"PIP_FIND_LINKS": str(wheels), "PIP_NO_INDEX": "1"}
    assert newer.start(**variables)["mine"] is None
    result = user.home / ".local/share/gpufarm/environments/scientific/22222222/carried.json"
    end = time.monotonic() + 60
    while not result.exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert json.loads(result.read_text()) == {"from": "11111111", "missing": {}}
    again = newer.start(**variables)
    assert again["mine"] == "1.0" and again["numbers"] == "1.0", "the new version has that one itself"


@pytest.mark.parametrize("damage", ["latin-1", "loop"])
def test_odd_files_in_a_former_layer_keep_no_kernel_from_its_start(
    user: User, second: Path, wheels: Path, damage: str
) -> None:
    install(user, wheels, "mine==1.0")
    odd = user.layer / LIBRARY / "odd-1.0.dist-info"
    odd.mkdir()
    if damage == "loop":
        (odd / "METADATA").symlink_to("METADATA")
    else:
        (odd / "METADATA").write_bytes(
            "Metadata-Version: 2.1\nName: odd\nVersion: 1.0\nAuthor: Mü\n".encode("latin-1")
        )
    assert "mine" in user.command("list").stdout
    assert User(second, user.home, user.runtime).start(PIP_NO_INDEX="1")["numbers"] == "1.0"


def test_a_package_that_cannot_go_along_keeps_no_other_away(user: User, second: Path, wheels: Path) -> None:
    install(user, wheels, "mine==1.0", "extra==1.0")
    (wheels / "extra-1.0-py3-none-any.whl").unlink()
    newer = User(second, user.home, user.runtime)
    variables = {"PIP_FIND_LINKS": str(wheels), "PIP_NO_INDEX": "1"}
    newer.start(**variables)
    end = time.monotonic() + 120
    while "could not be installed: extra." not in newer.notice and time.monotonic() < end:
        time.sleep(0.1)
    assert newer.start(**variables)["mine"] == "1.0"
    assert "could not be installed: extra." in newer.notice, "another kernel does not hide it"


def test_an_interrupted_carrying_goes_on_at_the_next_start(user: User, second: Path, wheels: Path) -> None:
    install(user, wheels, "mine==1.0", "extra==1.0")
    newer = User(second, user.home, user.runtime)
    layer = user.home / ".local/share/gpufarm/environments/scientific/22222222"
    (layer / LIBRARY).mkdir(parents=True)
    with zipfile.ZipFile(wheels / "extra-1.0-py3-none-any.whl") as archive:
        archive.extractall(layer / LIBRARY)
    newer.start(PIP_FIND_LINKS=str(wheels), PIP_NO_INDEX="1")
    end = time.monotonic() + 120
    while not (layer / "carried.json").exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert newer.start()["mine"] == "1.0"


def test_packages_that_cannot_go_along_are_named(user: User, second: Path, wheels: Path) -> None:
    install(user, wheels, "mine==1.0")
    newer = User(second, user.home, user.runtime)
    newer.start(PIP_NO_INDEX="1")
    end = time.monotonic() + 60
    while "could not be installed: mine" not in newer.notice and time.monotonic() < end:
        time.sleep(0.1)
    assert "could not be installed: mine" in newer.notice


def test_packages_are_exported_and_imported(user: User, wheels: Path, tmp_path: Path) -> None:
    install(user, wheels, "mine==1.0")
    lock = tmp_path / "mine.txt"
    lock.write_text(user.command("export").stdout)
    assert lock.read_text() == "mine==1.0\n"
    user.command("reset")
    assert user.command("list").stdout == "You have installed none.\n"
    done = user.run(
        *(user.shared / "bin/python", "-P", "-m", "gpufarm_environment.command", "import", lock),
        PIP_FIND_LINKS=str(wheels),
        PIP_NO_INDEX="1",
    )
    assert done.returncode == 0, done.stderr
    assert user.start()["mine"] == "1.0"


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://evil.example.org/simple",
        "-r /etc/passwd",
        "-e .",
        "mine @ file:///etc",
        "./mine-1.0-py3-none-any.whl",
        "mine==1.0 --global-option=x",
        "mine==1.0; python_version > '3'",
        "mine",
        "$(touch x)==1",
        "mine==1.0\x00",
        "<script>==1",
    ],
)
def test_a_file_to_import_holds_names_and_versions_only(
    user: User, wheels: Path, tmp_path: Path, line: str
) -> None:
    file = tmp_path / "-odd; name.txt"
    file.write_text(f"# of a colleague\n\nmine==1.0  # as here\n{line}\n")
    done = user.run(
        *(user.shared / "bin/python", "-P", "-m", "gpufarm_environment.command", "import", file),
        PIP_FIND_LINKS=str(wheels),
        PIP_NO_INDEX="1",
    )
    assert done.returncode == 1 and done.stderr.startswith("Line 4 is ")
    assert user.command("list").stdout == "You have installed none.\n"


def test_a_file_without_packages_is_refused(user: User, tmp_path: Path) -> None:
    file = tmp_path / "empty.txt"
    file.write_text("# nothing\n")
    assert "names no package" in user.command("import", file).stderr
