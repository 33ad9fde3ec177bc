"""A user of the older hub works."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
from pathlib import Path

from lab import visitor


def test_a_kernel_remembers_something(host, visit):
    alice = visit("alice")
    alice.spawn()
    alice._http.get(f"{alice.hub}/user/alice/")
    kernel = alice._api("POST", "/user/alice/api/kernels", "/user/alice/", json={}).json()["id"]
    with alice._channels("/user/alice/", kernel) as channels:
        assert visitor._run(channels, "remembered = 6 * 7; print(remembered)", 60) == "42"
    pids = host.check_output("systemctl show --property=MainPID --value jupyterhub-proxy").split()
    pids += host.check_output("systemctl show --property=MainPID --value jupyterhub-notebook-alice").split()
    Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"], "older.json").write_text(json.dumps([kernel, pids]))
