"""For each variable of a role another valid value, and the variables without which it means nothing."""

from __future__ import annotations

from typing import Any

from harness.cases import CASES
from harness.certificates import CERTIFICATE, KEY, OTHER_CERTIFICATE
from harness.specs import defaults, options
from harness.stubs import PUBLIC_KEY

# Texts, lists and dicts; numbers get one more, switches and choices something else than they are.
VALUES: dict[str, Any] = {
    "app_gateway_certificate_file": OTHER_CERTIFICATE,
    "app_gateway_groups": ["external", "internal"],
    "app_gateway_marathon_servers": ["host1"],
    "app_gateway_marathon_urls": ["https://other.example.org:8443"],
    "app_gateway_service_ports": "10001-20000",
    "chronos_job_definition": {"name": "ada.train", "command": "other"},
    "chronos_job_secret_env": {"TOKEN": "other"},
    "chronos_job_urls": ["https://other.example.org:4443"],
    "gpu_health_disabled_checks": ["temperature"],
    "gpu_health_drain_command": ["/bin/other-drain"],
    "gpu_health_resume_command": ["/bin/other-resume"],
    "gpu_health_thresholds": {"idle_memory_mib": 3},
    "gpu_health_xid_status": {"13": "warning"},
    "marathon_app_definition": {"id": "/ada/other", "cpus": 2, "mem": 4096},
    "marathon_app_secret_env": {"TOKEN": "other"},
    "marathon_app_urls": ["https://other.example.org:8443"],
    "mig_gpus": ["GPU-other"],
    "mig_layout": [{"profile": "3g.40gb"}],
    "mig_partition_flavor": "3x 2g.20gb",
    "mig_stop_services": ["other.service"],
    "nvidia_container_engines": ["podman"],
    "nvidia_container_version": "1.20.2-1",
    "shared_home_options": ["noatime"],
    "shared_home_quota": "8G",
    "shared_home_user_quotas": {"ada": "9G"},
    "shared_home_source": "nfs.example.org:/other",
    "user_accounts_name_suffix": "-x",
    "user_accounts_users": [{"os_user_name": "ben", "os_user_ssh_public_key": PUBLIC_KEY}],
    "zookeeper_commands": ["mntr", "srvr", "conf"],
    "zookeeper_machines": ["host1"],
    "zookeeper_packages": ["libzookeeper-java", "other-jre"],
    "zookeeper_servers": [{"id": 7, "name": "host1"}],
    "zookeeper_settings": {"tickTime": 3000},
}
PROVIDED = {"app_gateway_certificate_file": CERTIFICATE, "app_gateway_certificate_key_file": KEY}
LOCAL = {"shared_home_kind": "local", "shared_home_source": "UUID=0a3407de-014b-458b-b5c1-848e92a327a3"}
# What a variable means nothing without: set both before it is changed and after.
NEEDS: dict[str, dict[str, Any]] = {
    "app_gateway_certificate_file": {"app_gateway_certificate_type": "provided", **PROVIDED},
    "shared_home_quota": LOCAL,
    "shared_home_quota_files": LOCAL,
    "shared_home_user_quotas": LOCAL,
}
# What has to be given with another value, which is refused without it.
WITH: dict[str, dict[str, Any]] = {
    "app_gateway_certificate_type": PROVIDED,
    "gpu_health_resume_command": {"gpu_health_drain_command": ["/bin/drain"]},
    "mig_layout": {"mig_partition_flavor": "None"},
    "shared_home_kind": LOCAL,
}
# What no other value can show in a run without a host.
UNSEEN: dict[str, str] = {
    "app_gateway_certificate_key_file": "another key is not that of the certificate, and is refused",
    "mig_reboot": "needs a GPU whose mode of MIG changes at a reboot",
    "nvidia_container_key_fingerprint": "the key of the package source has only this one",
    "zookeeper_machines": "the host of the case is alone, and is the ensemble whether it is named or not",
}


def other(role: str, name: str) -> Any:
    """Return a valid value of a variable that is not the one of the role's case."""
    if name in VALUES:
        return VALUES[name]
    option = options(role)[name]
    now: Any = {**defaults(role), **CASES[role].variables}.get(name)
    if option["type"] == "bool":
        return not now
    if option["type"] in ("int", "float"):
        return now + 1
    if "choices" in option:
        return next(choice for choice in option["choices"] if choice != now)
    if name.endswith("_file"):
        return CERTIFICATE
    if name.endswith("_url"):
        return "https://other.example.org/"
    if name.endswith("_address"):
        return "10.0.0.77"
    return "/srv/other" if str(now).startswith("/") or name.endswith("_directory") else "other"
