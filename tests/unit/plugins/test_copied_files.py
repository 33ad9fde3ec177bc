"""Programs that roles install beside files of module_utils get all of those that they import."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
UTILS = ROOT / "plugins" / "module_utils"


def imported(path: Path, package: str) -> set[str]:
    """Return the names of the files of the package that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom):
            continue
        module = node.module or ""
        if node.level == 1 or module == package or module.startswith(f"{package}."):
            rest = module.removeprefix(package).removeprefix(".")
            found |= {rest} if rest else {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize(
    ("role", "variable", "package"),
    [
        ("mig", "__mig_restore_files", "partitions"),
        ("monitoring", "__monitoring_files", "metrics"),
        ("nvidia_container", "__nvidia_container_files", "gpus"),
        ("shared_home", "__shared_home_files", "homes"),
    ],
)
def test_nothing_is_missing_or_too_much(role: str, variable: str, package: str) -> None:
    program, *listed = yaml.safe_load((ROOT / "roles" / role / "vars" / "main.yml").read_text())[variable]
    needed: set[str] = set()
    waiting = imported(ROOT / "roles" / role / "files" / program, package)
    while waiting:
        name = waiting.pop()
        needed.add(name)
        waiting |= imported(UTILS / f"{name}.py", package) - needed
    assert sorted(listed) == sorted(f"{package}/{name}.py" for name in needed)
