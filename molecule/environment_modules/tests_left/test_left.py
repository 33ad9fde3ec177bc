"""A machine that leaves takes the modules away from no other one."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from testinfra.host import Host


def test_only_the_other_machine_has_modules(host: Host) -> None:
    done = host.run("bash -lc 'module load greet/1.0 && greet'")
    if host.check_output("hostname") == "modules13":
        assert done.stdout == "hello 1.0\n"
    else:
        assert done.rc != 0
    assert host.file("/srv/site/modules/greet/1.0.lua").exists
