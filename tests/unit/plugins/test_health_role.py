"""Files and texts of the role gpu_health match the engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import plan

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles" / "gpu_health"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [({"expected_gpus": 2}, ""), ({"thresholds": {"heat": 1}}, "There is no threshold 'heat'")],
)
def test_the_plan_tells_what_is_wrong(settings: dict[str, object], problem: str) -> None:
    told = plan(settings)["problems"]
    assert bool(told) == bool(problem) and all(one.startswith(problem) for one in told)


def test_the_command_reads_its_own_settings_alone() -> None:
    given = {"interval": 60, "textfile": "/x.prom", "call_timeout": 30}
    assert plan(given)["settings"] == {"call_timeout": 30, "textfile": "/x.prom"}
