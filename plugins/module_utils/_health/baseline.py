# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State of earlier runs: the counters of the last recorded run, and whether the machine is drained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from .finding import HealthError

# Runs that follow one another faster count as one, or a single error would make a high rate per minute.
SHORTEST_INTERVAL = 60.0


@dataclass(frozen=True)
class Hang:
    """A process that waits for the driver and could not be ended.

    `process` names it as `_nvml.io.guard` does, `call` is what it waits for, `gpu` has the GPU's index, UUID,
    name and PCI address, and is empty when the call is about none.
    """

    process: str
    call: str
    gpu: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Baseline:
    """The state that is kept between runs.

    `boot_id` and `time` (seconds since the boot) are those of the recorded run, `counters` its counters by
    GPU UUID and name. `throttled` counts the recorded runs in a row that found a GPU throttled. Events up to
    `acknowledged` (microseconds since the boot) were dealt with by the administrator. `contained` are the PCI
    addresses of GPUs with a contained memory error. `drained` outlives boots.
    """

    boot_id: str = ""
    time: float = 0.0
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    throttled: Mapping[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    drained: bool = False
    hung: list[Hang] = field(default_factory=list)
    contained: list[str] = field(default_factory=list)

    def of_boot(self, boot_id: str) -> Baseline:
        """Return what of it holds in a boot: counters start anew with each."""
        return self if boot_id == self.boot_id else Baseline(boot_id=boot_id, drained=self.drained)

    def growth(self, uuid: str, name: str, value: int) -> int | None:
        """Return by how much a counter grew since the recorded run; None when it was not recorded.

        A counter that became smaller was set back in between (driver reloaded, GPU reset), so all of it is
        new.
        """
        before = self.counters.get(uuid, {}).get(name)
        if before is None:
            return None
        return value - before if value >= before else value

    def per_minute(self, uuid: str, name: str, value: int, now: float) -> float | None:
        """Return how fast a counter grew, per minute; None as for `growth`."""
        growth = self.growth(uuid, name, value)
        return None if growth is None else growth * 60 / max(now - self.time, SHORTEST_INTERVAL)

    def record(
        self, now: float, counters: Mapping[str, Mapping[str, int]], throttled: Mapping[str, bool]
    ) -> Baseline:
        """Return the baseline after a run at `now` (seconds since the boot).

        Args:
            counters: by GPU UUID and name, what was read.
            throttled: by GPU UUID, whether its clocks were lowered by heat or power.
        """
        if self.counters and now - self.time < SHORTEST_INTERVAL:
            return self
        runs = {uuid: self.throttled.get(uuid, 0) + 1 if now_is else 0 for uuid, now_is in throttled.items()}
        return replace(
            self, time=now, counters={**self.counters, **counters}, throttled={**self.throttled, **runs}
        )


def dump(baseline: Baseline) -> str:
    """Return a baseline as the text of its file."""
    return json.dumps(asdict(baseline), indent=1, sort_keys=True) + "\n"


def load(text: str) -> Baseline:
    """Read a baseline from the text of its file; names that another version of it had are passed over.

    Raises:
        HealthError: when the text is not one that `dump` makes.
    """
    empty = Baseline()
    try:
        data: dict[str, Any] = json.loads(text)
        known = {one.name: data[one.name] for one in fields(Baseline) if one.name in data}
        for name, value in known.items():
            if not isinstance(value, type(getattr(empty, name))):
                raise ValueError(f"'{name}' is {value!r}")
        known["hung"] = [Hang(**one) for one in known.get("hung", ())]
    except (ValueError, TypeError) as error:
        raise HealthError(
            f"The file with the state of earlier health checks is damaged ({error}): remove it to start anew."
        ) from error
    return Baseline(**known)
