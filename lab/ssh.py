"""SSH keys of a bench, and the files by which a client knows its hosts."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.hosts import Host
from lab.system import run, write_atomically


def write_ssh_files(directory: Path, hosts: Sequence[Host], control_path: str) -> None:
    """Write keys/, known_hosts and ssh_config of a bench; a key that is there stays.

    :param directory: folder of the bench.
    :param hosts: all its hosts.
    :param control_path: ControlPath of shared connections (ssh_config(5)).
    """
    keys = directory / "keys"
    keys.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("id_ed25519", *(f"host_{host.name}" for host in hosts)):
        if not (keys / f"{name}.pub").exists():
            (keys / name).unlink(missing_ok=True)
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpufarm-lab", "-f", keys / name])
    public = {host.address: (keys / f"host_{host.name}.pub").read_text().split()[:2] for host in hosts}
    write_atomically(
        directory / "known_hosts", "".join(f"{address} {' '.join(key)}\n" for address, key in public.items())
    )
    common = {
        "User": "root",
        "IdentityFile": f"{keys}/id_ed25519",
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": f"{directory}/known_hosts",
        "StrictHostKeyChecking": "yes",
        "ControlMaster": "auto",
        "ControlPersist": "60s",
        "ControlPath": control_path,
    }
    blocks = [f"Host {host.name}\n  HostName {host.address}\n" for host in hosts]
    blocks.append("Host *\n" + "".join(f"  {name} {value}\n" for name, value in common.items()))
    write_atomically(directory / "ssh_config", "".join(blocks))
