"""Somebody partitions the GPU anew while a notebook holds a slice of it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab.visitor import ExecutionError


def test_a_slice_that_is_gone_is_lost_to_its_holder_and_offered_to_nobody(partition, host, visit, leases):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn(gpu="3g.40gb")
    assert len(alice.slices().visible) == 1
    # No program uses it any more, but alice holds it.
    said = partition("1x 2g.20gb, 2x 1g.10gb", keep_held=True)
    assert "is used by the notebook of alice" in " ".join(said.split())
    partition("1x 2g.20gb, 2x 1g.10gb")
    assert bob.form().free == {"2g.20gb": 1, "1g.10gb": 2}
    bob.spawn(gpu="2g.20gb")
    held = leases()
    assert list(held) == ["bob"]
    assert bob.slices().visible == [held["bob"]["uuid"]]
    assert "Dropped the lease of alice/: slice" in host.check_output(
        "journalctl --unit=jupyterhub --no-pager"
    )
    told = alice._api("GET", "/hub/api/gpufarm/users/alice/notices").json()
    assert "Your GPU slice 3g.40gb is gone" in told[""]
    # JupyterLab asks its own server for the same.
    shown = alice._api("GET", "/user/alice/gpufarm/notice", base="/user/alice/").json()
    assert shown["notice"] == told[""]
    # The notebook goes on, but even the nodes that it had are closed to it now.
    unit = "jupyterhub-notebook-alice.service"
    assert host.check_output(f"systemctl is-active {unit}") == "active"
    with pytest.raises(ExecutionError, match="Operation not permitted"):
        alice.execute("import os; os.open('/dev/nvidiactl', os.O_RDWR)")
