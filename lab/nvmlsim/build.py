# SPDX-License-Identifier: GPL-3.0-or-later
"""Compile the simulated library, once for each content of its sources."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

from lab.system import fill_once

LIBRARY = "libnvidia-ml.so.1"
SOURCE = Path(__file__).parent / "src"
FLAGS = (
    *("-std=gnu11", "-O1", "-g", "-fPIC", "-fvisibility=hidden", "-pthread", "-shared"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"),
    f"-Wl,-soname,{LIBRARY}",
)

# Definitions in the sources, and lookups of functions by the binding.
DEFINED = re.compile(
    r"^(?:API [^(\n]*?|NVML_CALL\(\w+, |NVML_ALIAS\(|NVML_GETTER\()(nvml[A-Z]\w+)", re.MULTILINE
)
WANTED = re.compile(r"""_nvmlGetFunctionPointer\(\s*["'](nvml\w+)""")


def stubs(sources: list[Path], binding: str) -> str:
    """Return C source that defines every NVML function which the binding knows and the sources lack.

    Such a function answers NOT_SUPPORTED, as the real library does for what a GPU cannot do, and is logged.

    :param sources: the C files of the simulator
    :param binding: the text of the ``pynvml`` module
    """
    defined = {name for source in sources for name in DEFINED.findall(source.read_text())}
    missing = sorted(set(WANTED.findall(binding)) - defined)
    stub = "NVML_CALL(READ, {}, (void), ()) {{ return NVML_ERROR_NOT_SUPPORTED; }}"
    return "\n".join(['#include "call.h"', *map(stub.format, missing), ""])


def _binding() -> str:
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.origin is None:
        raise RuntimeError(
            "The simulated GPU cannot be built: the Python package nvidia-ml-py, which lists the functions "
            "of NVML, is not installed here. Install it: pip install nvidia-ml-py"
        )
    return Path(spec.origin).read_text()


def build(cache_dir: Path) -> Path:
    """Return the path of the library, compiled with gcc unless the cache holds it already.

    :param cache_dir: a directory that later calls share; made if needed. Builds side by side are safe: each
        compiles apart and the first to finish wins.
    :raises RuntimeError: gcc or nvidia-ml-py is missing, or the compiler fails.
    """
    if not shutil.which("gcc"):
        raise RuntimeError(
            "The simulated GPU cannot be built: gcc is missing. Install it: apt-get install gcc libc6-dev"
        )
    binding = _binding()
    sources = sorted(SOURCE.glob("*.c"))
    digest = hashlib.sha256()
    for part in (*(path.read_text() for path in sorted(SOURCE.glob("*.[ch]"))), binding, *FLAGS):
        digest.update(part.encode())
    result = cache_dir / f"nvmlsim-{digest.hexdigest()[:16]}"
    fill_once(result, lambda scratch: _compile(sources, binding, scratch))
    return result / LIBRARY


def _compile(sources: list[Path], binding: str, folder: Path) -> None:
    (folder / "stubs.c").write_text(stubs(sources, binding))
    command = ["gcc", *FLAGS, f"-I{SOURCE}", "-o", LIBRARY, *map(str, sources), "stubs.c"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The simulated GPU cannot be built:\n{done.stderr}")
