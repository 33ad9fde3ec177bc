"""Where the site does not allow containers, notebooks are as closed as ever."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

KINDS = ["user", "user --mount", "user --net", "user --pid", "user --ipc", "user --uts", "user --cgroup"]


def test_neither_namespaces_are_made_nor_containers_started(shell):
    run = shell()
    for kind in KINDS:
        assert "not permitted" in run(f"unshare --{kind} true"), kind
    assert run("echo $CONTAINERS_CONF") == ""
    assert "rc 0" not in run("podman import --quiet /srv/images/box.tar box; echo rc $?")
