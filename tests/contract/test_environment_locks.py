"""The environments of the role run with each driver that a supported CUDA runs with."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._environments.plan import DRIVER_OF_CUDA, Lock
from ansible_collections.gpufarm.cluster.plugins.module_utils._python_environment import parse_lock
from packaging.version import Version

ROLE = Path(__file__).parents[2] / "roles/notebook_environments"
SHIPPED = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__notebook_environments_shipped"]
FILES = {name: re.findall(r"[a-z0-9-]+\.lock", one["locks"]) for name, one in SHIPPED.items()}
ALL = [file for files in FILES.values() for file in files]
# Those of Debian 12 and 13, and the first one for CUDA 13.
DRIVERS = ["535.261.03", "550.163.01", "580.65.06"]


def lock(name: str) -> Lock:
    text = (ROLE / "files" / name).read_text()
    return Lock(text, parse_lock(text), "x86_64")


def test_each_lock_is_offered():
    assert sorted(ALL) == sorted(path.name for path in ROLE.glob("files/*.lock"))


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("name", FILES)
def test_each_environment_has_a_lock_for_each_driver(name, driver):
    assert any(lock(file).runs_with(driver) for file in FILES[name])


@pytest.mark.parametrize("name", FILES)
def test_the_latest_cuda_comes_first(name):
    majors = [lock(file).cuda.partition(".")[0] for file in FILES[name]]
    assert majors == sorted({*majors}, reverse=True)


@pytest.mark.parametrize("file", ALL)
def test_no_lock_mixes_majors_of_cuda(file):
    """From 13 on, most libraries are named without a number, such as nvidia-cublas."""
    found = lock(file)
    names = {one.name: one.version for one in found.requirements}
    suffixes = {match[1] for name in names if (match := re.search(r"-(?:cu|cuda)(1\d)\b", name))}
    bare = {
        names[name].partition(".")[0] for name in ("nvidia-cublas", "nvidia-cuda-runtime") if name in names
    }
    assert suffixes | bare == ({found.cuda.partition(".")[0]} if found.cuda else set())
    assert not found.cuda or int(found.cuda.partition(".")[0]) in DRIVER_OF_CUDA


def test_audio_of_pytorch_is_of_its_cuda():
    """In wheels of PyPI, torchaudio 2.10 wants libcudart.so.12 and 2.11 libcudart.so.13."""
    for file in FILES["pytorch"]:
        found = lock(file)
        [audio] = [one.version for one in found.requirements if one.name == "torchaudio"]
        assert (Version(found.cuda) < Version("13")) == (Version(audio) < Version("2.11")), file
