"""Nothing of the projects is left but their volume, and all of somebody else's."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_only_theirs_is_left(host):
    assert host.check_output("docker ps --all --format '{{.Names}}'") == "theirs"
    networks = host.check_output("docker network ls --format '{{.Name}}'").split()
    assert sorted(networks) == ["bridge", "host", "none"]
    assert host.check_output("docker volume ls --quiet") == "tracking_kept"
    assert not host.file("/etc/gpufarm/compose").exists
