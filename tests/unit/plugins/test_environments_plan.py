"""Which environments notebooks are offered, and what is refused before any of them is built."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._environments.plan import plan

HASH = f"--hash=sha256:{'0' * 64}"
GIB = 1 << 30


def lock(*pins: str) -> str:
    return "".join(
        f"{pin} {HASH}\n" for pin in ("ipykernel==7.0", "pip==26.0", "uv==0.13.8", "traitlets==5.0", *pins)
    )


SHIPPED = {
    "scientific": {
        "title": "Scientific Python",
        "locks": [lock("numpy==2.4.6")],
        "gib": 1,
        "imports": ["numpy"],
    },
    "pytorch": {
        "title": "PyTorch",
        "locks": [
            lock("torch==2.15.0", "nvidia-cuda-runtime==13.2.86"),
            lock("torch==2.10.0", "nvidia-cuda-runtime-cu12==12.8.90"),
        ],
        "gib": 8,
        "imports": [],
    },
    "old": {"title": "Old", "locks": [lock("nvidia-cuda-runtime-cu12==12.9.79")], "gib": 8, "imports": []},
}
MACHINE = {
    "python": "3.11",
    "processor": "x86_64",
    "driver": "580.95.05",
    "free": 100 * GIB,
    "versions": [],
    "unsafe": "",
}


def settings(*offered: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "names": "" if offered else "scientific",
        "more": list(offered),
        "default": "",
        "folder": "/opt/gpufarm/environments",
        "pip_index_url": "",
        "shipped": SHIPPED,
        **more,
    }


def problems(*offered: dict[str, Any], machine: dict[str, Any] | None = None, **more: Any) -> list[str]:
    found: list[str] = plan(settings(*offered, **more), {**MACHINE, **(machine or {})})["problems"]
    return found


def test_a_kernel_starts_the_environment_and_nothing_of_the_user():
    [made] = plan(settings(pip_index_url="https://mirror.example/simple"), MACHINE)["environments"]
    assert made["folder"] == f"/opt/gpufarm/environments/scientific/{made['version']}"
    kernel = json.loads(made["files"]["jupyter/kernels/scientific/kernel.json"])
    assert kernel["argv"][:2] == [f"{made['folder']}/bin/python", "-I"]
    assert kernel["display_name"] == "Scientific Python"
    about = json.loads(made["files"]["gpufarm-environment.json"])
    assert about["index_url"] == "https://mirror.example/simple"
    assert about["version"] == made["version"]


def test_packages_of_the_kernel_are_pinned_and_no_others():
    [made] = plan(settings(), MACHINE)["environments"]
    assert made["files"]["gpufarm-kernel.txt"] == "ipykernel==7.0\ntraitlets==5.0\n"


def test_the_hub_learns_of_each_whose_it_is_and_of_the_default_first():
    made = plan(
        settings({"name": "scientific"}, {"name": "pytorch", "groups": ["ml"]}, default="pytorch"), MACHINE
    )
    told = json.loads(made["index"])["environments"]
    assert [(one["name"], one["groups"]) for one in told] == [("pytorch", ["ml"]), ("scientific", [])]
    assert told[0]["path"] == f"{made['environments'][1]['folder']}/jupyter"


def test_names_are_separated_by_blanks_or_commas():
    made = plan(settings(names=" scientific, pytorch\told "), MACHINE)["environments"]
    assert [one["name"] for one in made] == ["scientific", "pytorch", "old"]


def test_without_names_the_hub_is_told_that_there_are_none():
    made = plan(settings(names=" "), MACHINE)
    assert (made["environments"], json.loads(made["index"])) == ([], {"environments": []})


def test_another_lock_or_another_python_is_another_version():
    def version(**machine: str) -> str:
        found: str = plan(settings(), {**MACHINE, **machine})["environments"][0]["version"]
        return found

    own = plan(settings({"name": "scientific", "lock": lock("numpy==2.5.0")}), MACHINE)["environments"][0][
        "version"
    ]
    assert len({version(), version(python="3.13"), own}) == 3
    assert version() == version(driver="590.1")


def test_a_lock_of_the_site_takes_the_place_of_the_role_s():
    entry = {"name": "scientific", "title": " Course\n2026 ", "lock": lock("numpy==2.5.0")}
    [made] = plan(settings(entry), MACHINE)["environments"]
    assert made["title"] == "Course 2026"
    assert (made["lock"], made["imports"]) == (entry["lock"], [])
    assert plan(settings(), MACHINE)["environments"][0]["imports"] == ["numpy"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"name": "theano"}, "is none of those that this role has"),
        ({"name": "../etc"}, "has no usable name"),
        ({"name": "a" * 41}, "has no usable name"),
        ({"name": ""}, "has no usable name"),
        ({"name": "course", "lock": "numpy"}, "cannot be used: The lock file has the line 'numpy'"),
        ({"name": "course", "lock": f"numpy==1.0 {HASH}\nuv==1 {HASH}\n"}, "does not pin ipykernel and pip"),
        ({"name": "scientific", "title": "\x1b[31mred"}, "cannot be shown"),
        ({"name": "scientific", "title": "x" * 61}, "cannot be shown"),
    ],
)
def test_an_entry_that_cannot_be_built_is_refused(entry, words):
    [found] = problems(entry)
    assert words in found


@pytest.mark.parametrize(
    "folder", ["/", "/opt", "relative/path", "/opt/../etc/x", "/opt/a b", "/opt/'x'/y", ""]
)
def test_a_folder_that_is_none_of_its_own_is_refused(folder):
    [found] = problems(folder=folder)
    assert "cannot be used; give an absolute path" in found


def test_what_the_list_does_not_say_clearly_is_refused():
    assert "scientific is named 2 times" in problems({"name": "scientific"}, {"name": "scientific"})[0]
    assert "notebook_environments_default is jax" in problems(default="jax")[0]


@pytest.mark.parametrize(
    ("name", "driver", "cuda"), [("pytorch", "515.105.01", "12.8"), ("old", "470.256.02", "12.9")]
)
def test_an_environment_that_the_driver_cannot_run_is_refused_with_both_versions(name, driver, cuda):
    [found] = problems({"name": name}, machine={"driver": driver})
    assert f"CUDA {cuda}" in found
    assert f"branch 525 or later, and the machine has {driver}" in found


@pytest.mark.parametrize(
    ("name", "driver"), [("pytorch", "525.60.13"), ("old", "525.60.13"), ("pytorch", "")]
)
def test_one_that_it_can_run_is_not(name, driver):
    assert problems({"name": name}, machine={"driver": driver}) == []


@pytest.mark.parametrize(
    ("driver", "number", "about"),
    [
        ("", 0, "13.2: no driver is loaded"),
        ("590.44.01", 0, "13.2: driver 590.44.01 runs it"),
        ("580.65.06", 0, "13.2: driver 580.65.06 runs it"),
        ("579.0", 1, "12.8: driver 579.0 does not run CUDA 13.2"),
        ("550.163.01", 1, "12.8: driver 550.163.01 does not run CUDA 13.2"),
        ("535.261.03", 1, "12.8: driver 535.261.03 does not run CUDA 13.2"),
    ],
)
def test_of_several_locks_the_machine_gets_the_latest_that_its_driver_runs(driver, number, about):
    made = plan(settings({"name": "pytorch"}), {**MACHINE, "driver": driver})
    [one] = made["environments"]
    assert one["lock"] == SHIPPED["pytorch"]["locks"][number]
    assert one["about"] == f"PyTorch (CUDA {about})"
    assert json.loads(made["index"])["environments"][0]["cuda"] == about.partition(":")[0]


def test_a_lock_is_none_for_gpus_where_it_brings_no_cuda_for_the_processor():
    """PyTorch's wheels for CUDA 12 are on PyPI for x86_64; those of aarch64 are for the CPU."""
    folder = Path(__file__).resolve().parents[3] / "roles" / "notebook_environments" / "files"
    locks = [(folder / name).read_text() for name in ("pytorch.lock", "pytorch-cuda12.lock")]
    known = {**settings({"name": "pytorch"}), "shipped": {"pytorch": {**SHIPPED["pytorch"], "locks": locks}}}
    arm = {**MACHINE, "processor": "aarch64"}
    [made] = plan(known, arm)["environments"]
    assert "CUDA 13.2: driver 580.95.05 runs it" in made["about"]
    [found] = plan(known, {**arm, "driver": "570.86.15"})["problems"]
    assert "built for CUDA 13.2, which needs a driver of branch 580 or later" in found
    [made] = plan(known, {**MACHINE, "driver": "570.86.15"})["environments"]
    assert "CUDA 12.8: driver 570.86.15 does not run CUDA 13.2" in made["about"]


def test_another_driver_makes_a_new_version_beside_the_former_one():
    old, new = (
        plan(settings({"name": "pytorch"}), {**MACHINE, "driver": driver})["versions"]
        for driver in ("550.163.01", "580.95.05")
    )
    assert old != new


def test_an_environment_without_cuda_says_none():
    made = plan(settings(), {**MACHINE, "driver": "470.256.02"})
    assert made["environments"][0]["about"] == "Scientific Python"
    assert json.loads(made["index"])["environments"][0]["cuda"] == ""


def test_a_cuda_that_nobody_knows_is_refused():
    [found] = problems({"name": "next", "lock": lock("nvidia-cuda-runtime==14.0.1")})
    assert "of which the least driver is not known here" in found


def test_a_disk_that_is_too_small_is_refused_unless_all_is_built():
    machine = {"free": 4 * GIB}
    [found] = problems({"name": "scientific"}, {"name": "pytorch"}, machine=machine)
    assert "need 9 GiB" in found
    assert "4.0 GiB are free" in found
    made = plan(settings({"name": "pytorch"}), MACHINE)["environments"]
    there = [{"name": "pytorch", "version": made[0]["version"], "complete": True, "users": []}]
    assert problems({"name": "pytorch"}, machine={**machine, "versions": there}) == []


def test_a_folder_in_which_users_can_make_files_is_refused():
    [found] = problems(machine={"unsafe": "/scratch"})
    assert found.startswith("/scratch does not belong to root alone")


def test_an_older_python_is_refused():
    [found] = problems(machine={"python": "3.9"})
    assert "3.9" in found
    assert "3.11 or later" in found
