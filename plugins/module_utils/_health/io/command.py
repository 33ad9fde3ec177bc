# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command gpufarm-health."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..._cordon.cordon import HEALTH, cordon
from ..._cordon.io import command as cordon_command
from ..._cordon.io import folder as cordons
from ..._host.io.files import replace_file
from ..._nvml.gpu import GpuError
from .. import report
from ..baseline import Baseline
from ..finding import (
    CRITICAL,
    OK,
    ORDER,
    UNKNOWN,
    WARNING,
    Finding,
    HealthError,
    Settings,
    parse_settings,
    worst,
)
from ..machine import CHECKS, evaluate, next_baseline
from . import store
from .dcgm import DIAG_TIMEOUTS
from .read import read_machine

SETTINGS = Path("/etc/gpufarm/health.json")
HOOK_TIMEOUT = 60  # seconds

HELP = """
Tell whether the GPUs of this machine are well: what NVML, the kernel's log and, where it is installed, DCGM
say. Nothing is changed on the GPUs, and a driver that hangs does not hang the command.

  gpufarm-health                          what is wrong, in words
  gpufarm-health --all                    every check, also those that are well or could not be made
  gpufarm-health --format json            for programs; prometheus for metrics
  gpufarm-health --fail-from critical     as Slurm's Prolog or HealthCheckProgram: a warning drains no node
  gpufarm-health --idle                   as Slurm's Epilog: programs and memory that a job left behind, too
  gpufarm-health --acknowledge            the errors in the kernel's log were dealt with, by a reset say
  gpufarm-health --record                 what the timer runs: see below
  gpufarm-health cordons                  the GPUs and slices that are given to nobody, and why
  gpufarm-health cordon GPU --reason ...  give a GPU or slice to nobody, by the UUID that nvidia-smi -L shows
  gpufarm-health uncordon GPU             end that, after a repair

Thresholds, disabled checks and hooks are in /etc/gpufarm/health.json, which the role gpu_health writes.
"""
CODES = """
exit statuses (those of Nagios plugins):
  0  all is well, or nothing is as bad as --fail-from
  1  warning: to be looked at, fit for work
  2  critical: not fit for work
  3  unknown: something could not be checked, or a hook failed

With --record, counters are stored as the baseline for the next run, metrics are written for the collector,
GPUs that must not be used are cordoned, and the drain command is run once when the machine must not be used,
the resume command once when it may be again. Only uncordon ends a cordon. The drain and the resume command
get GPUFARM_HEALTH_STATUS and GPUFARM_HEALTH_SUMMARY in their environment. The next run repeats a command that
failed, and after a power cut maybe one that succeeded.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        if options.command:
            # A run that began earlier ends first, so that it does not undo what the administrator does now.
            with store.lock() if options.command != "cordons" else contextlib.nullcontext():
                return cordon_command.run(options)
        settings = _settings(options.settings)
        if options.acknowledge:
            return _acknowledge(settings)
        if options.record:
            with store.lock():
                findings, problem = _record(settings, options)
        else:
            findings, problem = _check(settings, options, store.read())[0], ""
    except (HealthError, GpuError) as error:
        sys.stderr.write(f"UNKNOWN: {error}\n")
        return report.CODES[UNKNOWN]
    except PermissionError as error:
        sys.stderr.write(f"UNKNOWN: {error.filename}: {error.strerror}: run the command as root.\n")
        return report.CODES[UNKNOWN]
    except OSError as error:
        sys.stderr.write(f"UNKNOWN: {error.filename}: {error.strerror}: repair it, and run again.\n")
        return report.CODES[UNKNOWN]
    sys.stdout.write(_format(findings, options))
    status = worst(findings)
    if problem:
        sys.stderr.write(f"{problem}\n")
    if ORDER.index(status) < ORDER.index(options.fail_from):
        status = OK
    return report.CODES[UNKNOWN if problem and status != CRITICAL else status]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpufarm-health",
        description=HELP,
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--format", choices=("text", "json", "prometheus"), default="text", help="default: text"
    )
    parser.add_argument("--all", action="store_true", help="in text, show every check")
    parser.add_argument(
        "--fail-from",
        choices=(WARNING, UNKNOWN, CRITICAL),
        default=WARNING,
        help="the mildest status that makes the exit status differ from 0 (default: warning)",
    )
    parser.add_argument("--idle", action="store_true", help="also check that no program uses a GPU")
    parser.add_argument(
        "--dcgm-diag",
        type=int,
        choices=sorted(DIAG_TIMEOUTS),
        default=0,
        metavar="LEVEL",
        help="run the active diagnostic of DCGM, which disturbs programs: 1 takes seconds, 4 hours",
    )
    parser.add_argument("--settings", type=Path, default=SETTINGS, help=f"default: {SETTINGS}")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--record", action="store_true", help="store the baseline, write metrics, run hooks")
    action.add_argument(
        "--acknowledge", action="store_true", help="pass over the errors logged so far in this boot"
    )
    cordon_command.add(parser)
    return parser


def _settings(file: Path) -> Settings:
    try:
        return parse_settings(json.loads(file.read_text(encoding="utf-8")), CHECKS)
    except FileNotFoundError:
        if file == SETTINGS:
            return Settings()
        raise HealthError(f"There is no settings file {file}: check its name.") from None
    except ValueError as error:
        raise HealthError(f"The settings file {file} is not JSON ({error}): correct it.") from error


def _check(
    settings: Settings, options: argparse.Namespace, before: Baseline
) -> tuple[list[Finding], Baseline]:
    machine = read_machine(settings, before, options.dcgm_diag)
    return evaluate(machine, settings, before, options.idle), next_baseline(machine, before)


def _record(settings: Settings, options: argparse.Namespace) -> tuple[list[Finding], str]:
    """Check and act; return the findings and what went wrong with acting, empty when nothing did."""
    findings, after = _check(settings, options, store.read())
    store.write_verdicts(report.verdicts(findings, time.time()))
    problems = [_cordon(findings)] if settings.cordon else []
    if settings.textfile:
        try:
            metrics = report.prometheus(findings, time.time())
            replace_file(Path(settings.textfile), metrics, 0o644)
        except OSError as error:
            problems.append(
                f"The metrics cannot be written to {settings.textfile} ({error.strerror}): check its folder."
            )
    try:
        after = _act(settings, findings, after)
    except HealthError as error:
        problems.append(str(error))
    store.write(after)
    return findings, " ".join(filter(None, problems))


def _cordon(findings: Sequence[Finding]) -> str:
    """Cordon the GPUs that must not be used; return what went wrong with that, empty when nothing did."""
    there = cordons.read()
    new = {one.gpu: one for one in reversed(findings) if one.forbids_gpu and one.gpu not in there}
    for gpu, finding in new.items():
        if not gpu.startswith("GPU-"):  # it does not tell its UUID, so nobody can be given it
            continue
        reason = f"{finding.check}: {finding.detail}"
        try:
            cordons.write(cordon(gpu, reason, cordon_command.now(), HEALTH))
        except OSError as error:
            return f"{gpu} cannot be cordoned in {cordons.FOLDER} ({error.strerror}): repair the folder."
    return ""


def _act(settings: Settings, findings: Sequence[Finding], baseline: Baseline) -> Baseline:
    """Run the hook that a change of health asks for."""
    # Cordons take single GPUs out of service; without them the machine is all that can be.
    drains = any(one.forbids_machine if settings.cordon else one.status == CRITICAL for one in findings)
    if drains and not baseline.drained and settings.drain_command:
        _hook(settings.drain_command, findings)
        return replace(baseline, drained=True)
    # An unknown status does not end the draining.
    if not drains and baseline.drained and not any(one.status == UNKNOWN for one in findings):
        if settings.resume_command:
            _hook(settings.resume_command, findings)
        return replace(baseline, drained=False)
    return baseline


def _hook(command: Sequence[str], findings: Sequence[Finding]) -> None:
    environment = {
        **os.environ,
        "GPUFARM_HEALTH_STATUS": worst(findings),
        "GPUFARM_HEALTH_SUMMARY": report.summary(findings),
    }
    words = f"The hook '{' '.join(command)}'"
    try:
        done = subprocess.run(
            list(command), env=environment, capture_output=True, text=True, timeout=HOOK_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise HealthError(
            f"{words} did not end within {HOOK_TIMEOUT} s: the next run tries again."
        ) from error
    except OSError as error:
        raise HealthError(
            f"{words} cannot be run ({error.strerror}): correct the role's variable."
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise HealthError(f"{words} failed with code {done.returncode} ({said}): the next run tries again.")


def _acknowledge(settings: Settings) -> int:
    with store.lock():
        before = store.read()
        machine = read_machine(settings, before)
        baseline = before.of_boot(machine.boot_id)
        events = machine.events or ()
        latest = max((event.time for event in events), default=baseline.acknowledged)
        store.write(replace(baseline, acknowledged=latest))
    count = sum(event.time > baseline.acknowledged for event in events)
    sys.stdout.write(f"{count} logged error(s) acknowledged.\n")
    return 0


def _format(findings: Sequence[Finding], options: argparse.Namespace) -> str:
    if options.format == "json":
        return report.as_json(findings)
    if options.format == "prometheus":
        return report.prometheus(findings, time.time())
    return report.text(findings, options.all)
