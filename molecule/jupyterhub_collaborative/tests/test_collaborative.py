"""Two users share one JupyterLab and its slice, and nobody else's."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shlex
from pathlib import Path

UNIT = "jupyterhub-notebook-collaborative.service"
SCRIPT = Path(__file__).with_name("type_together.py")


def test_users_share_one_server_with_a_slice_of_its_own(host, visit, leases):
    alice, carol = visit("alice"), visit("carol")
    assert alice.form().free == {"3g.40gb": 1}
    alice.spawn(gpu="3g.40gb")
    assert leases().keys() == {"collaborative"}
    assert carol.running()
    slices = carol.slices()
    assert slices.visible == [slices.given] == [leases()["collaborative"]["uuid"]]
    alice.execute("open('shared.txt', 'w').write('from alice')")
    assert carol.execute("import getpass; print(open('shared.txt').read(), getpass.getuser())") == (
        "from alice collaborative"
    )


def test_it_runs_apart_from_its_users_and_from_their_notebooks(host, visit):
    alice = visit("alice")
    assert alice.execute("import sys; print(sys.prefix)") == "/opt/jupyterhub-collaborative"
    status = alice.execute("print(open('/proc/self/status').read())")
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    assert host.file("/home/collaborative").mode == 0o700
    assert host.user("collaborative").shell == "/usr/sbin/nologin"
    installed = host.run("/opt/jupyterhub/bin/python -c 'import jupyter_collaboration'")
    assert "ModuleNotFoundError" in installed.stderr


def test_what_one_types_appears_at_the_other(host, visit):
    tokens = []
    for name in ("alice", "carol"):
        answer = visit(name)._api("POST", f"/hub/api/users/{name}/tokens", json={"expires_in": 600})
        tokens.append(answer.json()["token"])
    arguments = [SCRIPT.read_text(), visit("bob").server_url().rstrip("/"), *tokens]
    python = "/opt/jupyterhub-collaborative/bin/python"
    assert host.check_output(shlex.join([python, "-c", *arguments])) == "hello from the first"


def test_it_outlives_the_hub_and_gives_its_slice_back(host, visit, leases, eventually, hub_answers):
    held = leases()
    host.check_output("systemctl restart jupyterhub")
    eventually(hub_answers)
    carol = visit("carol")
    assert leases() == held
    assert carol.running()
    carol.stop()
    assert leases() == {}
    carol.spawn()
    assert leases() == {}
    assert carol.execute("import glob; print(glob.glob('/dev/nvidia*'))") == "[]"


def test_administrators_open_it(visit):
    """It is at an origin of its own; what that keeps apart is seen in the scenario jupyterhub_origins."""
    alice, bob = visit("alice"), visit("bob")
    if not alice.running():
        alice.spawn()
    assert bob.execute("import getpass; print(getpass.getuser())") == "collaborative"
    bob.stop()
