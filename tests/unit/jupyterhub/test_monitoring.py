"""The hub's page of use shows the answers of Prometheus."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from gpufarm_hub.web import monitoring

TOLD = {"summary": "gpu1: the GPU is hot.", "next_step": "Check the cooling."}


def alert(severity: str, state: str) -> dict[str, object]:
    """An alert as Prometheus tells it (HTTP API, /api/v1/alerts)."""
    return {
        "labels": {"alertname": "GpuTemperature", "severity": severity},
        "annotations": TOLD,
        "state": state,
        "value": "1",
    }


def test_alerts_that_fire_are_shown_with_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.json"
    page.write_text(json.dumps({"url": "https://p", "certificate": "c", "key": "k", "plots": []}))
    alerts = [alert("warning", "firing"), alert("critical", "pending"), alert("critical", "firing")]
    asked = []

    async def fetch(url: str, **_how: object) -> SimpleNamespace:
        asked.append(url)
        return SimpleNamespace(body=json.dumps({"data": {"alerts": alerts}}))

    monkeypatch.setattr(monitoring, "AsyncHTTPClient", lambda: SimpleNamespace(fetch=fetch))
    found = asyncio.run(monitoring.Prometheus(page).alerts())
    assert found == [{"severity": severity, **TOLD} for severity in ("critical", "warning")]
    assert asked == ["https://p/api/v1/alerts?"]


def test_a_plot_of_what_a_site_has_not_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plots = [
        {"title": "Slices", "unit": "count", "query": "slices", "label": "all"},
        {"title": "Jobs of Slurm", "unit": "count", "query": "jobs", "label": "all", "empty": ""},
    ]
    page = tmp_path / "page.json"
    page.write_text(json.dumps({"url": "https://p", "certificate": "c", "key": "k", "plots": plots}))
    jobs: list[object] = []

    async def fetch(url: str, **_how: object) -> SimpleNamespace:
        return SimpleNamespace(body=json.dumps({"data": {"result": jobs if "=jobs&" in url else []}}))

    monkeypatch.setattr(monitoring, "AsyncHTTPClient", lambda: SimpleNamespace(fetch=fetch))
    prometheus = monitoring.Prometheus(page)
    titles = [one.title for one in asyncio.run(monitoring.drawings(prometheus, "hour", 7200.0))]
    assert titles == ["Slices"]
    jobs.append({"metric": {}, "values": [[7140, "3"], [7200, "4"]]})
    titles = [one.title for one in asyncio.run(monitoring.drawings(prometheus, "hour", 7200.0))]
    assert titles == ["Slices", "Jobs of Slurm"]
