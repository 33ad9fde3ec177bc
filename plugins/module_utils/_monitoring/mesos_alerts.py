# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alert rules for a Mesos cluster. No I/O."""

from __future__ import annotations

from .alert import CRITICAL, MACHINE, WARNING, Alert

DOWN = "gpufarm_mesos_master_up == 0"
REFUSED = "gpufarm_mesos_requests_taken == 0"

MESOS = (
    Alert(
        "MesosMasterDown",
        DOWN,
        "5m",
        CRITICAL,
        f"The master of Mesos on {MACHINE} does not answer.",
        "Look into 'systemctl status mesos-master' and 'journalctl -u mesos-master' there.",
    ),
    Alert(
        "MesosWithoutLeader",
        REFUSED,
        "5m",
        CRITICAL,
        f"The master of Mesos on {MACHINE} runs and takes no request, as no master leads with a quorum.",
        "Start the masters that do not run, and look whether ZooKeeper answers.",
    ),
    Alert(
        "MesosAgentsUnreachable",
        'gpufarm_mesos_agents{state="unreachable"} > 0',
        "15m",
        WARNING,
        f"{{{{ $value }}}} agents of Mesos do not answer the master on {MACHINE}.",
        "Look into 'systemctl status mesos-agent' on the machines that its page of agents lacks.",
    ),
    Alert(
        "MesosMetricsMissing",
        f"gpufarm_mesos_metrics_up == 0 unless on (instance) ({DOWN} or {REFUSED})",
        "5m",
        WARNING,
        f"Mesos on {MACHINE} does not tell its agents and quotas.",
        "Look into 'journalctl -u gpufarm-mesos-metrics' there.",
    ),
    Alert(
        "MesosMetricsOld",
        "time() - gpufarm_mesos_metrics_last_run_timestamp_seconds > 600",
        "5m",
        WARNING,
        f"Mesos on {MACHINE} has not been asked for ten minutes.",
        "Look into 'systemctl status gpufarm-mesos-metrics.timer gpufarm-mesos-metrics.service' there.",
    ),
)
