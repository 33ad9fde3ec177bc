"""A notebook is all that a user has of the machine: no login session leads out of it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab.patience import PATIENCE

UNIT = "jupyterhub-notebook-alice.service"
OUTSIDE = "[Service]\nExecStart=/bin/sleep 4711\n[Install]\nWantedBy=default.target\n"
# A key of one's own, and a program that runs as soon as the account has a manager of its own.
PREPARE = f"""
set -e
umask 077
mkdir -p ~/.ssh ~/.config/systemd/user/default.target.wants
rm -f ~/.ssh/out ~/.ssh/out.pub
ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/out
cp ~/.ssh/out.pub ~/.ssh/authorized_keys
printf {OUTSIDE!r} > ~/.config/systemd/user/outside.service
ln -sf ../outside.service ~/.config/systemd/user/default.target.wants/outside.service
"""
SSH = "ssh -i ~/.ssh/out -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"


@pytest.fixture
def processes(host):
    """Return the control group of each process of a user."""

    def read(name: str) -> list[str]:
        pids = host.run(f"ps -o pid= --user {name}").stdout.split()
        groups = [host.run(f"sed -n '$p' /proc/{pid}/cgroup").stdout.strip() for pid in pids]
        return [group for group in groups if group]  # of processes that are still there

    return read


def test_nobody_gets_out_of_a_notebook_by_a_login(host, shell, processes, facts):
    run = shell("alice")
    assert run(PREPARE) == ""
    said = run(f"timeout {PATIENCE} {SSH} -N {facts['address']}; echo $?")
    assert said.endswith("255") and "Connection refused" in said
    # Nor with a copy of the key.
    elsewhere = SSH.replace("~", "/home/alice")
    said = host.run(f"timeout {PATIENCE} {elsewhere} -N alice@127.0.0.1 || true").stderr
    assert "Permission denied" in said
    ways = [
        "systemd-run --user --quiet /bin/sleep 4711",
        "systemctl --user start outside",
        "loginctl enable-linger",
        "echo '* * * * * /bin/sleep 4711' | crontab -",
        "echo /bin/sleep 4711 | at now",
        "su --command '/bin/sleep 4711' alice",
        "machinectl shell alice@ /bin/sleep 4711",
        "pkexec /bin/sleep 4711",
        "sudo --non-interactive /bin/sleep 4711",
    ]
    for way in ways:
        assert not run(f"{way} < /dev/null > /dev/null 2>&1 && echo it works"), way
    assert not host.file("/var/lib/systemd/linger/alice").exists
    everything = processes("alice")
    assert everything and all(UNIT in group for group in everything)


def test_nothing_of_a_user_runs_once_the_notebook_has_ended(host, visit, processes, eventually):
    alice = visit("alice")
    alice.spawn()
    alice.execute("import subprocess; subprocess.Popen(['setsid', 'sleep', '4711'], start_new_session=True)")
    assert len(processes("alice")) > 1
    alice.stop()
    eventually(lambda: processes("alice") == [])


def test_the_machine_itself_starts_no_manager_for_a_user(host, visit, processes):
    visit("alice").spawn()
    uid = host.user("alice").uid
    host.run(f"systemctl start user@{uid}.service")
    try:
        assert all(UNIT in group for group in processes("alice"))
    finally:
        host.run(f"systemctl stop user@{uid}.service")


def test_accounts_of_an_older_hub_are_closed_as_well(host, processes):
    """The scenario has made one that lingers, before the role came."""
    assert "jupyterhub-users" in host.user("olga").groups
    assert host.user("olga").expiration_date is not None
    assert not host.file("/var/lib/systemd/linger/olga").exists
    assert processes("olga") == []
    refused = host.run("systemctl start user@$(id -u olga).service")
    assert refused.rc != 0 and processes("olga") == []


def test_sshd_refuses_users_of_the_hub_whatever_their_accounts_are(host):
    host.check_output("chage --expiredate -1 olga && chage --expiredate -1 alice")
    try:
        said = host.check_output("sshd -T -C user=olga,host=localhost,addr=127.0.0.1")
        assert "denygroups jupyterhub-users" in said.lower().splitlines()
    finally:
        host.check_output("chage --expiredate 1970-01-02 olga; chage --expiredate 1970-01-02 alice")
