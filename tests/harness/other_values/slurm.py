"""The controller and the nodes of Slurm."""

from __future__ import annotations

from typing import Any

from harness.certificates import CERTIFICATE, KEY, OTHER_CERTIFICATE
from harness.recording import Answer
from harness.stubs import has, said

PROVIDED = {
    "slurm_rest_certificate_type": "provided",
    "slurm_rest_certificate_file": CERTIFICATE,
    "slurm_rest_certificate_key_file": KEY,
}
MARKS = "Configure | Read the marks of all controllers as Slurm"
VALUES: dict[str, Any] = {
    "slurm_accounting_controllers": ["host2"],
    "slurm_controller_constrain": ["devices"],
    "slurm_controller_gres": {"host1": {"1g.10gb": 6}},
    "slurm_controller_hosts": ["host1", "host2"],
    "slurm_controller_nodes": ["host2"],
    "slurm_controller_partitions": [{"name": "other-partitions"}],
    "slurm_controller_settings": {"KillWait": 71931},
    "slurm_job_environment": {"DATA": "other"},
    "slurm_job_folder": "work/other",
    "slurm_job_gpu": "1g.10gb",
    "slurm_job_machine": "host2",
    "slurm_login_controllers": ["host3"],
    "slurm_node_controllers": ["host2"],
    "slurm_rest_certificate_file": OTHER_CERTIFICATE,
    "slurm_rest_controllers": ["host3"],
    "slurm_rest_public_host": "gpu1.example.org",  # as the certificates for tests name it
}
NEEDS: dict[str, dict[str, Any]] = {
    **{
        f"{role}_remove_with_jobs": {f"{role}_state": "absent"}
        for role in ("slurm_accounts", "slurm_controller", "slurm_node")
    },
    "slurm_controller_token_hours": {"slurm_controller_tokens": True},
    "slurm_job_gpu": {"slurm_job_gpus": 1},
    "slurm_rest_certificate_file": PROVIDED,
    "slurm_rest_certificate_key_file": PROVIDED,
}
WITH: dict[str, dict[str, Any]] = {
    "slurm_controller_hosts": {"slurm_controller_state_directory": "/srv/state"},
    "slurm_rest_certificate_type": PROVIDED,
}
FOUND: dict[str, dict[str, Answer]] = {
    "slurm_controller_hosts": {MARKS: said("gpufarm-controller-host1\ngpufarm-controller-host2")},
    "slurm_controller_remove_with_jobs": {"gpufarm.cluster.path_info": has("/etc/slurm", "/etc/systemd")},
}
REFUSED: dict[str, str] = {
    "slurm_controller_gres": "slurm_controller_gres expects gpu:1g.10gb:6 of host1, which has gpu:1g.10gb:7",
}
