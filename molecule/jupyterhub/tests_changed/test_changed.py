"""Other settings hold, at the provider as well."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from lab.patience import PATIENCE
from lab.visitor import Refused, Visitor, trust


@pytest.fixture
def visitor(bench, facts):
    certificate = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "certificates" / "hub.pem"
    context = trust(certificate.read_text(), Path(bench["iam"]["ca_file"]).read_text())
    with Visitor(f"https://{facts['address']}:8889", context) as visitor:
        yield visitor


def test_the_old_port_is_closed(host):
    assert not host.socket("tcp://8888").is_listening


def test_an_installed_hub_that_was_changed_by_hand_is_repaired(host):
    package = "/opt/jupyterhub/lib/python3*/site-packages/gpufarm_hub"
    assert "def " in host.check_output(f"cat {package}/files.py")
    assert host.run(f"grep --recursive 'changed by hand' {package}").stdout == ""


def test_the_client_is_the_same_with_another_redirect(host):
    before, after = (
        json.loads(host.file(path).content_string)
        for path in ("/root/client-before.json", "/etc/jupyterhub/secrets/oidc_client.json")
    )
    assert after["client_id"] == before["client_id"]
    assert [uri.rpartition(":")[2] for uri in after["requested"]["redirect_uris"]] == [
        "8889/hub/oauth_callback"
    ]


def test_who_was_in_the_group_is_out(visitor, passwords):
    with pytest.raises(Refused, match="somebody-else, ml-infn"):
        visitor.login("alice", passwords["alice"])


def test_an_administrator_by_wlcg_groups_gets_what_is_offered_now(
    host, visitor, passwords, controllers, throttled
):
    account = visitor.login("bob", passwords["bob"])
    assert account.admin and "ml-infn" in account.groups
    form = visitor.form()
    assert (form.memory, form.free) == (["512M"], {})
    visitor.spawn()
    unit = "jupyterhub-notebook-bob.service"
    limits = host.check_output(f"systemctl show --property=MemoryMax,CPUQuotaPerSecUSec {unit}")
    assert sorted(limits.split()) == ["CPUQuotaPerSecUSec=200ms", f"MemoryMax={512 << 20}"]
    if "cpu" in controllers:  # and the start alone takes more than that
        assert throttled(host.check_output(f"systemctl show --property=MainPID --value {unit}")) > 0
    # The limit for bob's group is 36 seconds.
    end = time.monotonic() + PATIENCE
    told = ""
    while "was ended" not in told and time.monotonic() < end:
        time.sleep(1)
        told = visitor._api("GET", "/hub/api/gpufarm/users/bob/notices").json().get("", "")
    assert "it may run for 1 minute (limit short)" in told
    assert not visitor.running()
    audit = host.file("/var/log/jupyterhub/audit.jsonl").content_string.splitlines()
    assert json.loads(audit[-1])["event"] == "ended"
