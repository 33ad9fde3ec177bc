# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts of ``gpufarm-health`` (role gpu_health) on GPUs, from the file of its timer.

A verdict that is missing or too old says nothing: such a GPU is given out as any.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path("/run/gpufarm/health/verdicts.json")  # gone after a boot, as counters and errors are
MAX_AGE = 3600  # seconds; the timer comes every five minutes unless told otherwise
AHEAD = 60  # seconds by which a clock that is set right may go back


@dataclass(frozen=True)
class Verdicts:
    """The verdicts.

    Attributes:
        critical: reasons why GPUs are not fit for work, by the GPUs' UUIDs.
        unknown: why nothing is known of any GPU; empty when there are verdicts.
    """

    critical: Mapping[str, str] = field(default_factory=dict)
    unknown: str = ""


def read(file: Path = FILE, owner: int = 0, clock: Callable[[], float] = time.time) -> Verdicts:
    """Return the verdicts.

    Args:
        file: where they are.
        owner: number of the only account that may have written them.
        clock: seconds since the epoch.
    """
    try:
        content = json.loads(_content(file, owner))
        age = clock() - float(content["time"])
        if not -AHEAD <= age <= MAX_AGE:
            return Verdicts(unknown=f"{file} is {age / 60:.0f} minutes old; look at gpufarm-health.timer")
        gpus = content["gpus"].items()
        return Verdicts({uuid: str(gpu["reason"]) for uuid, gpu in gpus if gpu["status"] == "critical"})
    except FileNotFoundError:
        return Verdicts(unknown=f"{file} is missing; set up the role gpu_health")
    except PermissionError as error:
        return Verdicts(unknown=str(error))
    except OSError as error:
        return Verdicts(unknown=f"{file} cannot be read: {error.strerror}")
    except (AttributeError, KeyError, TypeError, ValueError):
        return Verdicts(unknown=f"{file} is damaged")


def _content(file: Path, owner: int) -> str:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, encoding="utf-8") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner or status.st_mode & 0o022:
            raise PermissionError(f"{file} is no file that only root can write")
        return stream.read()
