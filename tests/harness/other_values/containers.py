"""Apps and jobs of the cluster, and the gateway to them."""

from __future__ import annotations

from typing import Any

from harness.certificates import CERTIFICATE, KEY, OTHER_CERTIFICATE
from harness.recording import Answer
from harness.stubs import PUBLIC_KEY

PROVIDED = {
    "app_gateway_certificate_type": "provided",
    "app_gateway_certificate_file": CERTIFICATE,
    "app_gateway_certificate_key_file": KEY,
}
VALUES: dict[str, Any] = {
    "app_gateway_certificate_file": OTHER_CERTIFICATE,
    "app_gateway_groups": ["external", "internal"],
    "app_gateway_marathon_servers": ["host1"],
    "app_gateway_marathon_urls": ["https://other.example.org:8443"],
    "app_gateway_service_ports": "10001-20000",
    "chronos_job_definition": {"name": "ada.train", "command": "other"},
    "chronos_job_mesos_urls": ["https://other.example.org:5050"],
    "chronos_job_secret_env": {"TOKEN": "other"},
    "chronos_job_urls": ["https://other.example.org:4443"],
    "compose_project_checksum": f"sha256:{'0' * 64}",
    "compose_project_definition": {"services": {"web": {"image": "tracking:2"}}},
    "compose_project_secret_env": {"TOKEN": "other"},
    "compose_project_url": "https://other.example.org/compose.yaml",
    "container_request_disk": "11 GB",
    "container_request_libraries": ["numpy"],
    "container_request_marathon_urls": ["https://other.example.org:8443"],
    "container_request_memory": "5 GB",
    "container_request_mesos_urls": ["https://other.example.org:5050"],
    "container_request_password": "another-password",
    "container_request_ssh_keys": PUBLIC_KEY.replace("ada", "other"),
    "marathon_app_definition": {"id": "/ada/other", "cpus": 2, "mem": 4096},
    "marathon_app_mesos_urls": ["https://other.example.org:5050"],
    "marathon_app_secret_env": {"TOKEN": "other"},
    "marathon_app_urls": ["https://other.example.org:8443"],
}
SSH = {
    "container_request_kind": "ssh",
    "container_request_password": "",
    "container_request_ssh_keys": PUBLIC_KEY,
}
FETCHED = {"compose_project_definition": {}, "compose_project_url": "https://example.org/compose.yaml"}
NEEDS: dict[str, dict[str, Any]] = {
    "app_gateway_certificate_file": PROVIDED,
    "app_gateway_certificate_key_file": PROVIDED,
    "compose_project_checksum": FETCHED,
    "compose_project_url": FETCHED,
    "container_request_ssh_keys": SSH,
}
WITH: dict[str, dict[str, Any]] = {
    "app_gateway_certificate_type": PROVIDED,
    "container_request_kind": SSH,
}
FOUND: dict[str, dict[str, Answer]] = {}
REFUSED: dict[str, str] = {}
