# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alert rules for Prometheus: one for each health check of GPUs, and those of the service itself. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._health.catalogue import MEANINGS
from .alert import CRITICAL, MACHINE, WARNING, Alert
from .mesos_alerts import MESOS
from .slurm_alerts import SLURM

# Prometheus, "Alerting rules", section "Templating": labels may be templates. 1 and 2 are the codes of a
# warning and of a critical status (_health.report.CODES).
BY_STATUS = "{{ if eq $value 1.0 }}warning{{ else }}critical{{ end }}"
DISK = "{{ $labels.device }}"
# A device is told of once, wherever it is mounted. Read-only file systems do not fill up.
FREE = (
    "min by (instance, device) (node_filesystem_avail_bytes / node_filesystem_size_bytes"
    " unless node_filesystem_readonly == 1)"
)
FREE_TOMORROW = (
    "min by (instance, device) (predict_linear(node_filesystem_avail_bytes[6h], 86400)"
    " unless node_filesystem_readonly == 1)"
)
NO_SENDER = 'up{job="alertmanager"} == 0'
SERVICE = (
    Alert(
        "MachineNotSeen",
        'up{job="node"} == 0',
        "5m",
        CRITICAL,
        f"The machine {MACHINE} does not tell how it is.",
        "Look whether it runs, and into 'systemctl status prometheus-node-exporter' there.",
    ),
    Alert(
        "HubDown",
        'up{job="hub"} == 0',
        "5m",
        CRITICAL,
        f"The hub of {MACHINE} does not answer, so nobody can log in or start a notebook.",
        "Look into 'systemctl status jupyterhub jupyterhub-proxy' and 'journalctl -u jupyterhub' there.",
    ),
    Alert(
        "KeeperStopped",
        "time() - gpufarm_hub_measured_timestamp_seconds > 600",
        "5m",
        WARNING,
        f"The hub of {MACHINE} has not looked at its notebooks for ten minutes, so idle ones keep slices.",
        "Look for gpufarm_hub.keeper in 'journalctl -u jupyterhub' there.",
    ),
    Alert(
        "SliceWithoutNotebook",
        "gpufarm_hub_slices_without_notebook > 0",
        "15m",
        WARNING,
        f"On {MACHINE} a slice {{{{ $labels.profile }}}} is held by a notebook that does not run.",
        "Look on the hub's page of slices who holds it, and release it there.",
    ),
    Alert(
        "QueueStuck",
        "gpufarm_hub_waiting > 0 and gpufarm_hub_slices - gpufarm_hub_slices_held > 0",
        "30m",
        WARNING,
        f"On {MACHINE} users wait for a slice {{{{ $labels.profile }}}} although one is free.",
        "Look on the hub's page of slices who waits; a limit for all members of a group may hold them back.",
    ),
    Alert(
        "HealthNotChecked",
        "time() - gpufarm_health_last_run_timestamp_seconds > 3600",
        "5m",
        WARNING,
        f"The health of the GPUs of {MACHINE} has not been checked for an hour.",
        "Look into 'systemctl status gpufarm-health.timer gpufarm-health.service' there.",
    ),
    Alert(
        "HealthUnknown",
        "gpufarm_health_check == 3",
        "15m",
        WARNING,
        f"On {MACHINE} the check {{{{ $labels.check }}}} of a GPU's health cannot be made.",
        "Run 'gpufarm-health' there; it tells why.",
    ),
    Alert(
        "GpuMetricsMissing",
        "gpufarm_gpu_metrics_up == 0",
        "5m",
        WARNING,
        f"On {MACHINE} the use of GPUs is not known in full, as {{{{ $labels.source }}}} does not answer.",
        "Look into 'journalctl -u gpufarm-metrics' there.",
    ),
    Alert(
        "GpuMetricsOld",
        "time() - gpufarm_gpu_metrics_last_run_timestamp_seconds > 600",
        "5m",
        WARNING,
        f"The use of the GPUs of {MACHINE} has not been read for ten minutes.",
        "Look into 'systemctl status gpufarm-metrics.timer gpufarm-metrics.service' there.",
    ),
    Alert(
        "DiskAlmostFull",
        f"{FREE} < 0.05",
        "5m",
        CRITICAL,
        f"On {MACHINE} less than 5 % of {DISK} is free.",
        f"Find what takes the room with 'findmnt {DISK}' and 'du -xh --max-depth=2' there; users' files are"
        " theirs to remove.",
    ),
    Alert(
        "DiskFullSoon",
        f"{FREE_TOMORROW} < 0 and {FREE} < 0.4",
        "1h",
        WARNING,
        f"On {MACHINE} {DISK} will be full within a day if it grows as it does.",
        f"Find what grows with 'findmnt {DISK}' and 'du -xh --max-depth=2' there.",
    ),
    Alert(
        "MemoryAlmostFull",
        "node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes < 0.05",
        "10m",
        WARNING,
        f"On {MACHINE} less than 5 % of the memory is available.",
        "Look with 'systemd-cgtop --order=memory' there what takes it; offer less memory per notebook.",
    ),
    Alert(
        "CertificateEndsSoon",
        "gpufarm_certificate_expiry_timestamp_seconds - time() < 14 * 86400",
        "1h",
        WARNING,
        f"On {MACHINE} the certificate of {{{{ $labels.certificate }}}} ends in less than 14 days.",
        "Renew it, or run the role that made it again.",
    ),
    Alert(
        "AlertsNotSent",
        f"increase(alertmanager_notifications_failed_total[15m]) > 0 or {NO_SENDER} or"
        f" (increase(prometheus_notifications_errors_total[15m]) > 0 unless on (instance) {NO_SENDER})",
        "5m",
        CRITICAL,
        f"{MACHINE} cannot send alerts{{{{ with $labels.integration }}}} by {{{{ . }}}}{{{{ end }}}}"
        "{{ with $labels.alertmanager }} to {{ . }}{{ end }}.",
        "Look into 'journalctl -u prometheus -u prometheus-alertmanager' there, which tells why.",
    ),
)


def health_alert(check: str) -> Alert:
    """Return the alert of one health check; its severity is the status that was found."""
    name = "Gpu" + "".join(part.capitalize() for part in check.split("_"))
    return Alert(
        name.replace("GpuGpu", "Gpu"),
        f'gpufarm_health_check{{check="{check}"}} > 0 < 3',
        "0s",
        BY_STATUS,
        f"{MACHINE}{{{{ with $labels.gpu }}}}, {{{{ . }}}}{{{{ end }}}}: {MEANINGS[check].wrong}.",
        f"{_sentence(MEANINGS[check].step)} The command gpufarm-health tells more there.",
    )


def alerts() -> tuple[Alert, ...]:
    """Return all alerts, those of the service first."""
    return (*SERVICE, *SLURM, *MESOS, *(health_alert(check) for check in MEANINGS))


def rules(muted: Iterable[str]) -> list[dict[str, Any]]:
    """Return the rules as Prometheus reads them.

    Args:
        muted: names of alerts that are left out.
    """
    left_out = set(muted)
    return [one.rule() for one in alerts() if one.name not in left_out]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
