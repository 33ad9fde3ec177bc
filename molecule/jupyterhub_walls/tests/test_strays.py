"""Stray processes on a slice end before the slice is leased to another user, and are recorded."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

LOG = "/var/log/jupyterhub/audit.jsonl"


@pytest.fixture
def planted(host, visit):
    """Start a program that computes on both slices, under an account; return its process id."""
    bob = visit("bob")
    bob.spawn()  # makes the account
    bob.stop()
    listed = (
        "from gpufarm_hub.sharing.slices import read_gpus; print(*(one.uuid for one in read_gpus().offered))"
    )
    python = "/opt/jupyterhub/bin/python"
    slices = host.check_output(f"{python} -c '{listed}'").split()
    started = []

    def plant(account: str) -> str:
        unit = f"planted-{account}"
        host.check_output(f"systemd-run --unit={unit} --collect --property=User={account} sleep 900")
        pid = host.check_output(f"systemctl show --property=MainPID --value {unit}")
        for uuid in slices:
            host.check_output(f"simgpu process start --slice {uuid} --memory 100 --pid {pid}")
        started.append((unit, pid))
        return pid

    yield plant
    for unit, pid in started:
        host.run(f"simgpu process stop {pid}; systemctl stop {unit}")


def test_a_program_of_a_user_ends_before_and_while_the_slice_is_somebody_elses(
    host, visit, planted, eventually
):
    bobs, systems = planted("bob"), planted("root")
    alice = visit("alice")
    alice.spawn(gpu="1g.10gb")
    assert not host.file(f"/proc/{bobs}").exists
    assert host.file(f"/proc/{systems}").exists, "monitoring looks at slices, too"
    events = [json.loads(line) for line in host.file(LOG).content_string.splitlines()]
    stray = [event for event in events if event["event"] == "stray"][-1]
    assert (stray["user"], stray["pid"], stray["command"]) == ("bob", int(bobs), "sleep")
    again = planted("bob")
    eventually(lambda: not host.file(f"/proc/{again}").exists)
    assert alice.running()


def test_what_a_notebook_starts_ends_with_it(host, visit):
    """A program that has left its session, its parent, and all signals but one."""
    alice = visit("alice")
    alice.spawn(gpu="1g.10gb")
    planted = "trap true HUP INT TERM; while sleep 901; do true; done"
    alice.execute(f"import subprocess; subprocess.run(['setsid', '--fork', 'sh', '-c', {planted!r}])")
    assert host.run("pgrep --full 'sleep 901$'").stdout
    alice.stop()
    assert not host.run("pgrep --full 'sleep 901'").stdout
