"""Nothing of the monitoring is left but what was measured."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from testinfra.host import Host

PATHS = (
    "/etc/gpufarm/monitoring",
    "/etc/systemd/system/prometheus.service.d",
    "/etc/systemd/system/prometheus-alertmanager.service.d",
    "/etc/systemd/system/prometheus-node-exporter.service.d",
    "/etc/systemd/system/gpufarm-metrics.service",
    "/etc/systemd/system/gpufarm-metrics.timer",
    "/opt/gpufarm/bin/gpufarm-metrics",
    "/usr/bin/prometheus",
    "/usr/bin/prometheus-alertmanager",
    "/usr/bin/prometheus-node-exporter",
    "/var/lib/gpufarm/monitoring",
    "/var/lib/prometheus/node-exporter/gpufarm_gpu.prom",
)


def test_nothing_is_left(host: Host) -> None:
    assert [path for path in PATHS if host.file(path).exists] == []
    for port in (9090, 9093, 9100):
        assert not host.socket(f"tcp://{port}").is_listening
    units = host.check_output(
        "systemctl list-units --all --plain --no-legend 'prometheus*' 'gpufarm-metrics*'"
    )
    assert units == ""


def test_what_was_measured_is_kept(host: Host) -> None:
    assert host.file("/var/lib/prometheus/metrics2/wal").is_directory
