"""A library of the driver that is there and cannot be loaded is told apart from one that is missing."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pynvml
import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.io import child
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the binding loads; it is not there yet."""
    file = tmp_path / "libnvidia-ml.so.1"
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", lambda name: ctypes.CDLL(str(file) if file.exists() else name))
    return file


def refusal() -> str:
    with pytest.raises(GpuError) as caught, session.session():
        pass
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "file too short"), (b"no library" * 100, "invalid ELF header")],
    ids=["empty", "text"],
)
def test_a_broken_file_is_named_with_the_reason(library: Path, content: bytes, reason: str) -> None:
    library.write_bytes(content)
    told = refusal()
    assert told.startswith(f"The library of the NVIDIA driver cannot be loaded ({library}: {reason})")
    assert "install the driver again" in told and "not installed" not in told
    assert child.read_gpus(30).error == told


def test_another_architecture_is_a_reason(library: Path) -> None:
    content = bytearray(Path(shutil.which("true") or "/bin/true").read_bytes())
    content[18:20] = (243).to_bytes(2, "little")  # e_machine: RISC-V (elf.h, EM_RISCV)
    library.write_bytes(content)
    assert "cannot be loaded" in refusal()


def test_a_library_that_lacks_another_one_is_not_missing() -> None:
    words = "libfoo.so.1: cannot open shared object file: No such file or directory"
    assert "cannot be loaded (libfoo.so.1: " in session.load_problem(words)


@pytest.mark.parametrize(
    "words", ["libnvidia-ml.so.1: cannot open shared object file: No such file or directory", ""]
)
def test_a_missing_library_means_that_the_driver_is_not_installed(words: str) -> None:
    assert session.load_problem(words).startswith("The NVIDIA driver is not installed on this machine")
