"""DCGM and its exporter see the GPUs, and users of the machine reach neither."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest

ENGINE = "dcgmi discovery --host unix:///run/gpufarm-dcgm/socket --list"
IDENTITY = "/etc/gpufarm/monitoring"
CURL = (
    f"curl --silent --fail --cacert {IDENTITY}/cert.pem --cert {IDENTITY}/cert.pem --key {IDENTITY}/key.pem"
)
PACKAGES = [
    "datacenter-gpu-manager-4-core",
    "datacenter-gpu-manager-4-cuda12",
    "datacenter-gpu-manager-exporter",
]


@pytest.mark.parametrize("name", ["nvidia-dcgm", "nvidia-dcgm-exporter"])
def test_services_run_now_and_after_a_reboot(host, name):
    assert host.service(name).is_running
    assert host.service(name).is_enabled


def test_only_root_reaches_the_host_engine(host):
    assert "GPU" in host.check_output(ENGINE)
    assert host.run(f"runuser --user nobody -- {ENGINE}").rc != 0
    listeners = host.socket.get_listening_sockets()
    assert not [one for one in listeners if one.endswith(":5555")]


def test_only_known_clients_read_the_metrics(host):
    listeners = host.socket.get_listening_sockets()
    assert [one for one in listeners if one.endswith(":9400")] == ["tcp://127.0.0.1:9400"]
    assert "DCGM_FI_DEV_GPU_TEMP" in host.check_output(f"{CURL} https://localhost:9400/metrics")
    assert host.run("curl --silent --insecure https://127.0.0.1:9400/metrics").rc != 0
    assert host.run("curl --silent --fail http://127.0.0.1:9400/metrics").rc != 0
    assert host.run(f"runuser --user nobody -- {CURL} https://localhost:9400/metrics").rc != 0
    key = host.file(f"{IDENTITY}/key.pem")
    assert (key.user, key.mode) == ("root", 0o600)


def test_each_gpu_has_metrics(host):
    shown = host.check_output(f"{CURL} https://localhost:9400/metrics")
    gpus = {"dcgm12": 1, "dcgm13": 2}[host.check_output("hostname")]
    assert len(set(re.findall(r'^DCGM_FI_DEV_GPU_TEMP\{.*UUID="(GPU-[^"]+)"', shown, re.M))) == gpus


def test_the_package_source_is_there_once(host):
    files = host.check_output(
        "grep --recursive --files-with-matches 127.0.0.1:8098 /etc/apt/sources.list.d"
    ).split()
    own = "/etc/apt/sources.list.d/gpufarm-dcgm.sources"
    expected = {"dcgm12": own, "dcgm13": "/etc/apt/sources.list.d/other.sources"}
    assert files == [expected[host.check_output("hostname")]]
    assert host.run("apt-get update").rc == 0


def test_an_upgrade_of_the_system_leaves_the_versions(host):
    assert host.check_output("apt-mark showhold").split() == PACKAGES
    assert "datacenter-gpu-manager" not in host.check_output(
        "apt-get --simulate dist-upgrade | grep ^Inst || true"
    )
    assert host.package("datacenter-gpu-manager-4-core").version == "1:4.5.2-1"
    assert host.package("datacenter-gpu-manager-exporter").version == "4.8.1-1"
