"""New health checks and GPU models are written whole: their tests pass before anything is edited."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = {
    "call": "nvmlDeviceGetFanSpeed",
    "limit": "95",
    "meaning": "fan speed in percent",
    "wrong": 'the "fan" turns at its limit',
    "action": "check the cooling",
    "source": "the data sheet of the card",
}


def run(checkout: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, checkout / "scripts" / program, *arguments]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


def new_check(checkout: Path, name: str, **other: str) -> subprocess.CompletedProcess[str]:
    options = {**CHECK, **other}
    return run(checkout, "new-health-check", name, *(f"--{key}={value}" for key, value in options.items()))


def passes(checkout: Path, *tests: str) -> str:
    """Run tests in the checkout; return what they told when one failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout[-4000:] + done.stderr


def tree(checkout: Path) -> str:
    command = ["git", "-C", checkout, "status", "--porcelain"]
    subprocess.run(["git", "-C", checkout, "add", "--all"], check=True)
    subprocess.run(
        ["git", "-C", checkout, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"],
        check=False,
    )
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("name", "other", "problem"),
    [
        ("Fan", {}, "is not a name of a check"),
        ("temperature", {}, "there is a check or a reading temperature"),
        ("vbios", {}, "there is a check or a reading vbios"),
        ("fan_speed", {"call": "nvmlDeviceGetNothing"}, "is no call of NVML"),
        ("fan_speed", {"call": "nvmlDeviceSetFanSpeed_v2"}, "is no call of NVML"),
        ("fan_speed", {"limit": "much"}, "invalid float"),
    ],
)
def test_a_check_that_cannot_be_is_refused(
    checkout: Path, name: str, other: dict[str, str], problem: str
) -> None:
    before = tree(checkout)
    done = new_check(checkout, name, **other)
    assert done.returncode != 0 and problem in done.stderr
    assert tree(checkout) == before


def test_a_new_check_passes_its_tests(checkout: Path) -> None:
    done = new_check(checkout, "fan_speed")
    assert done.returncode == 0, done.stderr
    assert 'the "fan" turns at its limit' in (checkout / "roles/gpu_health/README.md").read_text()
    assert passes(checkout, "tests/unit/plugins/test_health.py") == ""
    assert run(checkout, "role-docs", "--check").returncode == 0
    rows = "tests/unit/plugins/test_health.py::test_a_sick_gpu_is_found[fan_speed-warning-values0]"
    rules = checkout / "plugins/module_utils/_health/rules.py"
    rules.write_text(rules.read_text().replace('"fan_speed", WARNING)', '"fan_speed", OK)'))
    assert "fan_speed" in passes(checkout, rows.split("[")[0])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("H20", "NVIDIA H20", "h100-96gb"), "is not a key"),
        (("t4", "Tesla T4", "a30"), "there is a model t4"),
        (("h20-96gb", 'H20", .mib = 1, .name = "', "h100-96gb"), "is not a name of a GPU"),
        (("h20-96gb", "NVIDIA H20", "h20"), "there is no model h20"),
    ],
)
def test_a_model_that_cannot_be_is_refused(checkout: Path, arguments: tuple[str, ...], problem: str) -> None:
    before = tree(checkout)
    done = run(checkout, "new-gpu-model", *arguments)
    assert done.returncode == 1 and problem in done.stderr
    assert tree(checkout) == before


@pytest.mark.parametrize(
    ("key", "like"), [("h20-96gb", "h100-96gb"), ("a800-80gb", "a100-80gb"), ("t4g", "t4")]
)
def test_a_new_model_passes_the_tests_of_all_models(checkout: Path, key: str, like: str) -> None:
    done = run(checkout, "new-gpu-model", key, f"NVIDIA {key}", like)
    assert done.returncode == 0, done.stderr
    tests = ["tests/unit/nvmlsim/test_nvmlsim_models.py", "tests/unit/plugins/test_mig_exact.py"]
    assert passes(checkout, *tests, "-k", f"{key} or other_models") == ""
    assert f"`{key}`" in (checkout / "lab/nvmlsim/README.md").read_text()
