"""Nothing is left of the walls, nor of what they were around."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_no_rule_network_or_unit_is_left(host):
    assert "jupyterhub" not in host.run("nft list ruleset").stdout
    assert "jhub-" not in host.check_output("ip link; ls /run/netns")
    assert not host.run("systemctl list-units --all --plain --no-legend 'jupyterhub*'").stdout
    assert not host.run("ls -d /run/jupyterhub-walls /etc/systemd/system/jupyterhub*").stdout
    assert not host.user("jupyterhub-front").exists
