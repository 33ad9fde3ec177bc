# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of the deployer as a service."""

from __future__ import annotations

from typing import Any

from harness.certificates import CERTIFICATE, KEY, OTHER_CERTIFICATE
from harness.recording import Answer

PROVIDED = {
    "paas_service_certificate_type": "provided",
    "paas_service_certificate_file": CERTIFICATE,
    "paas_service_certificate_key_file": KEY,
}
VALUES: dict[str, Any] = {
    "paas_service_callbacks": {"hosts": ["other.example.org"]},
    "paas_service_certificate_file": OTHER_CERTIFICATE,
    "paas_service_database": "postgresql+psycopg://other@db.example.org/other",
    "paas_service_files": {"other.pem": "other"},
    "paas_service_issuers": [{"issuer": "https://other.example.org/"}],
    "paas_service_known_hosts": ["gpu1 ssh-ed25519 AAAAother"],
    "paas_service_limits": {"body_mib": 7},
    "paas_service_metrics_from": ["192.0.2.7"],
    "paas_service_pages": {"issuer": "https://iam.example.org/", "client_id": "other"},
    "paas_service_pool": {"all": {"hosts": {"other": {}}}},
    "paas_service_public_host": "gpu1.example.org",
    "paas_service_quotas": {"user": {"deployments": 7}},
    "paas_service_secrets": {"other": "s3cret"},
    "paas_service_services": {"cmdb_url": "https://other.example.org/"},
    "paas_service_templates": {"other": {"template": "gpu_container"}},
}
NEEDS: dict[str, dict[str, Any]] = {
    "paas_service_certificate_file": PROVIDED,
    "paas_service_certificate_key_file": PROVIDED,
    "paas_service_remove_data": {"paas_service_state": "absent"},
}
WITH: dict[str, dict[str, Any]] = {"paas_service_certificate_type": PROVIDED}
FOUND: dict[str, dict[str, Answer]] = {}
REFUSED: dict[str, str] = {}
