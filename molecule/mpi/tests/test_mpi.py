"""Processes of a job talk over the declared network alone, and users build programs."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shlex

import pytest

DECLARED = {"mpi1": "eth1", "mpi2": "fast0"}
SIZE = 64 * 2**20
# Both processes say where they run, and exchange as many bytes as SIZE.
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
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("of %d\\n", size);
  return MPI_Finalize();
}
"""


def carried(host, interface: str) -> int:
    return sum(
        int(host.file(f"/sys/class/net/{interface}/statistics/{way}_bytes").content_string)
        for way in ("rx", "tx")
    )


def run(host, options: str, choice: str = "") -> list[str]:
    """Exchange data as a user who has logged in, and say where the processes ran."""
    job = f"{choice} timeout 120 srun --ntasks=2 {options} --chdir=/ python3 -m mpi4py -c"
    # That program gives the variables of a login, by PAM.
    login = "su --shell=/bin/sh nobody --command=%s"
    return host.check_output(login, f"{job} {shlex.quote(EXCHANGE)}").split()


@pytest.fixture
def name(host) -> str:
    return host.check_output("hostname")


@pytest.mark.parametrize("chosen", [False, True])
def test_a_job_of_slurm_talks_over_the_declared_network_unless_a_user_chooses_another(host, name, chosen):
    declared = DECLARED[name]
    before = {interface: carried(host, interface) for interface in (declared, "eth0")}
    choice = "OMPI_MCA_btl_tcp_if_include=eth0" if chosen else ""
    assert set(run(host, "--nodes=2", choice)) == set(DECLARED)
    more = {interface: carried(host, interface) - number for interface, number in before.items()}
    assert more["eth0" if chosen else declared] > 2 * SIZE
    assert more[declared if chosen else "eth0"] < SIZE / 8


def test_processes_of_a_job_on_one_machine_share_its_memory(host, name):
    assert run(host, f"--nodelist={name}", "OMPI_MCA_btl=self,sm") == [name, name]


def test_processes_find_one_another_also_in_a_job_without_the_variables_of_a_login(host, name):
    inner = f"srun --chdir=/ python3 -m mpi4py -c {shlex.quote(EXCHANGE)}"
    host.check_output("install --directory --owner=nobody /run/mpi-test")
    words = [f"--nodelist={name}", "--ntasks=2", "--chdir=/", "--output=/run/mpi-test/said", "--wait"]
    submit = shlex.join(["sbatch", *words, f"--wrap={inner}"])
    try:
        host.check_output("runuser -u nobody -- timeout 120 env --unset=SLURM_MPI_TYPE sh -c %s", submit)
        assert host.file("/run/mpi-test/said").content_string.split() == [name, name]
    finally:
        host.check_output("rm --recursive /run/mpi-test")


def test_a_node_without_a_link_is_drained_until_it_is_back(host, name):
    def check() -> None:
        """As Slurm does it once a minute."""
        host.check_output("/opt/gpufarm/slurm/health")

    def is_back() -> None:
        # A node that was resumed is called idle when the controller has heard from it.
        wait = "timeout 120 sh -c 'until scontrol show node %s | grep -q %s; do sleep 1; done'"
        host.check_output(wait, name, "State=IDLE[[:blank:]]")

    check()
    is_back()
    host.check_output("ip link set %s down", DECLARED[name])
    try:
        check()
        told = host.check_output("scontrol show node %s --oneliner", name)
    finally:
        host.check_output("ip link set %s up", DECLARED[name])
    assert "State=IDLE+DRAIN " in told
    assert f"Reason=gpufarm: {DECLARED[name]}, over which processes talk, has no link" in told
    wait = "timeout 30 sh -c 'until grep -q 1 /sys/class/net/%s/carrier; do sleep 1; done'"
    host.check_output(wait, DECLARED[name])
    check()
    is_back()


def test_a_user_builds_and_runs_a_program(host):
    run = (
        'cd "$(mktemp -d)" && printf %s "$0" >program.c && mpicc program.c'
        " && mpirun -n 2 --oversubscribe ./a.out"
        " && cp program.c program.cc && mpicxx program.cc && mpif90 --version >/dev/null"
    )
    said = host.check_output("runuser -u nobody -- sh -c %s %s", run, PROGRAM)
    assert said.split("\n") == ["of 2", "of 2"]


def test_nccl_has_the_interface_by_its_exact_name(host, name):
    assert f"NCCL_SOCKET_IFNAME=={DECLARED[name]}" in host.file("/etc/nccl.conf").content_string.splitlines()
