"""The role jupyterhub removes the objects of a spawner or login when another one is chosen."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from harness.cases import CASES
from harness.life import run, set_up
from harness.other_values import NEEDS
from harness.run import Run

NETWORK = "/etc/systemd/system/jupyterhub-network.service"


def taken_down(one: Run) -> int:
    """Count how often the network of notebooks was removed."""
    return sum(
        call.args.get("argv", [])[-2:] == ["gpufarm_hub.spawning.network", "down"] for call in one.calls
    )


def reloads(one: Run) -> list[str]:
    """Steps at which systemd reads its units anew because some were deleted."""
    return [call.name for call in one.calls if call.name.endswith("Unit | Reload systemd")]


@pytest.mark.parametrize(
    "gone", [{}, {"jupyterhub_state": "absent"}], ids=["jupyterhub-other", "jupyterhub-absent"]
)
def test_the_network_goes_while_its_program_is_still_there(gone: dict[str, str]) -> None:
    host, _ = set_up("jupyterhub", "docker")
    one = run("jupyterhub", host, gone)
    assert not one.failed, one.refusal
    assert taken_down(one) == 1
    assert reloads(one)
    assert NETWORK not in host.files
    assert not taken_down(run("jupyterhub", host, gone)), "it is gone"


@pytest.mark.parametrize("login", ["oidc", "ldap", "pam"])
def test_the_client_at_the_identity_provider_goes_with_the_logins_there(login: str) -> None:
    needs = {"ldap": NEEDS["jupyterhub_ldap_url"], "pam": NEEDS["jupyterhub_pam_groups"]}
    one = CASES["jupyterhub"].run("jupyterhub", {**needs.get(login, {}), "jupyterhub_login": login})
    assert not one.failed, one.refusal
    clients = [call.args for call in one.calls if call.action == "gpufarm.cluster.oidc_client"]
    assert any(client.get("state") == "absent" for client in clients) == (login != "oidc")


def test_systemd_reads_nothing_anew_where_no_unit_was() -> None:
    host, _ = set_up("jupyterhub")
    again = run("jupyterhub", host)
    assert not again.failed, again.refusal
    assert not reloads(again)
