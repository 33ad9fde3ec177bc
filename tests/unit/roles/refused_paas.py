"""Refusals of the role of the deployer as a service."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.certificates import EXPIRED, EXPIRED_KEY
from harness.recording import Answer
from refused import Refused


def paas(words: str, answers: Mapping[str, Answer] | None = None, /, **variables: Any) -> Refused:
    return Refused(words, {f"paas_service_{name}": value for name, value in variables.items()}, answers or {})


REFUSED: dict[str, list[Refused]] = {
    "paas_service": [
        paas("paas_service_issuers is empty, so nobody could deploy anything", issuers=[]),
        paas("paas_service_templates is empty", templates={}),
        paas("paas_service_pool is empty", pool={}),
        paas(
            "paas_service_public_host is 'Paas.example.org', no name of a machine",
            public_host="Paas.example.org",
        ),
        paas("paas_service_https_port is 0; choose a port from 1 to 65535", https_port=0),
        paas("paas_service_server_port is 80; choose 1024 or more", server_port=80),
        paas("are the same; choose two ports", https_port=8080),
        paas("paas_service_workers is 0; choose 1 to 64", workers=0),
        paas("paas_service_certificate_type is provided, so", certificate_type="provided"),
        paas(
            "expired at",
            certificate_type="provided",
            certificate_file=EXPIRED,
            certificate_key_file=EXPIRED_KEY,
        ),
        paas("paas_service_known_hosts has 'gpu1'; write HOST TYPE KEY", known_hosts=["gpu1"]),
        paas("paas_service_database does not begin with postgresql+psycopg://", database="mysql://x/y"),
        paas("has a password in it", database="postgresql+psycopg://ann:swordfish@db/x"),
        paas("paas_service_files has the name '../x'", files={"../x": ""}),
        paas("paas_service_files has no text for 'x'", files={"x": 1}),
        paas("paas_service_secrets has pgpass, which the role writes", secrets={"pgpass": "x"}),
    ]
}
