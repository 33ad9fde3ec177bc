"""What the role gpu_health ships and says is what the engine has."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.filter.health_settings_problem import FilterModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._health import THRESHOLDS
from ansible_collections.gpufarm.cluster.plugins.module_utils._health_machine import CHECKS

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles" / "gpu_health"
UTILS = ROOT / "plugins" / "module_utils"


def imported(name: str) -> set[str]:
    """Return the files of module_utils that one of them needs, itself included."""
    needed, open_files = set(), {name}
    while open_files:
        file = open_files.pop()
        needed.add(file)
        for node in ast.walk(ast.parse((UTILS / file).read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                names = [node.module] if node.module else [one.name for one in node.names]
                open_files |= {f"{one}.py" for one in names} - needed
    return needed


def test_the_role_ships_what_the_command_imports_and_no_more() -> None:
    variables = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
    assert set(variables["__gpu_health_files"]) == imported("_health_command.py")


def test_the_readme_lists_the_thresholds_that_hold() -> None:
    readme = (ROLE / "README.md").read_text()
    for name, threshold in THRESHOLDS.items():
        assert f"| `{name}` | {threshold.default:g} |" in readme.replace("50000000", "5e+07"), name


def test_the_readme_lists_every_check() -> None:
    readme = (ROLE / "README.md").read_text()
    assert [check for check in CHECKS if f"| `{check}` |" not in readme] == []


@pytest.mark.parametrize(
    ("settings", "problem"),
    [({"expected_gpus": 2}, ""), ({"thresholds": {"heat": 1}}, "There is no threshold 'heat'")],
)
def test_the_filter_tells_what_is_wrong(settings: dict[str, object], problem: str) -> None:
    told = FilterModule().filters()["health_settings_problem"](settings)
    assert told.startswith(problem) and bool(told) == bool(problem)
