"""Refusals of the role dcgm."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from harness.stubs import encoded, said
from refused import Refused

INSTALLED = "Validate | List the installed packages of DCGM"
DRIVER = "Validate | Read the version of the driver"


def driver(version: str) -> dict[str, str]:
    """Result of ``slurp`` for what the kernel tells of the driver."""
    return encoded(
        f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Apr  8 12:41:17 UTC 2025\n"
    )


REFUSED = {
    "dcgm": [
        Refused("dcgm_ports is no variable of the role", {"dcgm_ports": 3}),
        Refused(
            "which needs dcgm_apt_url and dcgm_apt_key_url", {"dcgm_apt_url": "", "dcgm_apt_key_url": ""}
        ),
        Refused("and a fingerprint has 40 hexadecimal digits", {"dcgm_apt_key_fingerprint": "3bf863cc"}),
        Refused("has a space", {"dcgm_apt_url": "https://mirror.example.org/cuda\nEnabled: no"}),
        Refused("dcgm_version is '4.5 3', which is no version", {"dcgm_version": "4.5 3"}),
        Refused("dcgm_exporter_version is '$x', which is no version", {"dcgm_exporter_version": "$x"}),
        Refused("dcgm_port is 0, which is no port", {"dcgm_port": 0}),
        Refused("An entry of dcgm_readers is no certificate", {"dcgm_readers": ["/etc/cert.pem"]}),
        Refused(
            "has the field 'gpu_temp', which is none of DCGM",
            {"dcgm_metrics": [{"field": "gpu_temp", "help": "Temperature"}]},
        ),
        Refused(
            "dcgm_metrics has DCGM_FI_DEV_GPU_TEMP more than once",
            {"dcgm_metrics": [{"field": "DCGM_FI_DEV_GPU_TEMP", "help": "Temperature"}] * 2},
        ),
        Refused(
            "The help of DCGM_FI_DEV_GPU_TEMP in dcgm_metrics is no line of text",
            {"dcgm_metrics": [{"field": "DCGM_FI_DEV_GPU_TEMP", "help": "a\nb"}]},
        ),
        Refused(
            "host1 has no NVIDIA driver that is loaded, which DCGM needs; run the role nvidia_driver first.",
            {},
            {DRIVER: {"failed": True, "msg": "file not found: /proc/driver/nvidia/version"}},
        ),
        Refused("has the NVIDIA driver of branch 440", {}, {DRIVER: driver("440.33.01")}),
        Refused(
            "has no datacenter-gpu-manager-4-cuda13 1:4.5.3-1; it has none", {}, {DRIVER: driver("580.95.05")}
        ),
        Refused(
            "https://mirror.example.org/cuda has no datacenter-gpu-manager-4-core 1:4.9.0-1;"
            " it has 1:4.5.3-1, 1:4.5.2-1; correct dcgm_version or dcgm_apt_url.",
            {"dcgm_version": "1:4.9.0-1"},
        ),
        Refused("correct dcgm_exporter_version or", {"dcgm_exporter_version": "4.9.0-1"}),
        Refused(
            "has no datacenter-gpu-manager-4-core; it has none",
            {},
            {"gpufarm.cluster.apt_source_info": {"packages": {}}},
        ),
        Refused(
            "host1 has datacenter-gpu-manager 1:3.3.9, beside which DCGM 4 cannot be",
            {},
            {INSTALLED: said("installed\tdatacenter-gpu-manager\t1:3.3.9\n")},
        ),
        Refused(
            "host1 has datacenter-gpu-manager-5-core 1:5.0.0-1, beside which DCGM 4 cannot be",
            {},
            {INSTALLED: said("installed\tdatacenter-gpu-manager-5-core\t1:5.0.0-1\n")},
        ),
        Refused(
            "dcgm_source is preinstalled, and host1 has no datacenter-gpu-manager-exporter",
            {"dcgm_source": "preinstalled"},
            {
                INSTALLED: said(
                    "installed\tdatacenter-gpu-manager-4-core\t1:4.5.3-1\n"
                    "config-files\tdatacenter-gpu-manager-exporter\t4.8.2-1\n"
                )
            },
        ),
        Refused(
            "dcgm_version is 1:4.6.0-1, and host1 has datacenter-gpu-manager-4-core 1:4.5.3-1",
            {"dcgm_source": "preinstalled", "dcgm_version": "1:4.6.0-1"},
            {INSTALLED: said("installed\tdatacenter-gpu-manager-4-core\t1:4.5.3-1\n")},
        ),
    ],
}
