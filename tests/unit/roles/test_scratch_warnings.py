"""The unit that warns users sees their areas, wherever these are."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from harness.host import Host
from harness.life import on as life_on

UNIT = "/etc/systemd/system/gpufarm-scratch-warn.service"


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("/scratch/areas", True),
        ("/home2/areas", True),
        ("/data/home/areas", True),
        ("/home", False),
        ("/home/scratch/areas", False),
        ("/root/areas", False),
        ("/run/user/areas", False),
    ],
)
def test_homes_are_hidden_from_the_unit_unless_areas_are_there(path: str, hidden: bool) -> None:
    host = Host()
    mounts = f"21 1 8:2 / / rw - ext4 /dev/sda2 rw\n22 21 8:3 / {path} rw - ext4 /dev/sdb1 rw\n"
    case = life_on(host, "scratch").with_answers(
        {"Validate | Read the mounts of the machine": {"rc": 0, "stdout": mounts}}
    )
    one = case.run("scratch", {"scratch_path": path})
    assert not one.failed, one.refusal
    lines = host.files[UNIT].content.splitlines()
    # ProtectHome= hides these folders, also what ReadWritePaths= names in them (systemd.exec(5)).
    assert ("ProtectHome=yes" in lines) is hidden and f"ReadWritePaths={path}" in lines
