"""Nothing is left of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

PATHS = (
    "/etc/gpufarm/health.json",
    "/etc/systemd/system/gpufarm-health.service",
    "/etc/systemd/system/gpufarm-health.timer",
    "/opt/gpufarm/bin/gpufarm-health",
    "/opt/gpufarm/lib",
    "/usr/local/sbin/gpufarm-health",
    "/run/gpufarm/health",
    "/var/lib/gpufarm/cordons",
    "/var/lib/gpufarm/health",
    "/var/lib/prometheus/node-exporter/gpufarm_health.prom",
)


def test_nothing_is_left(host):
    assert [path for path in PATHS if host.file(path).exists] == []
    assert "gpufarm-health" not in host.check_output("systemctl list-units --all --plain --no-legend")
