"""Variables of single hosts: GPUs, their driver, partitions and health, user accounts, monitoring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.certificates import CERTIFICATE
from harness.recording import Answer
from harness.specs import options
from harness.stubs import APT_KEY_FINGERPRINT, PARTITIONED, PUBLIC_KEY, said

CERTIFICATE_TEXT = Path(CERTIFICATE).read_text()
VALUES: dict[str, Any] = {
    "slurm_accounts_accounts": [{"name": "other", "users": ["ada"]}],
    "slurm_accounts_qos": [{"name": "other"}],
    "slurm_accounts_reservations": [
        {"name": "other", "start": "2030-01-01", "end": "2030-01-02", "users": ["ada"], "nodes": ["n1"]}
    ],
    "environment_modules_cuda": ["/srv/other/cuda-*"],
    "environment_modules_modules": [{"name": "other", "version": "1"}],
    "environment_modules_shells": ["zsh"],
    "environment_modules_trees": ["/srv/other/tree"],
    "benchmarks_folders": ["/srv/other"],
    "benchmarks_nccl_tests": "/srv/other",
    "benchmarks_networks": ["198.51.100.0/24"],
    "benchmarks_peers": ["host1", "host3"],
    "sssd_bind_dn": "cn=other,dc=example,dc=org",
    "sssd_group_base": "ou=other,dc=example,dc=org",
    "sssd_home_folder": "/srv/other",
    "sssd_servers": ["ldap://other.example.org"],
    "sssd_user_base": "ou=others,dc=example,dc=org",
    "scratch_path": "/srv/other/areas",
    "scratch_quota": "2T",
    "staging_areas": "/srv/other/users",
    "staging_partition": "other",
    "staging_stores": [{"name": "other", "path": "/srv/other"}],
    "network_interfaces": [{"name": "eth1", "addresses": ["203.0.113.7/24"]}],
    "mpi_process_networks": ["198.51.100.0/24"],
    "fabric_rails": [{"name": "other", "device": "mlx5_0"}],
    "fabric_vendor_packages": ["other-ofed"],
    "dcgm_exporter_version": "4.8.1-1",
    "dcgm_metrics": [{"field": "DCGM_FI_DEV_FB_USED", "help": "Memory"}],
    "dcgm_readers": ["-----BEGIN CERTIFICATE-----\nother\n-----END CERTIFICATE-----"],
    "dcgm_version": "1:4.5.2-1",
    "gpu_health_disabled_checks": ["temperature"],
    "gpu_health_drain_command": ["/bin/other-drain"],
    "gpu_health_resume_command": ["/bin/other-resume"],
    "gpu_health_thresholds": {"idle_memory_mib": 3},
    "gpu_health_xid_status": {"13": "warning"},
    "gpu_settings_entries": [{"gpus": ["GPU-other"], "compute_mode": "prohibited"}],
    "mig_gpus": ["GPU-other"],
    "mig_layout": [{"profile": "3g.40gb"}],
    "mig_partition_flavor": "3x 2g.20gb",
    "mig_stop_services": ["other.service"],
    "monitoring_alert_mail_from": "other-from@example.org",
    "monitoring_alert_mail_server": "other-smtp.example.org:587",
    "monitoring_alert_mail_to": ["other-to@example.org"],
    "monitoring_alert_webhooks": [{"url": "https://other-hook.example.org/"}],
    "monitoring_alertmanager_url": "https://other.example.org:9093",
    "monitoring_hub_machines": [["host2"]],
    "monitoring_hubs": [
        {
            "name": "other",
            "url": "https://other.example.org",
            "ca_certificate": CERTIFICATE_TEXT,
            "token": "T",
        }
    ],
    "monitoring_machines": [["host2"]],
    "monitoring_muted_alerts": ["MachineNotSeen"],
    "monitoring_interval": 97,
    "monitoring_parts": ["node"],
    "monitoring_readers": ["-----BEGIN CERTIFICATE-----\nother\n-----END CERTIFICATE-----"],
    "monitoring_retention_days": 71939,
    "monitoring_retention_size": "7531GB",
    "monitoring_servers": ["host2"],
    "monitoring_targets": [{"name": "other", "address": "other:9100", "certificate": CERTIFICATE_TEXT}],
    "nvidia_container_engines": ["podman"],
    "nvidia_container_version": "1.20.2-1",
    "nvidia_driver_kernels": ["6.1.0-40-amd64"],
    "nvidia_driver_repository_key_fingerprint": APT_KEY_FINGERPRINT,
    "nvidia_driver_runfile": "/srv/other.run",
    "nvidia_driver_signing_certificate": "/srv/other.der",
    "nvidia_driver_version": "570",
    "user_accounts_name_suffix": "-x",
    "user_accounts_users": [{"os_user_name": "ben", "os_user_ssh_public_key": PUBLIC_KEY}],
}
RUNFILE = {
    "nvidia_driver_source": "runfile",
    "nvidia_driver_runfile": "https://mirror.example.org/NVIDIA-Linux-x86_64-570.133.20.run",
    "nvidia_driver_runfile_checksum": f"sha256:{'0' * 64}",
}
BY_ITSELF = ("nvidia_driver_enabled", "nvidia_driver_source", "nvidia_driver_state")
MAIL = {
    "monitoring_alert_mail_to": ["ops@example.org"],
    "monitoring_alert_mail_from": "farm@example.org",
    "monitoring_alert_mail_server": "smtp.example.org:587",
}
LOGIN = {**MAIL, "monitoring_alert_mail_user": "farm", "monitoring_alert_mail_password": "pass"}
NEEDS: dict[str, dict[str, Any]] = {
    **{
        name: {"nvidia_driver_source": "distribution"}
        for name in options("nvidia_driver")
        if name not in BY_ITSELF
    },
    **dict.fromkeys(("nvidia_driver_runfile", "nvidia_driver_runfile_checksum"), RUNFILE),
    **dict.fromkeys((*MAIL, "monitoring_alertmanager_port"), MAIL),
    **dict.fromkeys(("monitoring_alert_mail_user", "monitoring_alert_mail_password"), LOGIN),
    "monitoring_remove_data": {"monitoring_state": "absent"},
    "slurm_accounting_remove_data": {"slurm_accounting_state": "absent"},
}
WITH: dict[str, dict[str, Any]] = {
    "gpu_health_resume_command": {"gpu_health_drain_command": ["/bin/drain"]},
    "mig_layout": {"mig_partition_flavor": "None"},
}
FOUND: dict[str, dict[str, Answer]] = {
    "dcgm_source": {
        "Validate | List the installed packages of DCGM": said(
            "installed\tdatacenter-gpu-manager-4-core\t1:4.5.3-1\n"
            "installed\tdatacenter-gpu-manager-exporter\t4.8.2-1\n"
        )
    },
    "mig_reboot": {"gpufarm.cluster.mig_partition": {**PARTITIONED, "reboot_required": True}},
}
REFUSED: dict[str, str] = {}
