"""Nobody gets in any more, and nothing is left but accounts that are locked, and homes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

PATHS = (
    "/etc/ssh/gpufarm-users.d",
    "/etc/ssh/sshd_config.d/10-gpufarm-users.conf",
    "/etc/sudoers.d/gpufarm-users",
)


def test_nothing_is_left(host):
    assert [path for path in PATHS if host.file(path).exists] == []


def test_nobody_gets_in(host, login):
    # Not with a key of the user's own making either, which sshd reads again now.
    host.check_output("runuser -u ada -- install -d -m 700 /home/ada/.ssh")
    host.check_output("runuser -u ada -- ssh-keygen -q -t ed25519 -N '' -f /home/ada/.ssh/own")
    host.check_output("runuser -u ada -- cp /home/ada/.ssh/own.pub /home/ada/.ssh/authorized_keys")
    own = "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -i /home/ada/.ssh/own ada@localhost true"
    assert "Your account has expired" in host.check_output(f"{own} 2>&1 || true")
    assert login("ada", "ada2", "true").returncode != 0


def test_homes_are_kept(host):
    assert host.file("/home/ada").is_directory and host.file("/home/ben").is_directory
