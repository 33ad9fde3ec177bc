"""Slurm's own plugin for NVML, an oracle, finds the slices on a simulated GPU that the role made."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "mig13":
        pytest.skip("another machine")


def slurmd(host, option: str) -> str:
    """Return the output of slurmd; without its configuration it would search a controller endlessly."""
    done = host.run("timeout 60 slurmd %s 2>&1", option)
    assert done.rc == 0, done.stdout
    return done.stdout


def test_slurm_counts_the_slices_by_type(host):
    assert "Found gpu:nvidia_h100_80gb_hbm3_1g.10gb:7 with Autodetect=nvml" in slurmd(host, "-C")


def test_slurm_gives_each_slice_its_own_device_nodes(host):
    found = re.findall(r"Gres Name=gpu Type=1g\.10gb Count=1 .* File=(\S+)", slurmd(host, "-G"))
    expected = []
    for access in host.check_output("ls /proc/driver/nvidia/capabilities/gpu0/mig/gi*/access").split():
        parts = (access, access.replace("/access", "/ci0/access"))
        minors = [host.file(one).content_string.split()[1] for one in parts]
        caps = [f"/dev/nvidia-caps/nvidia-cap{minor}" for minor in minors]
        expected.append(",".join(["/dev/nvidia0", *caps]))
    assert len(expected) == 7 and sorted(found) == sorted(expected)
