"""The GPU Python talks to the driver, and users other than root may run it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

PYTHON = "/opt/gpufarm/gpu/bin/python"
ASK = "import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetName(n.nvmlDeviceGetHandleByIndex(0)))"


def test_the_gpu_python_sees_the_gpu(host):
    model = {"driver12": "NVIDIA A100-SXM4-80GB", "driver13": "NVIDIA H100 80GB HBM3"}
    for user in ("root", "nobody"):
        said = host.check_output(f"runuser -u {user} -- {PYTHON} -c %s", ASK)
        assert said == model[host.check_output("hostname")]


def test_it_holds_the_locked_packages_only(host):
    listing = host.check_output(f"{PYTHON} -m pip list --format freeze --disable-pip-version-check")
    names = {line.split("==")[0] for line in listing.splitlines()}
    assert {"nvidia-ml-py", "uv"} <= names <= {"nvidia-ml-py", "uv", "pip", "setuptools", "wheel"}


def test_no_driver_was_installed(host):
    assert not host.package("libnvidia-ml1").is_installed
    assert not host.file("/etc/modprobe.d/gpufarm-nouveau.conf").exists
