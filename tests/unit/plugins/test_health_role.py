"""What the role gpu_health ships and says is what the engine has."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.filter.health_settings_problem import FilterModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import THRESHOLDS
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import CHECKS

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles" / "gpu_health"


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
