"""A client of Lustre that this role has not set up stays when the role is removed."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy

from harness.host import File, Host, Unit
from harness.life import run


def test_the_client_of_a_site_is_left_alone() -> None:
    unit = "lustre-home.mount"
    host = Host(
        files={
            "/etc/lnet.conf": File("file", "net:\n  - net type: tcp\n", "0644"),
            f"/etc/systemd/system/{unit}": File("file", "[Mount]\nType=lustre\n", "0644"),
        },
        packages={"lustre-client-utils": ""},
        units={name: Unit(True, True) for name in (unit, "lnet.service")},
    )
    before = copy.deepcopy(host)
    gone = run("lustre_client", host, {"lustre_client_state": "absent"})
    assert not gone.failed, gone.refusal
    assert host == before
    assert {call.action for call in gone.calls if not call.asks} <= {"gpufarm.cluster.role_record"}
