"""JupyterHub and the environments of notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.certificates import CERTIFICATE, KEY, OTHER_CERTIFICATE
from harness.recording import Answer
from harness.specs import options

LOCKS = Path(__file__).resolve().parents[3] / "roles/notebook_environments/files"
PROVIDED = {
    "jupyterhub_certificate_type": "provided",
    "jupyterhub_certificate_file": CERTIFICATE,
    "jupyterhub_certificate_key_file": KEY,
}
VALUES: dict[str, Any] = {
    "jupyterhub_backup_schedule": "hourly",
    "jupyterhub_certificate_file": OTHER_CERTIFICATE,
    "jupyterhub_certificate_type": "provided",
    "jupyterhub_contact_email": "other-contact-email@example.org",
    "jupyterhub_cpu_choices": [7.25, 59.125],
    "jupyterhub_docker_subnet": "172.30.0.0/22",
    "jupyterhub_file_groups": {"other": 59123},
    "jupyterhub_firewall_ports": [29443],
    "jupyterhub_images": [{"image": "registry.example.org/other-images:1"}],
    "jupyterhub_image_names": "registry.example.org/other-image-names:1",
    "jupyterhub_ldap_admin_groups": ["other-ldap-admin-groups"],
    "jupyterhub_ldap_group_filter": "(member={dn})",
    "jupyterhub_ldap_groups": ["other-ldap-groups"],
    "jupyterhub_ldap_url": "ldaps://other.example.org",
    "jupyterhub_ldap_user_filter": "(objectClass=other-ldap-user-filter)",
    "jupyterhub_limits": [{"servers": 1, "name": "other-limits"}],
    "jupyterhub_memory_choices": ["7531M"],
    "jupyterhub_mounts": [{"source": "/srv/other-mounts"}],
    "jupyterhub_notebook_networks": ["10.98.76.0/24"],
    "jupyterhub_own_images": ["registry.example.org/other-own-images/*"],
    "jupyterhub_own_images_groups": ["other-own-images-groups"],
    "jupyterhub_pam_admin_groups": ["other-pam-admin-groups"],
    "jupyterhub_pam_groups": ["other-pam-groups"],
    "jupyterhub_registries": [
        {"registry": "registry.example.org", "username": "other", "password": "other-registries"}
    ],
    "jupyterhub_shared_slices": [
        {"profile": "7g.59gb", "notebooks": 7, "groups": ["other-shared-slices"], "mps": True}
    ],
    "jupyterhub_site_help_url": "https://other-site-help-url.example.org/",
    "jupyterhub_systemd_subnet": "172.29.0.0/22",
    "jupyterhub_backup_keep": 1751,
    "jupyterhub_notebooks_domain": "other.notebooks.example.org",
    "jupyterhub_notebooks_ports": "23483-23489",
    "jupyterhub_http_port": 23481,
    "jupyterhub_idle_gpu_minutes": 71931,
    "jupyterhub_idle_minutes": 71932,
    "jupyterhub_port": 23482,
    "jupyterhub_process_limit": 71933,
    "jupyterhub_queue_claim_minutes": 71935,
    "jupyterhub_queue_patience_minutes": 71934,
    "jupyterhub_relogin_hours": 71936,
    "jupyterhub_tmp_size": "7532M",
    "jupyterhub_token_hours": 71937,
    "jupyterhub_slurm_partition": "small",
    "jupyterhub_warning_minutes": 71930,
    "notebook_environments_default": "jax",
    "notebook_environments_folder": "/srv/other/environments",
    "notebook_environments_more": [{"name": "other", "lock": (LOCKS / "scientific.lock").read_text()}],
    "notebook_environments_names": "jax, scientific",
}
LDAP = {
    "jupyterhub_login": "ldap",
    "jupyterhub_ldap_url": "ldaps://ldap.example.org",
    "jupyterhub_ldap_bind_dn": "cn=hub",
    "jupyterhub_ldap_bind_password": "password",
    "jupyterhub_ldap_user_base": "ou=people",
    "jupyterhub_ldap_group_base": "ou=groups",
    "jupyterhub_ldap_groups": ["gpu-users"],
}
DOCKER = {
    "jupyterhub_collaborative": True,
    "jupyterhub_collaborative_image": "registry.example.org/together:1",
    "jupyterhub_images": [{"image": "registry.example.org/hub:1"}],
    "jupyterhub_spawner": "docker",
}
SLURM = {
    "jupyterhub_login": "pam",
    "jupyterhub_pam_groups": ["users"],
    "jupyterhub_spawner": "slurm",
    "jupyterhub_slurm_partition": "gpu",
}
CLIENT = {"jupyterhub_iam_client_id": "hub", "jupyterhub_iam_client_secret": "secret"}
PAM = {"jupyterhub_login": "pam", "jupyterhub_pam_groups": ["users"]}
# Compatible settings are given together, as each group of variables takes runs of its own.
TOGETHER = {
    **CLIENT,
    "jupyterhub_certificate_type": "letsencrypt-prod",
    "jupyterhub_collaborative": True,
    "jupyterhub_contact_email": "admin@example.org",
    "jupyterhub_firewall": True,
    "jupyterhub_port": 443,
}
NEEDS: dict[str, dict[str, Any]] = {
    **dict.fromkeys((name for name in options("jupyterhub") if "_ldap_" in name), LDAP),
    **dict.fromkeys((name for name in options("jupyterhub") if "_pam_" in name), PAM),
    **dict.fromkeys((name for name in options("jupyterhub") if "_collaborative_" in name), TOGETHER),
    **dict.fromkeys(CLIENT, TOGETHER),
    "jupyterhub_certificate_file": PROVIDED,
    "jupyterhub_certificate_key_file": PROVIDED,
    "jupyterhub_acme_ca_file": TOGETHER,
    "jupyterhub_acme_directory_url": TOGETHER,
    "jupyterhub_collaborative_image": DOCKER,
    "jupyterhub_contact_email": TOGETHER,
    "jupyterhub_firewall_ports": TOGETHER,
    "jupyterhub_hsts_days": TOGETHER,
    "jupyterhub_registries": DOCKER,
    "jupyterhub_slurm_hub_host": SLURM,
    "jupyterhub_slurm_partition": SLURM,
}
WITH: dict[str, dict[str, Any]] = {
    "jupyterhub_certificate_type": PROVIDED,
    "jupyterhub_collaborative_profile": {"jupyterhub_collaborative_use_gpu": True},
    "jupyterhub_login": LDAP,
    "jupyterhub_spawner": DOCKER,
}
FOUND: dict[str, dict[str, Answer]] = {}
REFUSED: dict[str, str] = {}
