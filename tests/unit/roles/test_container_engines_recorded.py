"""The record of nvidia_container has what the role reads and changes of container engines."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.gpufarm.cluster.plugins.modules import cdi_engines
from harness.life import set_up


def test_engines_that_come_or_change_make_the_role_run() -> None:
    host, _ = set_up("nvidia_container")
    reads = [Path(one) for one in host.made["nvidia_container"]["reads"]]
    assert {cdi_engines.CONTAINERD, cdi_engines.DOCKER} <= {*reads}
    assert {*cdi_engines.PROGRAMS.values()} <= {
        one.name for one in reads if one.parent.parent == Path("/usr")
    }
    assert Path("/usr/sbin/dockerd") in reads, "as Debian has it"
