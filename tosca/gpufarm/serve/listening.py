# SPDX-License-Identifier: GPL-3.0-or-later
"""Has the output of tasks read when users ask for it, in a process of its own each time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from gpufarm.serve.child import answered
from gpufarm.serve.consoles import LONGEST
from gpufarm.serve.database import Unavailable
from gpufarm.serve.service import Service

LOG = logging.getLogger("gpufarm.serve")
# Seconds between two looks whether a reading is asked for.
PAUSE = 1.0


class Listening:
    """The readings that a worker carries out, one after the other."""

    def __init__(self, service: Service, program: Sequence[str]) -> None:
        """Prepare.

        Args:
            service: with the settings and the database.
            program: that carries out an attempt.
        """
        self._consoles = service.consoles
        self._settings = service.settings
        self._program = program

    def run(self, stop: threading.Event) -> None:
        """Read whenever somebody has asked for it.

        Args:
            stop: ends it, and a reading that is under way.
        """
        while not stop.is_set():
            try:
                taken = self._consoles.take()
                if taken:
                    self._read(*taken, stop)
                    continue
            except Unavailable as error:
                LOG.error("%s", error.message)
            except Exception:  # the other readings go on
                LOG.exception("output of tasks cannot be read")
            stop.wait(PAUSE)

    def _read(self, uuid: str, begun: float, stop: threading.Event) -> None:
        order = {"kind": "CONSOLE", "name": uuid, **self._settings.order()}
        told = answered(self._program, order, stop, LONGEST)
        if told["well"]:
            self._keep(uuid, begun, told)
        elif stop.is_set():
            self._consoles.release(uuid, begun)
        else:
            LOG.error("the output of %s: %s", uuid, told["reason"])
            self._consoles.failed(uuid, begun, told["reason"])

    def _keep(self, uuid: str, begun: float, told: dict[str, Any]) -> None:
        try:
            self._consoles.keep(uuid, begun, told)
        except Unavailable:
            raise
        except Exception:  # the same answer would come again and again
            LOG.exception("the output of %s cannot be kept", uuid)
            why = "the answer cannot be kept; the operator of this service finds the reason in the log"
            self._consoles.failed(uuid, begun, why)
