"""Code of the collection that does input or output is in packages called `io`; the rest is pure."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

UTILS = Path(__file__).resolve().parents[2] / "plugins" / "module_utils"
FILES = sorted(UTILS.rglob("*.py"))
# Names that read or change something outside the process, or read the time.
OUTSIDE = {
    "ansible.module_utils",
    "ctypes",
    "fcntl",
    "glob",
    "grp",
    "http",
    "importlib",
    "os",
    "pathlib.Path",
    "pwd",
    "pynvml",
    "requests",
    "select",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "urllib.request",
}


def is_io(path: Path) -> bool:
    return "io" in path.relative_to(UTILS).parts


def imported(path: Path) -> Iterator[str]:
    """Return what a file imports; names of this collection begin with a dot and are from its root."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(UTILS).parts[: -node.level]
            module = ".".join([*package, *(node.module or "").split(".")]).strip(".")
            yield from (f".{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Name) and node.id in ("open", "input", "print"):
            yield f"{node.id}()"


def does_io(name: str) -> bool:
    if name.startswith("."):
        return "io" in name.split(".")
    return name.endswith("()") or any(name == one or name.startswith(f"{one}.") for one in OUTSIDE)


def test_both_kinds_are_found() -> None:
    assert {path.parent.name for path in FILES if is_io(path)} == {"io"}
    assert len([path for path in FILES if not is_io(path)]) > 50


@pytest.mark.parametrize("name", [str(path.relative_to(UTILS)) for path in FILES if not is_io(path)])
def test_what_is_pure_neither_does_io_nor_imports_what_does(name: str) -> None:
    assert [one for one in imported(UTILS / name) if does_io(one)] == []


@pytest.mark.parametrize(
    "name", [str(path.relative_to(UTILS)) for path in FILES if is_io(path) and path.name != "__init__.py"]
)
def test_what_is_called_io_does_io(name: str) -> None:
    assert [one for one in imported(UTILS / name) if does_io(one)] != []
