# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of this machine, as far as they can be measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from ..._mig.io.holders import mark
from ..._nvml.gpu import Gpu, Survey
from ..._nvml.io.guard import messages
from ..._nvml.io.guarded import Calls, Guarded
from ..._nvml.io.session import session
from .. import nccl
from ..part import NotMeasured, Part
from . import cuda
from .user import own_folder, run_as

# Seconds for a GPU or a link: copies of some GB take one at most, and the driver begins within some.
LIMIT = 60.0
# Seconds for all GPUs together, which send a GiB some dozen times over links that may be slow.
NCCL_LIMIT = 600.0

Values = dict[str, float]


def parts(nccl_tests: str = "") -> list[Part]:
    """Return a part for each GPU, then for each link between two, and for all GPUs together.

    GPUs in MIG mode are left out, as CUDA sees only one of their slices, and links to GPUs that are in use or
    were not measured.

    Args:
        nccl_tests: folder of nccl-tests, which measure the GPUs together; empty to leave that out.

    Raises:
        GpuError: NVML does not answer, or it is not known who holds a GPU without using it at the moment.
    """
    survey = Guarded().ask(_survey)
    whole = mark(gpu for gpu in survey.gpus if not gpu.mig_enabled)
    free = [gpu for gpu in whole if not gpu.processes]
    failed: set[str] = set()
    return [
        *(Part(f"gpu.{one.index}.", one.uuid, partial(_refuse, str(one))) for one in survey.unreadable),
        *(Part(f"gpu.{gpu.index}.", gpu.uuid, partial(_gpu, gpu, failed)) for gpu in whole),
        *(_link(one, other, failed) for one in free for other in free if one is not other),
        *([_together(nccl_tests, whole)] if nccl_tests and len(whole) > 1 else []),
    ]


def _survey(calls: Calls) -> Survey:
    with session(calls) as nvml:
        return nvml.survey()


def _gpu(gpu: Gpu, failed: set[str]) -> Values:
    _refuse_in_use(gpu)
    try:
        return _in_child(f"gpu.{gpu.index}.", f"GPU {gpu.index}", partial(cuda.gpu, gpu.uuid))
    except NotMeasured:
        failed.add(gpu.uuid)
        raise


def _link(one: Gpu, other: Gpu, failed: set[str]) -> Part:
    prefix = f"gpu.{one.index}.to.{other.index}."

    def measure() -> Values:
        if failed & {one.uuid, other.uuid}:
            return {}
        name = f"The link from GPU {one.index} to GPU {other.index}"
        return _in_child(prefix, name, partial(cuda.link, one.uuid, other.uuid))

    return Part(prefix, f"{one.uuid} {other.uuid}", measure)


def _together(folder: str, gpus: Sequence[Gpu]) -> Part:
    uuids = [gpu.uuid for gpu in gpus]

    def measure() -> Values:
        for gpu in gpus:
            _refuse_in_use(gpu)
        try:
            with own_folder() as own:
                environment = {"CUDA_VISIBLE_DEVICES": ",".join(uuids)}
                printed = run_as(own, environment, nccl.words(folder, len(gpus)), NCCL_LIMIT)
            return {f"nccl.{name}": value for name, value in nccl.values(printed, len(gpus)).items()}
        except ValueError as error:
            raise NotMeasured(f"The GPUs together were not measured: {error}.") from error

    return Part("nccl.", " ".join(uuids), measure)


def _in_child(prefix: str, name: str, measure: Callable[[], Values]) -> Values:
    def work(send: Callable[[dict[str, Any]], None]) -> None:
        try:
            send({"values": measure()})
        except cuda.CudaError as error:
            send({"failed": str(error)})

    reason = ""
    for message in messages(work, LIMIT):
        if "values" in message:
            return {prefix + key: value for key, value in message["values"].items()}
        reason = message.get("failed", reason)
        if "ended" in message:
            reason = f"the measurement did not end{message['ended']}"
    raise NotMeasured(f"{name} was not measured: {reason}.")


def _refuse_in_use(gpu: Gpu) -> None:
    if gpu.processes:
        users = ", ".join(map(str, gpu.processes))
        _refuse(f"GPU {gpu.index} is used by {users}; wait until it is free, and run again.")


def _refuse(reason: str) -> NoReturn:
    raise NotMeasured(reason)
