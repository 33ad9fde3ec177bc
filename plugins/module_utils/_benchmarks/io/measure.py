# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measurements by a module: of what is missing or asked for, one run at a time, and kept in a file."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..._host.io.files import replace_file
from ..neighbours import neighbours
from ..part import NotMeasured, Part
from ..results import PATH, Results, parse
from .run import busy

# Options of the modules that measure; documented in the fragment benchmark.
OPTIONS = {
    "results": {"type": "path", "default": PATH},
    "measure": {"type": "str", "choices": ["missing", "again", "baseline"], "default": "missing"},
}


def measure(module: AnsibleModule, parts: Sequence[Part]) -> None:
    """Measure what is to be measured, keep it, and end the module.

    A part that cannot be measured does not keep the others from it, and the module fails in the end.

    Args:
        module: with `OPTIONS`.
        parts: of the machine.
    """
    path = Path(module.params["results"])
    with nullcontext() if module.check_mode else _alone(module, path):
        _measure(module, parts, path)


def _known(module: AnsibleModule, path: Path) -> Results:
    """Return the results of earlier runs."""
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Results()
    except (OSError, ValueError) as error:
        return module.fail_json(msg=f"{path} cannot be read: {error}; remove it to measure anew.")


@contextmanager
def _alone(module: AnsibleModule, path: Path) -> Iterator[None]:
    """Hold the lock of the results, so that nobody else measures at the same time."""
    try:
        descriptor = os.open(
            path.with_name(f".{path.name}.lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600
        )
    except OSError as error:
        module.fail_json(msg=f"{path} cannot be locked: {error.strerror}.")
    with os.fdopen(descriptor):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            module.fail_json(msg="The machine is measured by another run; wait until it has ended.")
        yield


def _measure(module: AnsibleModule, parts: Sequence[Part], path: Path) -> None:
    results = _known(module, path)
    how = module.params["measure"]
    wanted = [one for one in parts if how != "missing" or not results.has(one.prefix, one.end)]
    failures = []
    if wanted and not module.check_mode:
        if others := busy():
            module.fail_json(msg=f"The machine runs {others}.")
        for part in wanted:
            try:
                values = part.measure()
            except NotMeasured as error:
                failures.append(str(error))
                continue
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            results = results.with_values(values, now, anew=how == "baseline", end=part.end)
            _write(module, path, results)
    told = {
        "changed": len(failures) < len(wanted),
        "measured": bool(wanted),
        "values": results.values,
        "worse": results.sentences(),
        "links": neighbours(results),
    }
    if failures:
        module.fail_json(msg=" ".join(failures), **told)
    module.exit_json(**told)


def _write(module: AnsibleModule, path: Path, results: Results) -> None:
    """Keep the results."""
    os.umask(0o022)
    try:
        replace_file(path, json.dumps(asdict(results), indent=2, sort_keys=True) + "\n", 0o644)
    except OSError as error:
        module.fail_json(msg=f"{path} cannot be written: {error.strerror}.")
