"""A notebook whose node loses its power is told, and frees its slice and its user."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

SLICE = "3g.40gb"


def test_a_notebook_that_lost_its_node_explains_itself_and_starts_on_another(
    host, machine, visit, eventually, jobs
):
    alice = visit("alice")
    alice.spawn(gpu=SLICE)
    where = alice.execute("import socket; print(socket.gethostname())").strip()
    number = jobs()["alice"]
    # Without its network first, programs there may tell Slurm of their end.
    lost = "ip link set eth0 down; systemctl poweroff --force --force"
    machine(where).check_output("systemd-run --on-active=1 sh -c %s", lost)
    # Slurm takes a node for lost after SlurmdTimeout, 30 seconds here.
    eventually(lambda: number not in jobs("running,pending").values())
    eventually(lambda: not alice.running())
    assert "the machine that it ran on has failed; start it again" in alice.page("/hub/home")
    alice.spawn(gpu=SLICE)
    assert alice.execute("import socket; print(socket.gethostname())").strip() != where
