"""Data go from one machine to the other by RDMA over the rail, by the counters of its device."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest

PORT = "/sys/class/infiniband/compute/ports/1"
# The device sends messages in packets of this many bytes, which fit into the bench's smaller Ethernet frames.
PACKET = 1024
SIZE = 2 * 2**20
# Both processes exchange as many bytes as SIZE.
EXCHANGE = f"""
import socket
from mpi4py import MPI
world = MPI.COMM_WORLD
sent = bytearray([world.rank + 1]) * {SIZE}
got = bytearray({SIZE})
world.Sendrecv(sent, dest=1 - world.rank, recvbuf=got, source=1 - world.rank)
assert world.size == 2 and got == bytearray([2 - world.rank]) * {SIZE}
print(socket.gethostname())
"""


@pytest.fixture
def first(host):
    if host.check_output("hostname") != "fab1":
        pytest.skip("the first machine starts both ends")
    return host


def packets(host, way: str, machine: str) -> int:
    """Packets that the RDMA device of a machine has `sent` or `rcvd`."""
    return int(host.check_output("ssh %s cat %s/hw_counters/%s_pkts", machine, PORT, way))


def bytes_of(host, interface: str) -> int:
    return int(host.check_output("cat /sys/class/net/%s/statistics/tx_bytes", interface))


def test_the_device_is_there_after_a_boot(host):
    assert host.file(f"{PORT}/state").content_string.strip() == "4: ACTIVE"
    assert host.service("gpufarm-soft-roce.service").is_enabled


def test_rdma_writes_reach_the_other_machine_over_the_rail(first):
    times, size = 200, 16384
    options = f"--ib-dev=compute --size={size} --iters={times}"
    before = packets(first, "rcvd", "fab2")
    first.check_output("ssh fab2 systemd-run --quiet --collect --unit=other-end ib_write_bw %s", options)
    address = first.check_output("ssh fab2 ip -brief -4 address show eth1").split()[2].partition("/")[0]
    wait = "until ssh fab2 ss --listening --tcp --numeric | grep -q :18515; do sleep 1; done"
    first.check_output("timeout 60 sh -c %s", wait)
    told = first.check_output(f"timeout 120 ib_write_bw {options} {address}")
    assert re.search(rf"^ *{size} +{times} ", told, re.MULTILINE)
    assert packets(first, "rcvd", "fab2") - before >= times * size / PACKET


def test_users_lock_as_much_memory_as_they_like(host):
    assert host.check_output("ulimit -l") == "unlimited"  # of the login by SSH
    assert host.check_output("runuser --login nobody --shell /bin/sh -c 'ulimit -l'") == "unlimited"


def test_processes_of_mpi_talk_by_rdma_over_the_rail(first):
    before = {way: packets(first, way, "fab1") for way in ("sent", "rcvd")}
    plain = bytes_of(first, "eth0")
    run = "timeout 240 mpirun --allow-run-as-root --host fab1,fab2 -n 2 --bind-to none python3 -c %s"
    assert set(first.check_output(run, EXCHANGE).split()) == {"fab1", "fab2"}
    for way, number in before.items():
        assert packets(first, way, "fab1") - number >= SIZE / PACKET, way
    assert bytes_of(first, "eth0") - plain < SIZE / 2


def test_the_health_check_is_silent_while_all_is_well(host):
    assert host.check_output("/etc/gpufarm/slurm/health.d/fabric") == ""
