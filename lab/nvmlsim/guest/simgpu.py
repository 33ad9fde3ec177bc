#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play what happens to the GPUs of a simulated host from outside NVML.

  simgpu init a100-80gb:2 h100-80gb     a host with three GPUs, as it leaves the factory
  simgpu status                         GPUs, MIG mode, slices, processes
  simgpu boot                           what a reboot does: instances and processes go, Hopper loses MIG mode
  simgpu reset 0                        reset one GPU: its instances go, a pending MIG mode takes effect
  simgpu process start --slice MIG-...  a program computes on a slice, so the slice is in use
  simgpu process stop 4242              it ends
  simgpu set 0 clients=1                something holds GPU 0, so its MIG mode cannot change
  simgpu set 0 temperature=95 throttle=hw_slowdown,hw_thermal_slowdown
                                        it is too hot; simgpu set --help lists all that can go wrong
  simgpu xid 0 79                       GPU 0 reports Xid 79: an NVML event, and a line in the kernel log
  simgpu driver unload                  NVML answers "Driver Not Loaded"
  simgpu fault add nvmlDeviceCreateGpuInstance 23 --nth 2
                                        the second such call of each process fails with code 23
  simgpu fault add write kill --nth 3   each process dies at its third call that changes something

Everything else (MIG mode, instances) is done through NVML, as on a real host. The state lies in
$NVMLSIM_STATE, or /var/lib/nvmlsim; programs that use NVML follow changes at once. $NVMLSIM_LOG, or
`simgpu set host log=FILE`, names a file that gets a line for every NVML call: process, function, read or
write, result."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import devices
import kernel_log

LIBRARY = "libnvidia-ml.so.1"
SLEEPER = ["sleep", "infinity"]
NUMBER = re.compile(r"-?\d{1,9}")  # a serial number has more digits, and is none
SETTABLE = """keys of a GPU (0|1 may be written off|on; what a model lacks is not supported whatever is set):
  in use
    clients                how many programs hold the driver without computing
    profiler               1: a profiler holds the GPU, and no instance can be created
    passthrough            1: the host is a VM, which cannot reset its GPU
    utilization            percent
    display, persistence   0|1
  sensors
    temperature, memory_temperature, slowdown_temperature   degrees Celsius
    power, power_limit     mW
    clock_sm               MHz
    gpu_clock_least, gpu_clock_most, memory_clock_least, memory_clock_most
                           MHz that clocks are locked to; 0 if they are not
    compute_mode           default, exclusive_process or prohibited
    accounting             0|1
    throttle               names, separated by commas: gpu_idle, applications_clocks_setting, sw_power_cap,
                           hw_slowdown, sync_boost, sw_thermal_slowdown, hw_thermal_slowdown,
                           hw_power_brake_slowdown, display_clock_setting; empty for none
  memory
    ecc                    on|off; ecc_pending for a change that waits for a reset
    ecc_corrected, ecc_uncorrected, sram_uncorrected        volatile; a reset adds them to the aggregate ones
    sram_threshold         1: more than the field diagnosis allows
    remapped_corrected, remapped_uncorrected, remap_pending, remap_failure    Ampere and later
    retired_single, retired_double, retired_pending                           before Ampere
    inforom_corrupted      0|1
  links
    pcie_width, pcie_generation, pcie_replay
    nvlink_down            numbers of links, separated by commas; empty for none
    nvlink_crc             errors on the first link
    fabric                 not_started, in_progress, completed or failed (Hopper and later with NVSwitch)
  the worst
    recovery_action        1 reset, 2 reboot, 3 drain, 4 drain and reset ... (nvmlDeviceGpuRecoveryAction)
    lost                   1: it fell off the bus, and every call on it says so
keys of host:
  driver                   version, such as 535.261.03
  kernel_driver            version of the loaded module, if it is not the library's; the next boot ends that
  cuda                     version of CUDA, 12040 for 12.4
  log                      file of the call log; empty for none"""

# Texts of the driver after the number, as published logs show it.
XID_TEXTS = {
    13: "Graphics Exception: ESR 0x404600=0x80000001",
    31: "MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f_00000000",
    43: "Ch 00000008",
    48: "An uncorrectable double bit error (DBE) has been detected on GPU",
    63: "Row Remapper: New row marked for remapping, reset gpu to activate.",
    64: "Row Remapper: Failed to record remapping",
    74: "NVLink: fatal error detected on link 0",
    79: "GPU has fallen off the bus.",
    94: "Contained: SM (0x1). RST: No, D-RST: No",
    95: "Uncontained: FBHUB. RST: Yes, D-RST: No",
    119: "Timeout after 6s of waiting for RPC response from GPU0 GSP!",
}


class Refusal(Exception):
    """The simulator's sentence about what cannot be done."""


class Host:
    """The simulated host, through the library that plays it."""

    def __init__(self) -> None:
        self.directory = Path(os.environ.get("NVMLSIM_STATE") or "/var/lib/nvmlsim")
        try:
            self.library = ctypes.CDLL(os.environ.get("NVMLSIM_LIBRARY") or LIBRARY)
            self.library.nvmlsim_control  # noqa: B018
        except (OSError, AttributeError) as error:
            raise Refusal(f"There is no simulated NVML library ({error}): set NVMLSIM_LIBRARY.") from None

    def control(self, command: str, *words: str) -> None:
        """Change the host; the library takes the lock."""
        text = ctypes.create_string_buffer(512)
        arguments = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        size = ctypes.c_size_t(len(text))
        if self.library.nvmlsim_control(command.encode(), len(words), arguments, text, size):
            raise Refusal(text.value.decode())

    def read(self) -> dict[str, Any]:
        """Return the state: {host: {}, gpus: [{..., instances: [], processes: []}], faults: [], events: []}.

        Of a GPU there is what is not as it left the factory."""
        try:
            lines = (self.directory / "state").read_text().splitlines()
        except FileNotFoundError:
            raise Refusal(f"{self.directory} holds no simulated host: run simgpu init first.") from None
        state: dict[str, Any] = {"host": {}, "gpus": [], "faults": [], "events": []}
        for line in lines[1:-1]:
            kind, *pairs = line.split(" ")
            fields = {key: _number(value) for key, _, value in (pair.partition("=") for pair in pairs)}
            if kind == "host":
                state["host"] = fields
            elif kind == "gpu":
                state["gpus"].append({**fields, "instances": [], "processes": []})
            elif kind in ("fault", "event"):
                state[f"{kind}s"].append(fields)
            else:
                owner = state["gpus"][fields.pop("gpu")]
                owner["processes" if kind == "process" else "instances"].append({"kind": kind, **fields})
        return state | {"slices": self._slices()}

    def _slices(self) -> list[dict[str, Any]]:
        text = ctypes.create_string_buffer(1 << 17)
        if self.library.nvmlsim_slices(text, ctypes.c_size_t(len(text))):
            raise Refusal(f"{self.directory}/state cannot be read.")
        names = ("gpu", "gi", "ci", "name", "uuid")
        return [
            {name: _number(word) for name, word in zip(names, line.split(), strict=True)}
            for line in text.value.decode().splitlines()
        ]


# Keys that the state of a GPU always has; other keys are disturbances.
OWN = {
    *("model", "bus", "uuid", "serial", "minor", "current", "pending", "instances", "processes"),
    *("ecc_corrected_before", "ecc_uncorrected_before", "sram_uncorrected_before"),
}
# How the library keeps what is no NVML return code.
FAULT_WORDS = {-1: "hang", -2: "kill", -3: "kill-after"}


def _number(word: str) -> int | str:
    return int(word) if NUMBER.fullmatch(word) else word


# ---- commands ----


def init(host: Host, options: argparse.Namespace) -> None:
    models: list[str] = []
    for spec in options.specs:
        model, _, count = spec.partition(":")
        if count and not (count.isdigit() and int(count)):
            raise Refusal(f"'{spec}' is no GPU: write MODEL or MODEL:COUNT, such as a100-80gb:2.")
        models += [model] * int(count or 1)
    host.directory.mkdir(parents=True, exist_ok=True)
    host.directory.chmod(0o755)
    host.control("init", options.dev, options.run_directory, *models)


def status(host: Host, options: argparse.Namespace) -> None:
    state = host.read()
    if options.json:
        print(json.dumps(state, indent=2))
        return
    library, module = state["host"]["driver"], state["host"]["kernel_driver"]
    loaded = "loaded" if state["host"]["loaded"] else "not loaded"
    print(f"driver {library}, {loaded}" + (f", module {module}" if module != library else ""))
    for n, gpu in enumerate(state["gpus"]):
        mode = "on" if gpu["current"] else "off"
        pending = "" if gpu["current"] == gpu["pending"] else ", change pending"
        print(f"GPU {n} {gpu['model']} {gpu['bus']} {gpu['uuid']}: MIG {mode}{pending}")
        disturbed = [f"{key}={value}" for key, value in gpu.items() if key not in OWN]
        if disturbed:
            print(f"  {' '.join(disturbed)}")
        for piece in (piece for piece in state["slices"] if piece["gpu"] == n):
            print(f"  gi {piece['gi']} ci {piece['ci']} {piece['name']} {piece['uuid']}")
        for process in gpu["processes"]:
            where = f"on gi {process['gi']} ci {process['ci']}, " if process["gi"] >= 0 else ""
            print(f"  process {process['pid']} {where}{process['mib']} MiB")
    for fault in state["faults"]:
        when = f"call {fault['nth']} of each process" if fault["nth"] else "always"
        what = FAULT_WORDS.get(fault["code"], f"code {fault['code']}")
        print(f"fault {fault['call']}: {what}, {when}")


def boot(host: Host, options: argparse.Namespace) -> None:
    del options
    host.control("boot")
    state = host.read()
    run, dev = state["host"]["run"], state["host"]["dev"]
    if not dev:
        return
    if dev == "/dev":
        _show_in_proc(Path(run))
    devices.make_gpu_nodes(Path(dev), [gpu["minor"] for gpu in state["gpus"]])
    for name in ("config", "monitor"):
        devices.make_capability_node(Path(dev), Path(run, "driver/nvidia/capabilities/mig", name))


def _show_in_proc(run: Path) -> None:
    """Mount the tree that the library keeps over /proc/driver, and the driver's majors over /proc/devices.

    Only the kernel can write to /proc. Mounted this early and in the first mount namespace, both are there
    for every process of the host; only one that mounts a /proc of its own (ProtectProc=) misses them."""
    table = run / "devices"
    table.write_text(devices.with_driver(devices.PROC_DEVICES.read_text()))
    table.chmod(0o444)
    for source, target in ((run / "driver", Path("/proc/driver")), (table, devices.PROC_DEVICES)):
        if not target.samefile(source):
            subprocess.run(["mount", "--bind", str(source), str(target)], check=True)


def reset(host: Host, options: argparse.Namespace) -> None:
    host.control("reset", options.gpu)


def driver(host: Host, options: argparse.Namespace) -> None:
    host.control(f"driver-{options.action}")


def set_values(host: Host, options: argparse.Namespace) -> None:
    for pair in options.pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise Refusal(f"'{pair}' is no KEY=VALUE.")
        host.control("set", options.target, key, value)


def xid(host: Host, options: argparse.Namespace) -> None:
    host.control("xid", options.target, str(options.number))
    state = host.read()
    if not state["host"]["run"]:
        return
    gpu = state["gpus"][state["events"][-1]["gpu"]]
    text = options.text or XID_TEXTS.get(options.number, "simulated")
    message = (
        f"NVRM: Xid (PCI:{gpu['bus'].partition('.')[0]}): {options.number}, "
        f"pid='<unknown>', name=<unknown>, {text}"
    )
    kernel_log.write(Path(state["host"]["run"]), message, in_journal=state["host"]["dev"] == "/dev")


def process_start(host: Host, options: argparse.Namespace) -> None:
    pid = options.pid
    if pid is None:
        # A process that can be found in /proc, as the one that keeps a real slice busy.
        quiet = subprocess.DEVNULL
        sleeper = subprocess.Popen(SLEEPER, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        pid = sleeper.pid
    try:
        host.control("process-start", options.slice or options.gpu, str(pid), str(options.memory))
    except Refusal:
        if options.pid is None:
            os.kill(pid, signal.SIGTERM)
        raise
    print(pid)


def process_stop(host: Host, options: argparse.Namespace) -> None:
    host.control("process-stop", str(options.pid))
    command = Path(f"/proc/{options.pid}/cmdline")
    if command.exists() and command.read_text().split("\0")[:-1] == SLEEPER:
        os.kill(options.pid, signal.SIGTERM)


def fault_add(host: Host, options: argparse.Namespace) -> None:
    codes = {word: code for code, word in FAULT_WORDS.items()}
    host.control("fault-add", options.call, str(options.nth), str(codes.get(options.what, options.what)))


def fault_clear(host: Host, options: argparse.Namespace) -> None:
    del options
    host.control("fault-clear")


def _fault(word: str) -> str:
    if not word.isdigit() and word not in FAULT_WORDS.values():
        raise argparse.ArgumentTypeError(f"'{word}' is no return code, and not hang, kill or kill-after")
    return word


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="simgpu", description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(to: Any, name: str, execute: Any, text: str, epilog: str = "") -> argparse.ArgumentParser:
        found: argparse.ArgumentParser = to.add_parser(
            name, help=text, description=text, epilog=epilog, formatter_class=raw
        )
        found.set_defaults(execute=execute)
        return found

    command = add(commands, "init", init, "Make a fresh host; whatever was there is forgotten.")
    command.add_argument("specs", nargs="*", metavar="SPEC", help="MODEL or MODEL:COUNT, such as a100-80gb:2")
    command.add_argument("--dev", default="", help="directory of device nodes; they decide what is seen")
    command.add_argument("--run", dest="run_directory", default="", help="directory of the /proc tree")
    command = add(commands, "status", status, "Show the host.")
    command.add_argument("--json", action="store_true", help="for programs")
    add(commands, "boot", boot, "Play a reboot, and start the driver: device nodes and /proc/driver.")
    command = add(commands, "reset", reset, "Reset a GPU; refused while it is in use and in a VM.")
    command.add_argument("gpu", metavar="GPU", help="index or UUID")
    command = add(commands, "driver", driver, "Load or unload the driver.")
    command.add_argument("action", choices=("load", "unload"))
    command = add(commands, "set", set_values, "Disturb a GPU or the host.", SETTABLE)
    command.add_argument("target", metavar="GPU|host", help="index or UUID of a GPU, or the word host")
    command.add_argument("pairs", nargs="+", metavar="KEY=VALUE")

    command = add(
        commands, "xid", xid, "Let a GPU report an Xid: an NVML event, and a line in the kernel log."
    )
    command.add_argument("target", metavar="GPU|SLICE", help="index or UUID of a GPU, or UUID of a slice")
    command.add_argument("number", type=int, help="such as 79")
    command.add_argument("--text", help="what the line says behind the number")

    command = add(commands, "process", None, "Let programs use a GPU.")
    kinds = command.add_subparsers(required=True, metavar="ACTION")
    command = add(kinds, "start", process_start, "A program starts to compute; prints its process id.")
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--slice", metavar="UUID", help="MIG device that it uses")
    where.add_argument("--gpu", help="index or UUID of a GPU without MIG mode that it uses")
    command.add_argument("--memory", type=int, default=100, metavar="MIB", help="that it takes (default 100)")
    command.add_argument("--pid", type=int, help="process id; without it a sleeping process is started")
    command = add(kinds, "stop", process_stop, "The program ends.")
    command.add_argument("pid", type=int)

    command = add(commands, "fault", None, "Let NVML calls fail, hang or end their caller.")
    kinds = command.add_subparsers(required=True, metavar="ACTION")
    text = "Add a fault for all processes ($NVMLSIM_FAULT=CALL=WHAT,CALL@NTH=WHAT sets some for one process)."
    command = add(kinds, "add", fault_add, text)
    command.add_argument(
        "call", help="name of the NVML function, write for any that changes something, * for any"
    )
    command.add_argument(
        "what",
        type=_fault,
        metavar="WHAT",
        help="NVML return code, such as 23 (insufficient resources); hang: it never returns; kill, "
        "kill-after: the process dies before or after it",
    )
    command.add_argument("--nth", type=int, default=0, help="only this call of each process, counted from 1")
    add(kinds, "clear", fault_clear, "Remove all faults.")
    return parser


def main() -> None:
    options = _parser().parse_args()
    try:
        options.execute(Host(), options)
    except Refusal as refusal:
        sys.exit(f"simgpu: {refusal}")
    except (OSError, LookupError, ValueError, subprocess.CalledProcessError) as error:
        sys.exit(f"simgpu: {error}")


if __name__ == "__main__":
    main()
