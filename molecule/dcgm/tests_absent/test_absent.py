"""Nothing of the role runs or is left; NVIDIA's packages stay, and apt may upgrade them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_runs(host):
    for name in ("nvidia-dcgm", "nvidia-dcgm-exporter"):
        assert not host.service(name).is_running
        assert not host.service(name).is_enabled


def test_the_packages_stay_and_are_not_held(host):
    assert host.package("datacenter-gpu-manager-exporter").is_installed
    assert host.check_output("apt-mark showhold") == ""
