"""A run that set up a site ends with addresses, users, slices and the next step."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.gpufarm.cluster.plugins.module_utils._site_summary import summary

HUB = {"endpoint": "https://gpu1.example.org:8888/", "ca_certificate": "PEM", "groups": ["ml", "admins"]}
SLICES = {"slices": [{"profile": "1g.10gb"}, {"profile": "3g.40gb"}, {"profile": "1g.10gb"}]}


def test_a_hub_with_slices() -> None:
    assert summary({"gpu1": {"jupyterhub": HUB, "mig": SLICES}, "login1": {}}).splitlines() == [
        "gpu1: hub https://gpu1.example.org:8888/",
        "  users: members of ml, admins",
        "  slices: 2x 1g.10gb, 1x 3g.40gb",
        "  next: import /etc/jupyterhub/tls/ca.crt of gpu1 into browsers, which do not know its authority",
        "  next: open https://gpu1.example.org:8888/, log in and start a notebook",
    ]


def test_a_hub_of_its_owner_with_a_known_certificate() -> None:
    told = summary({"gpu1": {"jupyterhub": {**HUB, "ca_certificate": "", "groups": []}}})
    assert "members of no group, only the owner" in told and "import" not in told and "slices" not in told


def test_slices_without_a_hub() -> None:
    assert summary({"gpu1": {"mig": SLICES}}) == "gpu1:\n  slices: 2x 1g.10gb, 1x 3g.40gb"


def test_without_either_nothing_is_told() -> None:
    assert summary({"gpu1": {"mig": {"slices": []}}, "login1": {}}) == ""
