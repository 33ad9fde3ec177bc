# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's side: the /proc tree, device nodes, and what they let a process see."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pynvml as n
import pytest
import sim_nvml
from sim_host import Host, in_child

from lab.nvmlsim.install import GUEST, install

NOBODY = 65534
CLONE_NEWUSER = 0x10000000  # <linux/sched.h>
PROC_DEVICES = "Character devices:\n  1 mem\n254 ndctl\n253 dimmctl\n\nBlock devices:\n  7 loop\n"


@pytest.fixture
def driver(make_host: Callable[..., Host]) -> Host:
    """A host whose driver has its nodes in dev/ and its tree in run/; plain files stand for the nodes."""
    host = make_host("a100-80gb:2")
    dev = host.directory / "dev"
    (dev / "nvidia-caps").mkdir(parents=True)
    for name in ("nvidiactl", "nvidia0", "nvidia1", "nvidia-caps/nvidia-cap1"):
        (dev / name).write_text("")
    host.control("init", str(dev), str(host.directory / "run"), "a100-80gb", "a100-80gb")
    host.control("boot")
    n.nvmlDeviceSetMigMode(sim_nvml.gpu(0), 1)
    return host


def tree(host: Host, path: str) -> str:
    return (host.directory / "run/driver" / path).read_text()


def minors(host: Host) -> dict[str, int]:
    """Return the minors of the capabilities that exist on GPU 0, as a program would find them."""
    base = host.directory / "run/driver/nvidia/capabilities/gpu0/mig"
    found = sorted(base.rglob("access"))
    return {str(f.parent.relative_to(base)): int(f.read_text().split()[1]) for f in found}


def refuse(host: Host, name: str) -> None:
    """Make a node one that nobody but root may open."""
    (host.directory / "dev" / name).chmod(0o000)


def seen() -> list[str]:
    """MIG devices of GPU 0 that an ordinary user sees; a runner that is root becomes nobody first."""
    return in_child(lambda: sim_nvml.mig_uuids(sim_nvml.gpu(0)), uid=NOBODY if os.geteuid() == 0 else None)


def seen_by_root_of_a_namespace() -> list[str]:
    """Return what root of a container without root sees (user_namespaces(7))."""
    user = os.geteuid()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1", encoding="ascii")
    return sim_nvml.mig_uuids(sim_nvml.gpu(0))


def make_slices(host: Host) -> None:
    for start in range(2):
        n.nvmlGpuInstanceCreateComputeInstance(sim_nvml.create_at(sim_nvml.gpu(0), 19, start, 1), 0)
    for minor in minors(host).values():
        (host.directory / f"dev/nvidia-caps/nvidia-cap{minor}").write_text("")


# ---- the tree ----


def test_a_booted_driver_shows_itself_in_proc(driver: Host) -> None:
    assert "550.163.01" in tree(driver, "nvidia/version")
    config = "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n"
    assert tree(driver, "nvidia/capabilities/mig/config") == config
    assert "DeviceFileMinor: 2\nDeviceFileMode: 292\n" in tree(driver, "nvidia/capabilities/mig/monitor")
    assert n.nvmlDeviceGetUUID(sim_nvml.gpu(1)) in tree(driver, "nvidia/gpus/0000:0f:00.0/information")


def test_minors_are_those_of_the_guide(driver: Host) -> None:
    """Listing in the MIG user guide, "Device Nodes"."""
    lines = tree(driver, "nvidia-caps/mig-minors").splitlines()
    assert lines[:4] == ["config 1", "monitor 2", "gpu0/gi0/access 3", "gpu0/gi0/ci0/access 4"]
    assert "gpu0/gi1/access 12" in lines
    assert "gpu1/gi0/access 138" in lines


def test_the_tree_follows_the_instances(driver: Host) -> None:
    assert minors(driver) == {}
    instance = sim_nvml.create_at(sim_nvml.gpu(0), 9, 0, 4)
    assert minors(driver) == {"gi1": 12}
    compute = n.nvmlGpuInstanceCreateComputeInstance(instance, 2)
    assert minors(driver) == {"gi1": 12, "gi1/ci0": 13}
    n.nvmlComputeInstanceDestroy(compute)
    assert minors(driver) == {"gi1": 12}
    n.nvmlGpuInstanceDestroy(instance)
    assert minors(driver) == {}


def test_a_boot_repairs_the_tree(driver: Host) -> None:
    sim_nvml.create_at(sim_nvml.gpu(0), 9, 0, 4)
    (driver.directory / "run/driver/nvidia/version").unlink()
    driver.control("boot")
    assert minors(driver) == {}
    assert "550" in tree(driver, "nvidia/version")


def test_an_unloaded_driver_leaves_proc(driver: Host) -> None:
    driver.control("driver-unload")
    assert list((driver.directory / "run/driver").iterdir()) == []
    driver.control("driver-load")
    assert "550" in tree(driver, "nvidia/version")


def test_a_strict_umask_hides_nothing(driver: Host) -> None:
    def create() -> None:
        os.umask(0o077)
        make_slices(driver)

    in_child(create)
    for path in (driver.directory / "run").rglob("*"):
        assert path.stat().st_mode & 0o044 == 0o044, path
    assert (driver.directory / "state").stat().st_mode & 0o777 == 0o644


# ---- what a process sees ----


def test_only_slices_whose_nodes_open_are_listed(driver: Host) -> None:
    make_slices(driver)
    first, second = sim_nvml.mig_uuids(sim_nvml.gpu(0))
    assert seen() == [first, second]
    refuse(driver, f"nvidia-caps/nvidia-cap{minors(driver)['gi7/ci0']}")
    assert seen() == [second]
    refuse(driver, f"nvidia-caps/nvidia-cap{minors(driver)['gi8']}")
    assert seen() == []


def test_a_slice_without_its_nodes_is_only_there_for_root(driver: Host) -> None:
    make_slices(driver)
    first, second = sim_nvml.mig_uuids(sim_nvml.gpu(0))
    (driver.directory / f"dev/nvidia-caps/nvidia-cap{minors(driver)['gi7']}").unlink()
    assert seen() == [second]
    if os.geteuid() == 0:
        assert sim_nvml.mig_uuids(sim_nvml.gpu(0)) == [first, second]
    assert in_child(seen_by_root_of_a_namespace) == [second]


def test_a_refused_slice_cannot_be_found_by_its_uuid(driver: Host) -> None:
    make_slices(driver)
    first, _ = sim_nvml.mig_uuids(sim_nvml.gpu(0))
    refuse(driver, f"nvidia-caps/nvidia-cap{minors(driver)['gi7']}")
    uid = NOBODY if os.geteuid() == 0 else None
    assert in_child(lambda: sim_nvml.code(n.nvmlDeviceGetHandleByUUID, first), uid) == n.NVML_ERROR_NOT_FOUND


def test_a_refused_gpu_is_not_counted(driver: Host) -> None:
    wanted = n.nvmlDeviceGetUUID(sim_nvml.gpu(1))
    refuse(driver, "nvidia0")
    uid = NOBODY if os.geteuid() == 0 else None
    assert in_child(lambda: [n.nvmlDeviceGetCount(), n.nvmlDeviceGetUUID(sim_nvml.gpu(0))], uid) == [
        1,
        wanted,
    ]


def test_a_process_without_the_control_node_has_no_nvml(driver: Host) -> None:
    refuse(driver, "nvidiactl")
    uid = NOBODY if os.geteuid() == 0 else None
    assert in_child(lambda: sim_nvml.code(n.nvmlInit), uid) == n.NVML_ERROR_NO_PERMISSION


# ---- nodes ----


@pytest.fixture
def devices() -> ModuleType:
    spec = importlib.util.spec_from_file_location("devices", GUEST / "devices.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_drivers_majors_join_the_kernels(devices: ModuleType) -> None:
    table = devices.with_driver(PROC_DEVICES)
    assert devices.majors(table) == {
        **{"mem": 1, "ndctl": 254, "dimmctl": 253},
        **{"nvidia": 195, "nvidiactl": 195, "nvidia-uvm": 252, "nvidia-caps": 251},
    }
    assert table.endswith("\n\nBlock devices:\n  7 loop\n")
    assert devices.with_driver(table) == table


def test_gpus_are_not_simulated_beside_real_ones(devices: ModuleType) -> None:
    with pytest.raises(ValueError, match="real driver"):
        devices.with_driver(PROC_DEVICES.replace("  1 mem", "195 nvidia-frontend"))


BOOT = """
set -e
mount -t tmpfs none /dev
"$1" init --dev /dev --run "$2/run" a100-80gb
"$1" boot
"$1" boot
grep -c " nvidia-caps$" /proc/devices
python3 "$3" -f /proc/driver/nvidia/capabilities/mig/monitor
stat -c "%n %a" /dev/nvidia0 /dev/nvidiactl /dev/nvidia-caps/nvidia-cap1 /dev/nvidia-caps/nvidia-cap2
findmnt -n -o TARGET | grep -c /proc/d
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes device nodes in a namespace of its own")
def test_boot_makes_nodes_and_mounts_its_tree(make_host: Callable[..., Host]) -> None:
    host = make_host()
    unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", BOOT, "sh"]
    words = [str(GUEST / "simgpu.py"), str(host.directory), str(GUEST / "nvidia_modprobe.py")]
    done = subprocess.run([*unshare, *words], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "1",
        "/dev/nvidia0 666",
        "/dev/nvidiactl 666",
        "/dev/nvidia-caps/nvidia-cap1 400",
        "/dev/nvidia-caps/nvidia-cap2 444",
        "2",
    ], done.stderr


# ---- installing ----


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: ldconfig -r")
def test_install_puts_everything_into_a_root(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for directory in ("etc/systemd/system", "etc/ld.so.conf.d", "usr/local/lib/x86_64-linux-gnu"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "etc/ld.so.conf").write_text("/usr/local/lib/x86_64-linux-gnu\n")
    install(tmp_path, ["a100-80gb:2"], library.parent.parent)
    state = (tmp_path / "var/lib/nvmlsim/state").read_text()
    assert state.count("\ngpu model=a100-80gb") == 2
    install(tmp_path, ["a100-80gb:2"], library.parent.parent)
    assert (tmp_path / "var/lib/nvmlsim/state").read_text() == state
    assert (tmp_path / "etc/systemd/system/sysinit.target.wants/nvmlsim.service").is_symlink()
    cached = subprocess.check_output(["ldconfig", "-r", str(tmp_path), "-p"], text=True)
    assert "libnvidia-ml.so.1" in cached
    environment = {"NVMLSIM_STATE": str(tmp_path / "var/lib/nvmlsim"), "NVMLSIM_LIBRARY": str(library)}
    command = [sys.executable, str(tmp_path / "usr/local/bin/simgpu"), "status"]
    assert "GPU 1 a100-80gb" in subprocess.check_output(command, env=environment, text=True)


def test_install_refuses_an_unknown_model_in_one_sentence(tmp_path: Path, library: Path) -> None:
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    with pytest.raises(RuntimeError, match=r"^There is no GPU model 'rtx': the simulator knows .*\.$"):
        install(tmp_path, ["rtx:1"], library.parent.parent)
