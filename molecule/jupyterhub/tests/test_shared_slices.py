"""Two users share a slice: both reach it, nobody else gets it, and nobody cuts it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab.visitor import ExecutionError, Refused

SHARED = "1g.10gb.shared"
CHECK = "/opt/jupyterhub/bin/gpufarm-hub-check /var/lib/jupyterhub/leases.json"


# Prints the answer of the control daemon of MPS to somebody in a notebook.
ASK = "import subprocess; print(subprocess.getoutput('echo {} | nvidia-cuda-mps-control'))"
LIMIT = "default_device_pinned_mem_limit 0"


def test_two_users_share_a_slice(host, visit, leases, join, partition, eventually):
    for name in ("alice", "carol"):
        join(name, ["ml-infn-users", "course"])
    alice, carol, bob = visit("alice"), visit("carol"), visit("bob")
    assert bob.form().free == {"3g.40gb": 1, "1g.10gb": 2}
    assert alice.form().free == {"3g.40gb": 1, "1g.10gb": 2, SHARED: 4}
    alice.spawn(gpu=SHARED)
    alice.execute("import subprocess; subprocess.Popen(['sleep', '4713'], start_new_session=True)")
    uuid = leases()["alice"]["uuid"]
    pid = host.check_output("pgrep --full 'sleep 4713'")
    host.check_output(f"simgpu process start --slice {uuid} --pid {pid}")
    assert carol.form().free == {"3g.40gb": 1, "1g.10gb": 1, SHARED: 3}
    carol.spawn(gpu=SHARED)
    assert leases()["carol"]["uuid"] == uuid
    assert alice.slices().visible == carol.slices().visible == [uuid]
    assert host.check_output("pgrep --full 'sleep 4713'") == pid, "alice's program on it goes on"
    unit = f"jupyterhub-mps@{uuid}.service"
    for notebook in (alice, carol):
        assert notebook.execute(ASK.format(f"get_{LIMIT}")) == "4G", "4864 MiB, half of the slice's memory"
        assert "Insufficient privileges" in notebook.execute(ASK.format(f"set_{LIMIT} 9728M"))
        assert "Not enough privilege" in notebook.execute(ASK.format("quit"))
    host.check_output(f"systemctl kill --signal=KILL {unit}")
    eventually(lambda: carol.execute(ASK.format(f"get_{LIMIT}")) == "4G")
    # Real programs compute through the service, which has the slice open itself.
    service = host.check_output(f"systemctl show --property=MainPID --value {unit}")
    host.check_output(f"simgpu process start --slice {uuid} --pid {service}")
    started = host.check_output(f"systemctl show --property=ActiveEnterTimestampMonotonic {unit}")

    with pytest.raises(Refused, match=r"Not free yet: 2 GPU slices 1g\.10gb\. You wait as number 1 of 1"):
        bob.spawn(gpu="1g.10gb", slices="2")
    bob.spawn(gpu="1g.10gb")
    assert leases()["bob"]["uuid"] != uuid
    with pytest.raises(ExecutionError, match="Permission denied"):
        bob.execute("import os; os.listdir('/run/jupyterhub-mps')")
    assert "nvidia-mps" not in bob.execute("import os; print(os.listdir('/tmp'))")
    assert host.run(CHECK).stderr == ""
    seen = bob._api("GET", "/hub/api/gpufarm/slices").json()["slices"]
    [holders] = [piece["holders"] for piece in seen if piece["uuid"] == uuid]
    assert {one["user"] for one in holders} == {"alice", "carol"}

    host.check_output(f"simgpu process stop {pid}")
    host.check_output(f"simgpu process stop {service}")
    bob.stop()
    said = " ".join(partition("1x 7g.80gb", keep_held=True).split())
    assert "the notebook of alice" in said and "the notebook of carol" in said

    host.run_expect([0], "systemctl kill --signal=KILL jupyterhub")
    eventually(lambda: host.run("curl --fail --silent http://127.0.0.1:8081/hub/api/").rc == 0)
    assert set(leases()) == {"alice", "carol"}
    alice.stop()
    assert host.check_output(f"systemctl show --property=ActiveEnterTimestampMonotonic {unit}") == started
    assert carol.slices().visible == [uuid]
    assert list(leases()) == ["carol"]
    assert bob.form().free == {"3g.40gb": 1, "1g.10gb": 1}, "carol's seat keeps the slice from others"
    carol.stop()
    eventually(lambda: not host.service(unit).is_running)


@pytest.fixture
def broken_service(host):
    """A control daemon of MPS that ends at once."""
    program = "/usr/bin/nvidia-cuda-mps-control"
    host.check_output(f"mv {program} {program}.whole && ln -s /usr/bin/false {program}")
    yield
    host.check_output(f"mv {program}.whole {program}")


@pytest.mark.usefixtures("broken_service")
def test_a_notebook_starts_without_the_service_where_that_fails(host, visit, leases, join):
    join("alice", ["ml-infn-users", "course"])
    alice = visit("alice")
    alice.spawn(gpu=SHARED)
    unit = f"jupyterhub-mps@{leases()['alice']['uuid']}.service"
    assert not host.service(unit).is_running
    assert alice.execute("print(1 + 1)") == "2"
    alice.stop()
