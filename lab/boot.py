"""Starting hosts together and waiting until they have booted."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import ipaddress
import selectors
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab import vm
from lab.errors import LabError
from lab.hosts import RUN, Bind, Host
from lab.network import Network
from lab.patience import PATIENCE

# An idle machine boots a container in under a second and an emulated virtual machine in twenty; a loaded one
# takes up to thirty times that.
BOOT_SECONDS = {"nspawn": PATIENCE, "qemu": 4 * PATIENCE}
SECONDS_PER_HOST = 4


def boot(hosts: Sequence[tuple[Host, list[Bind]]], network: Network, subnet: ipaddress.IPv4Network) -> None:
    """Connect hosts to the network, start them and wait until each has booted.

    :param hosts: prepared hosts that do not run, with their binds.
    :raises LabError: if a host ends while booting or takes too long; the others go on running.
    """
    RUN.mkdir(mode=0o700, parents=True, exist_ok=True)
    containers = [(host, binds) for host, binds in hosts if host.spec.kind == "nspawn"]
    machines = [host for host, _ in hosts if host.spec.kind == "qemu"]
    deadline = time.monotonic() + SECONDS_PER_HOST * len(hosts)
    deadline += max((BOOT_SECONDS[host.spec.kind] for host, _ in hosts), default=0)
    network.attach_namespaces([(host.name, host.address, host.spec.nics) for host, _ in containers], subnet)
    for host in machines:
        network.attach_taps(host.address, host.spec.nics)
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        waiting: dict[str, tuple[Host, subprocess.Popen[bytes]]] = {}
        for host, binds in containers:
            listener = stack.enter_context(_listener(host.notify_socket))
            selector.register(listener, selectors.EVENT_READ, host.name)
            waiting[host.name] = host, host.launch(network, binds)
        for host in machines:
            waiting[host.name] = host, vm.launch(host, network)
        while waiting:
            ready = {key.data for key, _ in selector.select(timeout=0.5) if _says_ready(key.fileobj)}
            ready |= {host.name for host in machines if host.name in waiting and vm.answers(host)}
            for name in ready & set(waiting):
                del waiting[name]
            for host, launcher in waiting.values():
                if launcher.poll() is not None:
                    raise LabError(f"host {host.name} stopped while booting: {host.last_words()}")
            if waiting and time.monotonic() > deadline:
                late = next(iter(waiting.values()))[0]
                raise LabError(
                    f"host {late.name} has not booted in time; last on its console: {late.last_words()}"
                )


@contextlib.contextmanager
def _listener(path: Path) -> Iterator[socket.socket]:
    """A datagram socket for messages of the guest's systemd (sd_notify(3))."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _says_ready(listener: object) -> bool:
    assert isinstance(listener, socket.socket)
    return b"READY=1" in listener.recv(4096).split(b"\n")
