# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alert rules for a Slurm cluster. No I/O."""

from __future__ import annotations

from .alert import CRITICAL, MACHINE, WARNING, Alert

ANSWERS = "max by (instance) (gpufarm_slurm_controller_up)"
LONG_WAIT = 24 * 3600  # seconds
NEARLY = 0.8  # of a budget

SLURM = (
    Alert(
        "SlurmDown",
        f"{ANSWERS} == 0",
        "5m",
        CRITICAL,
        f"No controller of Slurm answers {MACHINE}, so no job starts.",
        "Look into 'systemctl status slurmctld' and 'journalctl -u slurmctld' there.",
    ),
    Alert(
        "SlurmControllerDown",
        f"gpufarm_slurm_controller_up == 0 and on (instance) {ANSWERS} == 1",
        "5m",
        WARNING,
        f"The controller {{{{ $labels.controller }}}} of Slurm does not answer {MACHINE}; another one does.",
        "Look into 'systemctl status slurmctld' and 'journalctl -u slurmctld' on the controller.",
    ),
    Alert(
        "SlurmNodeUnusable",
        "gpufarm_slurm_node_unusable == 1",
        "15m",
        WARNING,
        f"The node {{{{ $labels.node }}}} of Slurm on {MACHINE} is {{{{ $labels.state }}}} and takes no job"
        "{{ with $labels.reason }}: {{ . }}{{ end }}.",
        "Mend what the reason says; then run 'scontrol update nodename={{ $labels.node }} state=resume'.",
    ),
    Alert(
        "SlurmJobsStuck",
        "gpufarm_slurm_jobs_stuck > 0",
        "1h",
        WARNING,
        f"On {MACHINE} {{{{ $value }}}} jobs of the partition {{{{ $labels.partition }}}} can never start"
        " ({{ $labels.reason }}).",
        "List them with 'squeue --states=pending'; their users must change or cancel them.",
    ),
    Alert(
        "SlurmQueueLong",
        f"gpufarm_slurm_wait_longest_seconds > {LONG_WAIT}",
        "15m",
        WARNING,
        f"On {MACHINE} a job of the partition {{{{ $labels.partition }}}} waits"
        " for {{ $value | humanizeDuration }}.",
        "Look with 'squeue --states=pending --start' and 'sinfo' there what holds it back.",
    ),
    Alert(
        "SlurmBudgetNearlyUsed",
        f"gpufarm_slurm_budget_used_hours > {NEARLY} * gpufarm_slurm_budget_hours",
        "5m",
        WARNING,
        f'On {MACHINE} the account {{{{ $labels.account }}}} has used {{{{ $value | printf "%.0f" }}}} hours'
        " of {{ $labels.resource }}, and Slurm starts none of its jobs beyond its limit.",
        "Tell its users, or give it more in slurm_accounts_accounts.",
    ),
    Alert(
        "SlurmMetricsMissing",
        f"gpufarm_slurm_metrics_up == 0 unless on (instance) {ANSWERS} == 0",
        "5m",
        WARNING,
        f"Slurm on {MACHINE} does not tell its jobs and nodes.",
        "Look into 'journalctl -u gpufarm-slurm-metrics' there.",
    ),
    Alert(
        "SlurmMetricsOld",
        "time() - gpufarm_slurm_metrics_last_run_timestamp_seconds > 600",
        "5m",
        WARNING,
        f"Slurm on {MACHINE} has not been asked for its jobs and nodes for ten minutes.",
        "Look into 'systemctl status gpufarm-slurm-metrics.timer gpufarm-slurm-metrics.service' there.",
    ),
)
