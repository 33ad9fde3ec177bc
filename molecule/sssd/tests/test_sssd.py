"""Users of the directory are users of the machine, and no entry makes them anybody else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def login(host, user, password):
    """Return what PAM says of a login by a password, as sshd asks it."""
    words = f"pamtester sshd {user} authenticate acct_mgmt open_session close_session"
    return host.run(f"printf '%s\\n' '{password}' | {words}")


def groups(host, user):
    """Return the groups of a user by name; primary groups in the directory have none, and id complains."""
    return host.run(f"id --groups --name {user}").stdout.split()


def test_users_have_their_numbers_and_groups_on_each_machine(host):
    assert host.check_output("id --user alice") == "20001"
    assert groups(host, "bob") == ["20002", "gpu-admins"]


def test_members_of_the_groups_log_in_with_their_own_password_alone(host):
    assert login(host, "bob", "password of bob").rc == 0
    assert login(host, "bob", "password of alice").rc != 0
    assert login(host, "alice", "password of alice").rc != 0


def test_a_password_of_the_directory_opens_no_account_of_the_machine(host):
    """The directory has an entry `ops` in the group that may log in; the machine's own `ops` may use sudo."""
    assert login(host, "ops", "password of ops").rc != 0
    assert login(host, "mail", "password of mail").rc != 0
    host.check_output("echo 'ops:own password' | chpasswd")
    assert login(host, "ops", "own password").rc == 0


def test_nobody_is_root_by_an_entry(host):
    assert host.run("getent passwd toor").rc != 0
    assert host.check_output("getent passwd 0").startswith("root:")
    assert login(host, "toor", "password of toor").rc != 0


def test_no_entry_gives_the_rights_of_groups_of_the_system(host):
    """The directory has her in sudo, docker and operators, and in a group with the number of sudo."""
    assert groups(host, "mallory") == ["20003", "others"]
    assert "27" not in host.check_output("id --groups mallory").split()
    assert "not allowed to run sudo" in host.run("sudo --list --other-user mallory").stdout


def test_a_local_group_that_comes_later_is_none_of_the_directory(host):
    host.check_output("getent group docker || groupadd --system docker")
    assert "docker" not in groups(host, "mallory")
    host.check_output("groupdel docker")


def test_the_password_of_the_bind_account_is_for_root_alone(host):
    file = host.file("/etc/sssd/sssd.conf")
    assert (file.user, file.group) == ("root", "root")
    assert file.mode in (0o600, 0o640)
    assert host.run("runuser -u ops -- grep -rs 'password of the hub' /etc /run /var/log").stdout == ""


def test_no_unit_has_failed(host):
    assert "sss" not in host.check_output("systemctl --failed --no-legend --plain")
    assert host.service("sssd").is_enabled and host.service("sssd").is_running
