# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures GPUs with the driver's own library, so that no toolkit has to be installed.

Source of the functions: CUDA Driver API Reference; of the kernel: Parallel Thread Execution ISA 6.0.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

LIBRARY = "libcuda.so.1"
BYTES = 2**28  # of a buffer: larger than the caches of GPUs, and smaller than the smallest memory
REPEATS = 20  # copies that are timed together
ROUNDS = 3  # of which the fastest counts, as the first ones find the clocks low
PATTERN = 0x5A3C96E1
# Of the kernel: threads of a block, blocks for each multiprocessor, chains of a thread, operations of a chain
# in each round of the loop, and rounds. x becomes a * x + b; with a = -1 it is x again after two of them.
THREADS, BLOCKS, CHAINS, STEPS, LOOPS = 256, 16, 8, 16, 4096
FLOPS = 2  # of a fused multiply and add
# cuda.h
MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: for all GPUs
# Numbers at which the chains begin, and their sum; all of them and 3 minus them are exact.
STARTS = tuple(1 + chain / CHAINS for chain in range(CHAINS))
SUM = sum(STARTS)

_LOAD = "\n".join(
    f"mov.f32 %f{chain}, 0f{struct.pack('>f', start).hex().upper()};" for chain, start in enumerate(STARTS)
)
_STEP = "\n".join(f"fma.rn.f32 %f{chain}, %f{chain}, %a, %b;" for chain in range(CHAINS))
_SUM = "\n".join(f"add.f32 %f0, %f0, %f{chain};" for chain in range(1, CHAINS))
_NEWLINE = "\n"
KERNEL = f"""\
.version 6.0
.target sm_50
.address_size 64
.visible .entry chains(.param .u64 sums, .param .u32 loops, .param .f32 a, .param .f32 b)
{{
.reg .f32 %f<{CHAINS}>;
.reg .f32 %a, %b;
.reg .u32 %left, %block, %thread, %size;
.reg .u64 %sums, %place;
.reg .pred %more;
ld.param.u64 %sums, [sums];
ld.param.u32 %left, [loops];
ld.param.f32 %a, [a];
ld.param.f32 %b, [b];
{_LOAD}
again:
{_NEWLINE.join([_STEP] * STEPS)}
sub.u32 %left, %left, 1;
setp.ne.u32 %more, %left, 0;
@%more bra again;
{_SUM}
mov.u32 %block, %ctaid.x;
mov.u32 %thread, %tid.x;
mov.u32 %size, %ntid.x;
mad.lo.u32 %thread, %block, %size, %thread;
mul.wide.u32 %place, %thread, 4;
add.u64 %place, %place, %sums;
st.global.f32 [%place], %f0;
ret;
}}
"""


class CudaError(Exception):
    """A call to the driver failed, or a GPU computed wrongly; the text says which."""


class Cuda:
    """The driver's library, in a process that sees only some GPUs and measures nothing else.

    Args:
        uuids: of these GPUs. They have the numbers 0, 1 and so on in this order.

    Raises:
        CudaError: the library is not there, or does not see all of them.
    """

    def __init__(self, uuids: Sequence[str]) -> None:
        # Read when the library begins.
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(uuids)
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise CudaError(f"the driver's library for CUDA cannot be loaded ({error})") from error
        self.call("cuInit", 0)
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value != len(uuids):
            raise CudaError(f"CUDA sees {count.value} of {len(uuids)} GPUs")
        self._contexts: dict[int, ctypes.c_void_p] = {}

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            CudaError: it failed.
        """
        code = getattr(self._library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(code, ctypes.byref(text))
            raise CudaError(f"{name} answered: {(text.value or b'error %d' % code).decode()}")

    def context(self, number: int) -> ctypes.c_void_p:
        """Return the context of a GPU."""
        if number not in self._contexts:
            context = ctypes.c_void_p()
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
            self._contexts[number] = context
        return self._contexts[number]

    def use(self, number: int) -> None:
        """Let the next calls be about a GPU."""
        self.call("cuCtxSetCurrent", self.context(number))

    def multiprocessors(self, number: int) -> int:
        """Return how many multiprocessors a GPU has."""
        found = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(found), MULTIPROCESSORS, number)
        return found.value

    def memory(self, size: int) -> ctypes.c_uint64:
        """Return the address of so many bytes of the GPU's memory; they are free when the process ends."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def host_memory(self, size: int) -> ctypes.c_void_p:
        """Return the address of so many bytes of the machine's memory to which GPUs have direct access."""
        address = ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(size), PORTABLE)
        return address

    def seconds(self, work: Callable[[], None]) -> float:
        """Return the seconds that the GPU needs for work, at best."""
        start, end = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (start, end):
            self.call("cuEventCreate", ctypes.byref(event), 0)
        return min(self._timed(work, start, end) for _round in range(ROUNDS))

    def _timed(self, work: Callable[[], None], start: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        milliseconds = ctypes.c_float()
        self.call("cuEventRecord", start, None)
        work()
        self.call("cuEventRecord", end, None)
        self.call("cuEventSynchronize", end)
        self.call("cuEventElapsedTime", ctypes.byref(milliseconds), start, end)
        return milliseconds.value / 1000


def gpu(uuid: str) -> dict[str, float]:
    """Measure a GPU: its arithmetic, its memory, and its link to the machine.

    Call it in a process of its own, which then ends: that frees the GPU.

    Returns:
        `fp32_tflops`; `memory_gb_s`, read and written while one buffer is copied into another; and
        `to_gpu_gb_s` and `from_gpu_gb_s`, copies from and to the machine's memory.

    Raises:
        CudaError: it cannot be measured, or its results are wrong.
    """
    cuda = Cuda([uuid])
    cuda.use(0)
    one, other, host = _pattern(cuda), cuda.memory(BYTES), cuda.host_memory(BYTES)
    values = {
        "memory_gb_s": 2 * _copies(cuda, "cuMemcpyDtoDAsync_v2", other, one),
        "from_gpu_gb_s": _copies(cuda, "cuMemcpyDtoHAsync_v2", host, other),
        "to_gpu_gb_s": _copies(cuda, "cuMemcpyHtoDAsync_v2", other, host),
    }
    _check(cuda, host, other)
    return {**values, "fp32_tflops": _arithmetic(cuda)}


def link(one: str, other: str) -> dict[str, float]:
    """Measure the link from one GPU to another.

    Call it in a process of its own, as `gpu`.

    Args:
        one: UUID of the GPU that sends.
        other: UUID of the GPU that gets what is sent.

    Returns:
        `gb_s`.

    Raises:
        CudaError: it cannot be measured, or something else arrives.
    """
    cuda = Cuda([one, other])
    able = ctypes.c_int()
    cuda.call("cuDeviceCanAccessPeer", ctypes.byref(able), 0, 1)
    cuda.use(1)
    target, host = cuda.memory(BYTES), cuda.host_memory(BYTES)
    cuda.use(0)
    if able.value:  # otherwise the driver copies through the machine's memory
        cuda.call("cuCtxEnablePeerAccess", cuda.context(1), 0)
    ends = (target, cuda.context(1), _pattern(cuda), cuda.context(0))
    speed = _copies(cuda, "cuMemcpyPeerAsync", *ends)
    cuda.use(1)
    _check(cuda, host, target)
    return {"gb_s": speed}


def _pattern(cuda: Cuda) -> ctypes.c_uint64:
    memory = cuda.memory(BYTES)
    cuda.call("cuMemsetD32_v2", memory, PATTERN, ctypes.c_size_t(BYTES // 4))
    return memory


def _copies(cuda: Cuda, name: str, *ends: Any) -> float:
    def copy() -> None:
        for _copy in range(REPEATS):
            cuda.call(name, *ends, ctypes.c_size_t(BYTES), None)

    return REPEATS * BYTES / cuda.seconds(copy) / 1e9


def _arithmetic(cuda: Cuda) -> float:
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.call("cuModuleLoadData", ctypes.byref(module), KERNEL.encode("ascii"))
    cuda.call("cuModuleGetFunction", ctypes.byref(kernel), module, b"chains")
    blocks = BLOCKS * cuda.multiprocessors(0)
    threads = blocks * THREADS
    sums, host = cuda.memory(4 * threads), cuda.host_memory(4 * threads)
    values: list[Any] = [sums, ctypes.c_uint32(LOOPS), ctypes.c_float(-1), ctypes.c_float(3)]
    arguments = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])

    def run() -> None:
        cuda.call("cuLaunchKernel", kernel, blocks, 1, 1, THREADS, 1, 1, 0, None, arguments, None)

    seconds = cuda.seconds(run)
    cuda.call("cuMemcpyDtoH_v2", host, sums, ctypes.c_size_t(4 * threads))
    if set((ctypes.c_float * threads).from_address(host.value or 0)) != {SUM}:
        raise CudaError("it computes wrongly: sums that ought to be equal are not")
    return FLOPS * CHAINS * STEPS * LOOPS * threads / seconds / 1e12


def _check(cuda: Cuda, host: ctypes.c_void_p, memory: ctypes.c_uint64) -> None:
    ctypes.memset(host, 0, BYTES)
    cuda.call("cuMemcpyDtoH_v2", host, memory, ctypes.c_size_t(BYTES))
    if ctypes.string_at(host, BYTES) != PATTERN.to_bytes(4, "little") * (BYTES // 4):
        raise CudaError("it copies wrongly: data have changed on the way")
