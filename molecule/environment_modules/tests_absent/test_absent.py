"""Nothing of the role is left, and all of others is."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from testinfra.host import Host


def test_nothing_is_left(host: Host) -> None:
    assert not host.file("/opt/gpufarm/modules").exists
    assert not host.file("/etc/gpufarm/modules.sh").exists
    assert "gpufarm" not in host.file("/etc/bash.bashrc").content_string


def test_modules_of_others_are_left(host: Host) -> None:
    assert host.check_output("cd /srv/site/modules && find . -type f") == "./greet/3.0.lua"
    assert (
        host.file("/srv/others/theirs/1.lua").exists and host.file("/home/ada/modulefiles/mine/1.lua").exists
    )
