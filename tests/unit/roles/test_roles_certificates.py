"""Certificates of proxies: nobody else reads a key, and an authority is known where its file was given."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from harness.certificates import CERTIFICATE, KEY
from harness.host import Host
from harness.life import run


@pytest.mark.parametrize("role", ["app_gateway", "paas_service", "slurm_rest"])
def test_only_the_proxy_reads_the_key_of_a_provided_certificate(role: str) -> None:
    host = Host()
    one = run(
        role,
        host,
        {
            f"{role}_certificate_type": "provided",
            f"{role}_certificate_file": CERTIFICATE,
            f"{role}_certificate_key_file": KEY,
        },
    )
    assert not one.failed, one.refusal
    key = Path(KEY).read_text().strip()
    assert {file.mode for file in host.files.values() if key in file.content} == {"0640"}


AUTHORITY = "/etc/jupyterhub/acme-ca.crt"


@pytest.mark.parametrize("schedule", ["", "daily"])
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("role", ["jupyterhub"])
def test_the_client_of_an_authority_knows_its_certificate(role: str, schedule: str, given: bool) -> None:
    host = Host()
    own = {
        "jupyterhub_acme_directory_url": "https://ca.example.org/directory",
        "jupyterhub_acme_ca_file": CERTIFICATE,
    }
    one = run(
        role,
        host,
        {
            "jupyterhub_certificate_type": "letsencrypt-prod",
            "jupyterhub_contact_email": "admin@example.org",
            "jupyterhub_backup_schedule": schedule,
            **(own if given else {}),
        },
    )
    assert not one.failed, one.refusal
    assert (AUTHORITY in host.files) == given
