"""Control groups of a bench: where hosts run, how their processes are found, what limits they can enforce.

Every host gets groups of its own in every hierarchy of the machine: ``gpufarm-lab.<bench>/<host>`` for the
guest and ``gpufarm-lab.<bench>/<host>.launcher`` for its launcher. They live at the roots of the hierarchies,
outside any login session, and all processes in them belong to the bench: that is how `lab down` finds what a
crash left behind.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.patience import PATIENCE
from lab.spec import HostSpec

# Controllers that systemd manages or passes on (systemd's docs/CGROUP_DELEGATION.md, "Controller Support").
V1_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")
V2_CONTROLLERS = ("cpuset", "cpu", "io", "memory", "pids")
PREFIX = "gpufarm-lab."


@dataclass(frozen=True)
class Layout:
    """The control group hierarchies of this machine.

    :param v1: controller -> mount point of its v1 hierarchy (several may share one mount point).
    :param named: mount point of the v1 hierarchy name=systemd, if any.
    :param unified: mount point of the v2 hierarchy, if any.
    """

    v1: dict[str, Path]
    named: Path | None
    unified: Path | None

    @property
    def roots(self) -> list[Path]:
        """All mount points, each once, v2 first."""
        found = [self.unified, self.named, *self.v1.values()]
        return list(dict.fromkeys(path for path in found if path))


def parse_mounts(text: str) -> Layout:
    """The hierarchies in a text such as /proc/self/mounts has (proc(5))."""
    v1: dict[str, Path] = {}
    named = unified = None
    for line in text.splitlines():
        _, target, kind, options, *_ = line.split(" ")
        if kind == "cgroup2" and unified is None:
            unified = Path(target)
        elif kind == "cgroup":
            words = options.split(",")
            if "name=systemd" in words:
                named = named or Path(target)
            for controller in V1_CONTROLLERS:
                if controller in words:
                    v1.setdefault(controller, Path(target))
    return Layout(v1, named, unified)


def layout() -> Layout:
    """:raises LabError: if no control group hierarchy is mounted."""
    found = parse_mounts(Path("/proc/self/mounts").read_text())
    if not found.roots:
        raise LabError(
            "no control group hierarchy is mounted below /sys/fs/cgroup: systemd hosts cannot start here"
        )
    return found


def guest_version(spec: HostSpec, machine: Layout) -> str:
    """The control group version that a guest's systemd gets.

    A v1 guest has real controllers only where the machine has them on v1; systemd 256 and newer (trixie)
    refuses v1 (its NEWS, "CHANGES WITH 256"). On a machine with pure v2 a v2 guest gets the controllers.

    :returns: "v1" or "v2".
    :raises LabError: if the request cannot be met.
    """
    if spec.kind == "qemu":
        return "v2"  # the default of its own kernel and systemd
    controllers = {"memory", "devices"} <= set(machine.v1)
    if spec.cgroup == "auto":
        return "v1" if spec.suite == "bookworm" and controllers else "v2"
    if spec.cgroup == "v2" and machine.unified is None:
        raise LabError(f"host {spec.name} asks for cgroup v2, but this machine has no cgroup2 mount")
    if spec.cgroup == "v1" and spec.suite != "bookworm":
        raise LabError(f"host {spec.name} asks for cgroup v1, which systemd of {spec.suite} refuses: use v2")
    if spec.cgroup == "v1" and not controllers:
        raise LabError(f"host {spec.name} asks for cgroup v1, but this machine has no such memory controller")
    return spec.cgroup


def memory_limits_hold(version: str, machine: Layout) -> bool:
    """Whether a memory limit of a unit in a guest of this version is enforced by the kernel."""
    if version == "v1":
        return "memory" in machine.v1
    if machine.unified is None or "memory" in machine.v1:
        return False
    return "memory" in (machine.unified / "cgroup.controllers").read_text().split()


def bench_groups(bench: str, machine: Layout) -> list[Path]:
    """The group of a bench in every hierarchy."""
    return [root / f"{PREFIX}{bench}" for root in machine.roots]


def create(bench: str, host: str, machine: Layout) -> tuple[list[Path], list[Path]]:
    """Make the groups of a host.

    :returns: the guest's groups and its launcher's, one per hierarchy.
    """
    guest: list[Path] = []
    launcher: list[Path] = []
    for group in bench_groups(bench, machine):
        for name, made in ((host, guest), (f"{host}.launcher", launcher)):
            path = group / name
            path.mkdir(parents=True, exist_ok=True)
            for member in (group, path):
                _fill_cpuset(member)
            made.append(path)
    if machine.unified is not None:
        _delegate(machine.unified, machine.unified / f"{PREFIX}{bench}")
    return guest, launcher


def _fill_cpuset(group: Path) -> None:
    """A v1 cpuset group takes no process before it has processors and memory nodes: copy the parent's."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = group / name
        if (
            file.exists()
            and (group.parent / "cgroup.clone_children").exists()
            and not file.read_text().strip()
        ):
            file.write_text((group.parent / name).read_text())


def _delegate(*groups: Path) -> None:
    """Enable in each v2 group the controllers for its children (the kernel's cgroup-v2.rst, "Enabling and
    Disabling").

    One by one: a single refused controller, such as cpu beside real-time processes, would refuse them all.
    """
    for group in groups:
        enabled = (group / "cgroup.subtree_control").read_text().split()
        for controller in (group / "cgroup.controllers").read_text().split():
            if controller in V2_CONTROLLERS and controller not in enabled:
                with contextlib.suppress(OSError):
                    (group / "cgroup.subtree_control").write_text(f"+{controller}")


def processes(groups: Iterable[Path]) -> list[int]:
    """Ids of all processes in these groups and the groups below them."""
    found: set[int] = set()
    for group in groups:
        for path in (group, *_descendants(group)):
            with contextlib.suppress(OSError):
                found.update(int(line) for line in (path / "cgroup.procs").read_text().split())
    return sorted(found - {0})


def cpu_seconds(groups: Iterable[Path]) -> float:
    """CPU seconds that processes in these groups, one per hierarchy, and below them have ever taken.

    :raises LabError: if no hierarchy counts them.
    """
    for group in groups:
        if (file := group / "cpuacct.usage").exists():
            return int(file.read_text()) / 1e9
        if (file := group / "cpu.stat").exists() and "usage_usec" in (text := file.read_text()):
            return int(text.split()[1]) / 1e6  # its first line, and there without any controller
    raise LabError("no control group hierarchy of this machine counts CPU time")


def _descendants(group: Path) -> list[Path]:
    try:
        return [path for path in group.rglob("*") if path.is_dir()]
    except OSError:
        return []


def kill(groups: list[Path], what: str, timeout: float = PATIENCE) -> None:
    """Kill every process in the groups and wait until none is left.

    :raises LabError: naming what and the process that does not die.
    """
    deadline = time.monotonic() + timeout
    while left := processes(groups):
        if time.monotonic() > deadline:
            raise LabError(
                f"{what}: process {left[0]} does not die, perhaps it hangs in the kernel: "
                f"see /proc/{left[0]}/stack"
            )
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def remove(groups: Iterable[Path]) -> None:
    """Remove groups and those below them; the kernel may call them busy for a moment after the last exit."""
    for group in groups:
        for attempt in range(50):
            for path in sorted(_descendants(group), key=lambda path: len(path.parts), reverse=True):
                with contextlib.suppress(OSError):
                    path.rmdir()
            with contextlib.suppress(OSError):
                group.rmdir()
            if not group.exists():
                break
            time.sleep(0.02 * (attempt + 1) ** 0.5)
