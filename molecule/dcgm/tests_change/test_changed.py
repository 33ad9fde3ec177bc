"""Other versions, metrics and clients count at once."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

OTHER = (
    "curl --silent --fail --cacert /etc/gpufarm/monitoring/cert.pem"
    " --cert /root/other.pem --key /root/other.key"
)


def test_the_other_machine_reads_the_chosen_metrics(host):
    address = host.check_output("hostname -I").split()[0]
    shown = host.check_output(
        f"{OTHER} --connect-to gpufarm-monitoring:9400:{address}:9400 https://gpufarm-monitoring:9400/metrics"
    )
    assert {line.split("{")[0] for line in shown.splitlines() if line.startswith("DCGM_")} == {
        "DCGM_FI_DEV_FB_USED"
    }
    assert 'DCGM_FI_DRIVER_VERSION="' in shown


def test_programs_of_the_new_versions_run(host):
    assert host.package("datacenter-gpu-manager-4-core").version == "1:4.5.3-1"
    for unit, version in (("nvidia-dcgm", "4.5.3"), ("nvidia-dcgm-exporter", "4.8.2")):
        started = host.check_output(f"journalctl --unit {unit} --output cat | grep ^version | tail -n 1")
        assert started == f"version {version}"
