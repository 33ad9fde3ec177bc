"""Modules that are declared no longer are gone, and those of others are not."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from testinfra.host import Host


def test_the_tree_has_what_is_declared_and_what_others_wrote(host: Host) -> None:
    files = host.check_output("cd /srv/site/modules && find . -name '*.lua' | sort").split()
    assert files == ["./greet/1.0.lua", "./greet/3.0.lua"]
    assert host.check_output("ls /srv/site/modules") == "greet"
    assert "by_hand" in host.check_output("bash -lc 'module load greet && echo by_hand$BY_HAND'")


def test_zsh_has_modules_no_longer(host: Host) -> None:
    assert "gpufarm" not in host.file("/etc/zsh/zshenv").content_string
    assert host.run("runuser -u ada -- env -i PATH=/usr/bin:/bin zsh -lc 'module list'").rc == 127
