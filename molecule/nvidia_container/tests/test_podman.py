"""A container of Podman has the slice that it asked for: nodes, device controller, what NVML tells."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

# The root of the machine, as an overlay, spares an image. The ulimits are those that any machine allows.
RUN = (
    "podman run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=4096:4096"
    " --device nvidia.com/gpu={device} {more} --rootfs /:O {command}"
)
SLICES = """
import pynvml as n
n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)
for index in range(n.nvmlDeviceGetMaxMigDeviceCount(gpu)):
    try:
        print(n.nvmlDeviceGetUUID(n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)))
    except n.NVMLError_NotFound:
        pass
"""
# A node that the container makes itself: the device controller decides. No driver is behind it here, so what
# is allowed ends with "No such device or address".
OPEN = """
import os, sys
major = os.major(os.stat("/dev/nvidia-caps/nvidia-cap" + sys.argv[1]).st_rdev)
for number, minor in enumerate(sys.argv[1:]):
    path = f"/root/node{number}"
    os.mknod(path, 0o20600, os.makedev(major, int(minor)))
    try:
        os.open(path, os.O_RDONLY)
    except OSError as error:
        print(error.strerror)
"""


def run(device: str, command: str, more: str = "") -> str:
    return RUN.format(device=device, command=command, more=more)


def specification(host) -> dict[str, list[str]]:
    content = json.loads(host.file("/run/cdi/nvidia.yaml").content_string)
    return {
        device["name"]: [node["path"] for node in device["containerEdits"]["deviceNodes"]]
        for device in content["devices"]
    }


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "box12":
        pytest.skip("another machine")


def test_it_has_the_nodes_of_its_slice_only(host):
    nodes = host.check_output(run("0:1", "find /dev -name 'nvidia*' -type c")).split()
    common = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]
    assert sorted(nodes) == sorted(specification(host)["0:1"] + common)


def test_nvml_tells_its_slice_only(host):
    uuid = next(one["uuid"] for one in json.loads(host.check_output("simgpu status --json"))["slices"])
    command = run(uuid, "/opt/gpufarm/gpu/bin/python -c %s")
    assert host.check_output(command, SLICES) == uuid


def test_the_device_controller_keeps_it_from_other_slices(host):
    own, other = (
        specification(host)[name][1].removeprefix("/dev/nvidia-caps/nvidia-cap") for name in ("0:1", "0:0")
    )
    command = run("0:1", f"/opt/gpufarm/gpu/bin/python -c %s {own} {other}", "--cap-add MKNOD")
    assert host.check_output(command, OPEN) == "No such device or address\nOperation not permitted"


def test_the_hooks_of_the_toolkit_are_called(host):
    host.check_output("truncate --size 0 /run/nvidia-cdi-hook.log")
    host.check_output(run("0:0", "true"))
    said = host.file("/run/nvidia-cdi-hook.log").content_string.splitlines()
    assert [one.split()[0] for one in said] == [
        "create-symlinks",
        "update-ldcache",
        "disable-device-node-modification",
    ]
    assert said[1] == "update-ldcache --folder /usr/local/lib/x86_64-linux-gnu"


def test_a_slice_that_is_not_there_is_refused(host):
    done = host.run(run("0:5", "true"))
    assert done.failed
    assert "unresolvable CDI devices nvidia.com/gpu=0:5" in done.stderr
