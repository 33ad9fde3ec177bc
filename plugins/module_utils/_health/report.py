# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings as text for people, as JSON, and as metrics for Prometheus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from .finding import CRITICAL, OK, ORDER, SKIPPED, UNKNOWN, WARNING, Finding, worst

# Exit statuses, which are those of the monitoring-plugins project ("Plugin Return Codes"), and values of the
# metrics.
CODES = {OK: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3}


def summary(findings: Sequence[Finding]) -> str:
    """Return the overall status and its reason in one line."""
    status = worst(findings)
    bad = sorted(
        (one for one in findings if one.status not in (OK, SKIPPED)),
        key=lambda one: -ORDER.index(one.status),
    )
    if not bad:
        made = sum(one.status == OK for one in findings)
        return (
            f"{status.upper()}: {made} checks made" if made else f"{status.upper()}: no check could be made"
        )
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return f"{status.upper()}: {_where(bad[0])}{bad[0].check}: {bad[0].detail}{more}"


def text(findings: Sequence[Finding], everything: bool = False) -> str:
    """Return the summary and a line for each finding: for all of them, or for those that are not well."""
    shown = [one for one in findings if everything or one.status not in (OK, SKIPPED)]
    lines = [summary(findings)]
    for one in shown:
        advice = f" -> {f'{one.level}: ' if one.level else ''}{one.action}" if one.action else ""
        lines.append(f"{one.status:<8} {_where(one)}{one.check}: {one.detail}{advice}")
    return "\n".join(lines) + "\n"


def as_json(findings: Sequence[Finding]) -> str:
    """Return status, summary and findings as one JSON object."""
    return json.dumps(as_data(findings), indent=1) + "\n"


def as_data(findings: Sequence[Finding]) -> dict[str, object]:
    """Return status, summary and findings as plain data."""
    return {
        "status": worst(findings),
        "summary": summary(findings),
        "findings": [asdict(one) for one in findings],
    }


def verdicts(findings: Sequence[Finding], now: float) -> str:
    """Return the status of each GPU that has a UUID, for services that hand out GPUs.

    :arg now: when the GPUs were read, in seconds since 1970
    """
    gpus = {}
    for uuid in sorted({one.gpu for one in findings if one.gpu.startswith("GPU-")}):
        own = [one for one in findings if one.gpu == uuid]
        status = worst(own)
        why = next((f"{one.check}: {one.detail}" for one in own if one.status == status), "")
        gpus[uuid] = {"status": status, "reason": "" if status == OK else why}
    return json.dumps({"time": now, "gpus": gpus}, indent=1) + "\n"


def prometheus(findings: Sequence[Finding], now: float) -> str:
    """Return metrics in the text format of Prometheus.

    Args:
        now: when the GPUs were read, in seconds since 1970.
    """
    # Several errors in the log are findings of one check, and a series may be there only once.
    series: dict[tuple[str, str], str] = {}
    for one in findings:
        if one.status != SKIPPED:
            key = (one.check, one.gpu)
            series[key] = max(series.get(key, OK), one.status, key=ORDER.index)
    codes = ", ".join(f"{code} {status}" for status, code in CODES.items())
    lines = [
        f"# HELP gpufarm_health_check Status of one check of a GPU, or of the machine ({codes}).",
        "# TYPE gpufarm_health_check gauge",
        *(
            f'gpufarm_health_check{{check="{_label(check)}",gpu="{_label(gpu)}"}} {CODES[status]}'
            for (check, gpu), status in sorted(series.items())
        ),
        f"# HELP gpufarm_health_status Status of the worst check ({codes}).",
        "# TYPE gpufarm_health_status gauge",
        f"gpufarm_health_status {CODES[worst(findings)]}",
        "# HELP gpufarm_health_last_run_timestamp_seconds When the checks were made.",
        "# TYPE gpufarm_health_last_run_timestamp_seconds gauge",
        f"gpufarm_health_last_run_timestamp_seconds {now:.0f}",
    ]
    return "\n".join(lines) + "\n"


def _where(finding: Finding) -> str:
    return f"{finding.gpu} " if finding.gpu else ""


def _label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
