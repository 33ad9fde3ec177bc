"""Restarts of the hub and of Slurm's daemons lose neither a notebook that runs nor one that waits."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

SLICE = "3g.40gb"


def test_nothing_is_lost(host, machine, visit, eventually, hub_answers, jobs):
    alice, bob, carol = visit("alice"), visit("bob"), visit("carol")
    alice.spawn(gpu=SLICE)
    bob.spawn(gpu=SLICE)
    carol._api("POST", "/hub/api/users/carol/server", json={"gpu": SLICE}).raise_for_status()
    eventually(lambda: "carol" in jobs("pending"))
    before = jobs("pending,running")

    for node in ("gpu1", "gpu2"):
        machine(node).check_output("systemctl restart slurmd")
    host.check_output("systemctl restart slurmctld jupyterhub")
    eventually(hub_answers)
    eventually(alice.settled)

    assert alice.execute("print(6 * 7)").strip() == "42"
    assert jobs("pending,running") == before
    # The keeper has seen twice, 30 seconds apart, that the hub does not know of the job.
    eventually(lambda: carol._server().get("pending") == "spawn")
    assert jobs("pending,running") == before
    bob.stop()
    eventually(carol.running)
    assert jobs()["carol"] == before["carol"]
    assert carol.execute("print(6 * 7)").strip() == "42"


def test_a_hub_that_was_killed_finds_its_notebooks_again(host, visit, eventually, hub_answers, jobs):
    alice = visit("alice")
    alice.spawn()
    before = jobs()
    host.check_output("systemctl kill --signal=KILL jupyterhub")
    eventually(hub_answers)
    eventually(alice.settled)
    assert alice.running() and jobs() == before
