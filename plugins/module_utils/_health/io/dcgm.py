# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health findings of NVIDIA's Data Center GPU Manager (DCGM), where it is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..._dcgm.engine import HOST, SOCKET
from ..finding import CRITICAL, OK, SKIPPED, UNKNOWN, WARNING, Finding

HEALTH = "NVIDIA DCGM, dcgmi health"
DIAG = "NVIDIA DCGM, dcgmi diag"
HEALTH_TIMEOUT = 30  # seconds
# Levels of dcgmi diag and the seconds that each may take; the DCGM user guide gives seconds, 2, 15 and 60
# to 90 minutes.
DIAG_TIMEOUTS = {1: 120, 2: 600, 3: 3600, 4: 10800}
# The answer of dcgmi to a check when nobody has asked it to watch.
NOT_WATCHING = "watches not enabled"
# dcgm_errors.h, dcgmErrorSeverity_t: a wrong setting, not a fault of the hardware
SEVERITY_CONFIG = 5
_HEALTH_STATUS = {"Healthy": OK, "Warning": WARNING, "Failure": CRITICAL}


def ask(diag_level: int = 0) -> list[Finding]:
    """Return what DCGM finds.

    Args:
        diag_level: level of the active diagnostic, 0 for none; it disturbs programs that use the GPUs.
    """
    program = shutil.which("dcgmi")
    if program is None:
        return [Finding("dcgm_health", SKIPPED, "DCGM is not installed.", source=HEALTH)]
    # Elsewhere dcgmi knows where the host engine is.
    where = ("--host", HOST) if Path(SOCKET).is_socket() else ()
    health = (program, "health", *where, "--check", "--json")
    findings = [_run("dcgm_health", parse_health, HEALTH_TIMEOUT, *health)]
    if diag_level:
        diagnostic = (program, "diag", *where, "--run", str(diag_level), "--json")
        findings.append(_run("dcgm_diag", parse_diag, DIAG_TIMEOUTS[diag_level], *diagnostic))
    return findings


def parse_health(output: str) -> Finding:
    """Read the answer of `dcgmi health --check --json`.

    Raises:
        ValueError: when it is none.
    """
    body = json.loads(output)["body"]
    overall = _value(body.pop("Overall Health"))
    status = _HEALTH_STATUS.get(overall, UNKNOWN)
    problems = sorted(set(_leaves(body))) if status != OK else []
    return Finding(
        "dcgm_health",
        status,
        f"DCGM says: {overall}" + (f" ({'; '.join(problems)})." if problems else "."),
        "" if status == OK else "drain the machine and run dcgmi diag",
        HEALTH,
    )


def parse_diag(output: str) -> Finding:
    """Read the answer of `dcgmi diag --json`.

    Raises:
        ValueError: when it is none.
    """
    report = json.loads(output)["DCGM Diagnostic"]
    failed, warned = [], []
    for category in report["test_categories"]:
        for test in category["tests"]:
            for result in test["results"]:
                warnings = [one for one in result.get("warnings", ()) if isinstance(one, dict)]
                settings = bool(warnings) and all(
                    one.get("error_severity") == SEVERITY_CONFIG for one in warnings
                )
                if result["status"] == "Fail" and not settings:
                    failed.append(test["name"])
                elif result["status"] in ("Fail", "Warn"):
                    warned.append(test["name"])
    status = CRITICAL if failed else WARNING if warned else OK
    names = sorted(set(failed or warned))
    return Finding(
        "dcgm_diag",
        status,
        f"The diagnostic {'failed' if failed else 'warns'} in: {', '.join(names)}."
        if names
        else "All tests passed.",
        "" if status == OK else "drain the machine and read the report of dcgmi diag",
        DIAG,
        value=names,
    )


def _run(check: str, parse: Any, timeout: float, *command: str) -> Finding:
    source = HEALTH if check == "dcgm_health" else DIAG
    words = " ".join(("dcgmi", *command[1:]))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return Finding(
            check, CRITICAL, f"'{words}' hangs: no answer in {timeout:g} s.", "restart DCGM", source
        )
    try:
        return parse(done.stdout)
    except (ValueError, KeyError, TypeError, AttributeError):
        answer = (done.stdout + done.stderr).strip() or f"exit status {done.returncode}"
        if NOT_WATCHING in answer:
            watch = words.replace("--check --json", "--set a")
            return Finding(check, SKIPPED, f"DCGM does not watch; '{watch}' makes it.", source=source)
        return Finding(check, UNKNOWN, f"'{words}' gives no answer: {answer}", "repair DCGM", source)


def _value(node: Any) -> str:
    """Return the value of a node of dcgmi's tree, which is an object when it has children."""
    return str(node.get("value", "")) if isinstance(node, dict) else str(node)


def _leaves(node: Any, path: str = "") -> Iterator[str]:
    """Yield "GPU 0 Errors Memory system: Warning" for what has a value and nothing below it."""
    children = node.get("children", {}) if "value" in node or "children" in node else node
    if not children:
        yield f"{path.strip()}: {_value(node)}"
    for name, child in children.items():
        yield from _leaves(child if isinstance(child, dict) else {"value": child}, f"{path} {name}")
