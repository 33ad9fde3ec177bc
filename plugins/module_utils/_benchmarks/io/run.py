# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the programs that measure, on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ..._host.io import timed
from .. import answers, hpcc
from ..part import NotMeasured
from .user import own_folder, run, run_as

CPUS = Path("/sys/devices/system/cpu")
# Seconds after which a program is ended: HPL of a large matrix takes minutes, a link some seconds.
LONG, SHORT = 7200.0, 60.0
PROGRAMS = ("hpcc", "fio")
FILES = 1000  # that are created to measure how fast that is
# Seconds for which a server that does not serve yet is tried, and between two of these.
PATIENCE, PAUSE = 10.0, 0.5
SECONDS, PINGS = 3, 20  # of one direction of a link, and of a link


def busy(proc: Path = Path("/proc")) -> str:
    """Return what runs on the machine and would disturb a measurement; empty for nothing."""
    for folder in proc.glob("[0-9]*"):
        try:
            name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # ended meanwhile
            continue
        # A waiting process keeps the control group of jobs open (slurmd, cgroup_v2.c).
        if name == "slurmstepd" and b"infinity" not in words:
            return "a job of Slurm; drain the node first"
        # Of a run that was killed, perhaps.
        if name in PROGRAMS:
            return f"{name}; wait until it has ended, or end it"
    return ""


def cores(cpus: Path = CPUS) -> int:
    """Return the number of cores that the kernel uses; threads of one count once."""
    found = set()
    for folder in cpus.glob("cpu[0-9]*/topology"):
        found.add(tuple((folder / name).read_text() for name in ("physical_package_id", "core_id")))
    return len(found)


def processors(memory_mib: int) -> dict[str, float]:
    """Measure processors and memory with the HPC Challenge, a process on each core.

    Args:
        memory_mib: memory of the matrix for each process.

    Raises:
        NotMeasured: the memory is not free, or the benchmark failed.
    """
    processes = cores()
    needed = memory_mib * processes
    free = _available_mib()
    if 2 * needed > free:  # HPL's buffers, and the parts of it that copy the matrix
        raise NotMeasured(
            f"The matrix takes {needed} MiB, with buffers more than twice that, and {free} MiB are free; "
            "give less than benchmarks_memory_mib."
        )
    with own_folder() as own:
        (own / "hpccinf.txt").write_text(hpcc.input_file(processes, needed), encoding="ascii")
        # A process that waits for another leaves its core to others, which virtual machines need.
        environment = {"OPENBLAS_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
        run_as(own, environment, ["mpirun", "-n", str(processes), "hpcc"], LONG)
        try:
            return hpcc.values((own / "hpccoutf.txt").read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError) as error:
            raise NotMeasured(f"The HPC Challenge has measured nothing: {error}.") from error


def files(folder: str, mib: int) -> dict[str, float]:
    """Measure a file system: writing, reading, and creation of small files.

    Args:
        folder: on it.
        mib: size of the file that is written and read.

    Raises:
        NotMeasured: the folder is none, there is no room, or fio failed.
    """
    # With the name of the machine, as others may measure the same file system.
    prefix = f".gpufarm-benchmark-{socket.gethostname()}-"
    try:
        for left in Path(folder).glob(f"{prefix}*"):  # by a run that was killed
            shutil.rmtree(left)
        # The folder goes with all that is in it, also when the disk is full.
        with tempfile.TemporaryDirectory(prefix=prefix, dir=folder) as own:
            told = os.statvfs(own)
            free = told.f_bavail * told.f_frsize // 2**20
            if free < 2 * mib:
                raise NotMeasured(
                    f"{folder} has {free} MiB free, and twice the {mib} MiB of the file are needed; "
                    "give less than benchmarks_file_mib, or make room."
                )
            data = [f"--filename={own}/data", "--bs=1M", f"--size={mib}M"]
            small = ["--ioengine=filecreate", f"--directory={own}", f"--nrfiles={FILES}", "--filesize=4k"]
            small += ["--fallocate=none", "--create_on_open=1", "--openfiles=1"]
            write = _fio(["--rw=write", "--end_fsync=1", *data])
            read = _fio(["--rw=read", *data])
            create = _fio(small)
    except OSError as error:
        raise NotMeasured(f"{folder} cannot be measured: {error.strerror}; give another folder.") from error
    try:
        return {
            f"{folder}.write_mb_s": answers.fio(write, "write", "bw_bytes") / 1e6,
            f"{folder}.read_mb_s": answers.fio(read, "read", "bw_bytes") / 1e6,
            f"{folder}.creations_s": answers.fio(create, "read", "iops"),
        }
    except ValueError as error:
        raise NotMeasured(f"{folder} was not measured: {error}.") from error


def link(network: str, bind: str, address: str, port: int) -> dict[str, float]:
    """Measure a link to another machine, on which iperf3 serves.

    Args:
        network: in CIDR notation, the name of the link.
        bind: address of this machine in it.
        address: of the other machine in it.
        port: at which it serves.

    Raises:
        NotMeasured: the other machine did not answer.
    """
    short = ["ping", "-q", "-n", "-I", bind, "-c", str(PINGS), "-i", "0.2", address]
    long = [
        "iperf3",
        "--client",
        address,
        "--bind",
        bind,
        "--port",
        str(port),
        "--time",
        str(SECONDS),
        "--json",
    ]
    # A machine that sends slowly is slow with both neighbours, to which it sends, and from which it receives.
    ways = (long, [*long, "--reverse"])
    try:
        return {
            f"link.{network}.round_trip_us": answers.ping(timed.run(short, SHORT).output),
            f"link.{network}.gbit_s": min(map(_iperf, ways)) / 1e9,
        }
    except (OSError, ValueError) as error:
        raise NotMeasured(f"The link from {bind} to {address} was not measured: {error}.") from error


def _iperf(words: Sequence[str]) -> float:
    """Return the bits a second of one direction; the server needs a moment before each run."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return answers.iperf(timed.run(words, SHORT).output)
        except ValueError:
            if time.monotonic() > until:
                raise
        time.sleep(PAUSE)


def _fio(words: Sequence[str]) -> str:
    return run(["fio", "--name=gpufarm", "--output-format=json", *words], LONG)


def _available_mib() -> int:
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    return int(text.partition("MemAvailable:")[2].split()[0]) // 1024
