# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to NVML, and changes, in guarded child processes: a GPU whose driver hangs holds up no other."""

from __future__ import annotations

import base64
import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..gpu import REPAIR, GpuError, Unreadable
from .guard import messages

Answer = TypeVar("Answer")
CALL_TIMEOUT = 30.0  # seconds
# Of the modules that talk to NVML; documented in the fragment nvml.call_timeout.
OPTION = {"call_timeout": {"type": "float", "default": CALL_TIMEOUT}}
# Beginnings of the names of calls that change a GPU.
WRITES = (
    "nvmlDeviceSet",
    "nvmlDeviceReset",
    "nvmlDeviceCreate",
    "nvmlGpuInstanceCreate",
    "nvmlGpuInstanceDestroy",
    "nvmlComputeInstanceDestroy",
)


def _ignore(*_arguments: Any) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Calls:
    """Calls to the driver: `report` is told of each before it is made, and `hung` has GPUs to leave alone.

    `report` gets the name of the call, the index of the GPU that it is about, or None, and the seconds that
    it may take, if these are others than usual. `identify` gets index, UUID and PCI address of a GPU.
    """

    report: Callable[..., None] = _ignore
    identify: Callable[[int, str, str], None] = _ignore
    hung: Mapping[int, Unreadable] = field(default_factory=dict)


class Guarded:
    """Asks NVML in child processes, and remembers the GPUs whose driver hung: they are not asked again."""

    def __init__(self, call_timeout: float = CALL_TIMEOUT) -> None:
        """`call_timeout` is in seconds, for one call.

        Raises:
            GpuError: when it is not above 0.
        """
        if call_timeout <= 0:
            raise GpuError("call_timeout is not above 0: give the seconds that one call to NVML may take.")
        self._timeout = call_timeout
        self._hung: dict[int, Unreadable] = {}

    def ask(self, question: Callable[[Calls], Answer]) -> Answer:
        """Return the answer to a question, which changes nothing; it is asked again without GPUs that hang.

        Raises:
            GpuError: when the question raises it, or the driver hangs in a call that is about no GPU.
        """
        while True:
            run = _Run(question, self._hung, self._timeout)
            if not run.hang:
                return run.answer()
            if run.index is None or run.index in self._hung:
                raise GpuError(f"{run.hang}{REPAIR}")
            uuid, address = run.identities.get(run.index, ("", ""))
            self._hung[run.index] = Unreadable(run.index, uuid, address, run.hang)

    def change(self, work: Callable[[Calls], Answer], partly: str) -> Answer:
        """Return the answer of work that may change GPUs; it is done once.

        Args:
            partly: a sentence for the message: what may be changed in part when a call does not return.

        Raises:
            GpuError: when the work raises it, or the driver hangs.
        """
        run = _Run(work, self._hung, self._timeout)
        if not run.hang:
            return run.answer()
        left = partly if run.wrote else "Nothing was changed."
        raise GpuError(f"{run.hang} {left}{REPAIR} Then run again.")


class _Run:
    """One child that was let work: its answer, or the call in which it hung or died."""

    def __init__(self, work: Callable[[Calls], Any], hung: Mapping[int, Unreadable], timeout: float) -> None:
        self.hang = ""
        self.index: int | None = None
        self.identities: dict[int, tuple[str, str]] = {}
        self.wrote = False
        self._result: dict[str, str] = {}
        call = "nvmlInit"
        for message in messages(lambda send: _work(send, work, hung), timeout):
            if "call" in message:
                call, self.index = message["call"], message["index"]
                self.wrote |= call.startswith(WRITES)
            elif "identity" in message:
                index, uuid, address = message["identity"]
                self.identities[index] = uuid, address
            elif "ended" in message:
                about = "" if self.index is None else f" of GPU {self.index}"
                stuck = message.get("stuck", "").partition(" ")[0]
                still = f"; process {stuck} still waits for it" if stuck else ""
                self.hang = f"{call}{about} did not return{message['ended']}{still}."
            elif "done" not in message:
                self._result = message

    def answer(self) -> Any:
        """Return what the work returned, or raise what it raised."""
        if "broken" in self._result:
            raise RuntimeError(self._result["broken"])
        found = pickle.loads(base64.b64decode(self._result["pickled"]))  # noqa: S301 - of our own child
        if isinstance(found, Exception):
            raise found
        return found


def _work(
    send: Callable[[dict[str, Any]], None], work: Callable[[Calls], Any], hung: Mapping[int, Unreadable]
) -> None:
    """Do the work and send its result; runs in the child."""

    def report(call: str, index: int | None = None, timeout: float | None = None) -> None:
        send({"call": call, "index": index, "timeout": timeout})

    def identify(index: int, uuid: str, address: str) -> None:
        send({"identity": (index, uuid, address)})

    report("nvmlInit")
    try:
        result = work(Calls(report, identify, hung))
    except (GpuError, OSError) as error:
        result = error
    except Exception:  # a mistake in the program: the parent tells of it as if it were its own
        send({"broken": traceback.format_exc()})
        return
    send({"pickled": base64.b64encode(pickle.dumps(result)).decode()})
