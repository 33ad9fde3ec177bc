"""Which control groups a guest gets follows from the machine's mounts."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab.cgroups import Layout, cpu_seconds, guest_version, memory_limits_hold, parse_mounts
from lab.errors import LabError
from lab.spec import HostSpec

# Lines of /proc/self/mounts on Debian 12 with systemd as process 1, and on a machine with both versions.
PURE = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate,memory_recursiveprot 0 0\n"
HYBRID = """\
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/devices cgroup rw,relatime,devices 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,xattr,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
/dev/sda1 /mnt/with\\040space ext4 rw,relatime 0 0
"""


def test_hybrid_machine():
    machine = parse_mounts(HYBRID)
    assert machine.unified == Path("/sys/fs/cgroup/unified")
    assert machine.named == Path("/sys/fs/cgroup/systemd")
    assert machine.v1["cpu"] == machine.v1["cpuacct"] == Path("/sys/fs/cgroup/cpu,cpuacct")
    assert machine.roots == [
        Path("/sys/fs/cgroup") / name for name in ("unified", "systemd", "cpu,cpuacct", "memory", "devices")
    ]


def test_pure_v2_machine():
    machine = parse_mounts(PURE)
    assert machine == Layout({}, None, Path("/sys/fs/cgroup"))


@pytest.mark.parametrize(
    ("mounts", "spec", "version"),
    [
        (HYBRID, HostSpec("a"), "v1"),
        (HYBRID, HostSpec("a", "trixie"), "v2"),
        (HYBRID, HostSpec("a", cgroup="v2"), "v2"),
        (HYBRID, HostSpec("a", kind="qemu"), "v2"),
        (PURE, HostSpec("a"), "v2"),
        (PURE, HostSpec("a", "trixie"), "v2"),
    ],
)
def test_guests_get_the_version_that_enforces_limits(mounts: str, spec: HostSpec, version: str):
    assert guest_version(spec, parse_mounts(mounts)) == version


@pytest.mark.parametrize(
    ("mounts", "spec", "words"),
    [
        (HYBRID, HostSpec("a", "trixie", cgroup="v1"), "systemd of trixie refuses"),
        (PURE, HostSpec("a", cgroup="v1"), "no such memory controller"),
        (HYBRID.replace("cgroup2", "tmpfs"), HostSpec("a", cgroup="v2"), "no cgroup2 mount"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(mounts: str, spec: HostSpec, words: str):
    with pytest.raises(LabError, match=words):
        guest_version(spec, parse_mounts(mounts))


@pytest.mark.parametrize(
    ("controllers", "holds"), [("cpuset cpu io memory pids\n", True), ("cpu io\n", False), ("\n", False)]
)
def test_memory_limits_of_a_v2_guest_need_the_controller(tmp_path: Path, controllers: str, holds: bool):
    (tmp_path / "cgroup.controllers").write_text(controllers)
    assert memory_limits_hold("v2", Layout({}, None, tmp_path)) is holds


def test_memory_limits_on_a_hybrid_machine():
    machine = parse_mounts(HYBRID)
    assert memory_limits_hold("v1", machine)
    assert not memory_limits_hold("v2", machine)


def test_cpu_time_is_read_wherever_it_is_counted(tmp_path: Path):
    groups = [tmp_path / name for name in ("memory", "cpu", "cpuacct", "unified")]
    for group in groups:
        group.mkdir()
    with pytest.raises(LabError, match="CPU time"):
        cpu_seconds(groups)
    (tmp_path / "cpu/cpu.stat").write_text("nr_periods 0\nnr_throttled 0\n")
    (tmp_path / "unified/cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\nsystem_usec 1\n")
    assert cpu_seconds(groups) == 2.5
    (tmp_path / "cpuacct/cpuacct.usage").write_text("1500000000\n")
    assert cpu_seconds(groups) == 1.5
