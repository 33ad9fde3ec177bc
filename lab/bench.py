"""A bench: hosts that come and go together, on a network of their own."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import ipaddress
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import bytecode, cgroups, rootfs, vm, warm
from lab.boot import boot
from lab.errors import LabError
from lab.hosts import RUN, Bind, Host, load, ssh_control, unmount_all
from lab.network import Network, free_addresses
from lab.spec import BENCH_NAME, HostSpec, conflict, host_from, unique
from lab.ssh import write_ssh_files
from lab.system import (
    TOOLS,
    VM_PACKAGES,
    VM_TOOLS,
    locked,
    require_root,
    require_space,
    require_tools,
    run,
    usual_umask,
    write_atomically,
)

HOST_MEBIBYTES = 60
LOCK_SECONDS = 900
# Inputs of the choice of images below a host: suite, kind and layers.
Base = tuple[str, str, tuple[str, ...]]


def state_dir() -> Path:
    """Where benches keep their state (LAB_STATE_DIR)."""
    return Path(os.environ.get("LAB_STATE_DIR", "/var/lib/gpufarm-lab"))


def cache_dir() -> Path:
    """Where images and other costly results are kept (LAB_CACHE_DIR)."""
    return Path(os.environ.get("LAB_CACHE_DIR", "/var/cache/gpufarm-lab"))


def bench_names() -> list[str]:
    """The benches of this state folder that have any state."""
    return sorted(path.parent.name for path in state_dir().glob("*/bench.json"))


def _base(spec: HostSpec) -> Base:
    return spec.suite, spec.kind, spec.layers


@dataclass(frozen=True)
class Bench:
    """A bench by name; every path and kernel object of it derives from the name and the state folder.

    :param name: name of the bench.
    :param state: folder of all benches.
    :param cache: folder of images.
    :param say: called with one line of progress.
    """

    name: str
    state: Path
    cache: Path
    say: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        if not BENCH_NAME.fullmatch(self.name):
            raise LabError(
                f"bench name {self.name!r} must be 1 to 64 lower-case letters, digits, '.', '_' and '-'"
            )

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.state.resolve()}/{self.name}".encode()).hexdigest()[:8]

    @property
    def directory(self) -> Path:
        return self.state / self.name

    @property
    def keys(self) -> Path:
        return self.directory / "keys"

    @property
    def known_hosts(self) -> Path:
        return self.directory / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        return self.directory / "ssh_config"

    @property
    def ssh_control_path(self) -> str:
        """ControlPath for SSH clients, with ssh's %h for the address."""
        return str(ssh_control(self.id, "%h"))

    @property
    def network(self) -> Network:
        return Network(self.id)

    @property
    def plan_file(self) -> Path:
        """The hosts of the bench, written before anything is made: from it a crash is cleaned up."""
        return self.directory / "bench.json"

    def lock(self, purpose: str) -> AbstractContextManager[None]:
        return locked(self._lock_file, purpose, LOCK_SECONDS)

    @property
    def _lock_file(self) -> Path:
        return self.state / f".{self.name}.lock"

    def hosts(self) -> list[Host]:
        """All hosts of the plan, finished or not."""
        if not self.plan_file.exists():
            return []
        plan = json.loads(self.plan_file.read_text())
        return [
            Host(
                host_from(entry["spec"]),
                entry["address"],
                entry["version"],
                self.id,
                self._host_directory(entry["spec"]["name"]),
            )
            for entry in plan["hosts"]
        ]

    def _host_directory(self, name: str) -> Path:
        return self.directory / "hosts" / name

    def host(self, name: str) -> Host:
        """:raises LabError: naming the hosts there are."""
        known = {host.name: host for host in self.hosts()}
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it is not up: lab up"
            raise LabError(f"bench {self.name} has no host {name}; {there}")
        return known[name]

    def status(self) -> dict[str, Any]:
        """Facts about the bench, as plain data (see `lab status --json`)."""
        machine = cgroups.layout()
        subnet = self.network.subnet()
        users = self.directory / "iam-users.json"
        iam = next((host for host in self.hosts() if host.spec.iam), None)
        return {
            "bench": self.name,
            "network": str(subnet) if subnet else None,
            "hosts": [
                {
                    "name": host.name,
                    "address": host.address,
                    "suite": host.spec.suite,
                    "cgroup": host.version,
                    "memory_limits": host.spec.kind == "qemu"
                    or cgroups.memory_limits_hold(host.version, machine),
                    "kind": host.spec.kind,
                    "gpus": list(host.spec.gpus),
                    "state": self._state(host),
                }
                for host in self.hosts()
            ],
            "ssh_key": str(self.keys / "id_ed25519"),
            "known_hosts": str(self.known_hosts),
            "ssh_config": str(self.ssh_config),
            "ssh_control_path": self.ssh_control_path,
            "iam": iam
            and {
                "url": f"https://{iam.address}:8443",
                "ca_file": str(self.directory / "iam-ca.crt"),
                "users_file": str(users),
            },
        }

    @staticmethod
    def _state(host: Host) -> str:
        if not host.record.exists():
            return "unfinished"
        return "running" if host.is_running() else "stopped"

    def up(self, wanted: list[HostSpec]) -> list[str]:
        """Bring hosts up; others of the bench are left alone.

        A finished host that has stopped is booted again with its disk; an unfinished one is made anew. When
        anything fails, the hosts that this call made are removed again.

        :returns: names of the hosts that were started.
        :raises LabError: with one sentence for what the user can mend.
        """
        require_root()
        require_tools(TOOLS)
        if any(spec.kind == "qemu" for spec in wanted):
            require_tools(VM_TOOLS, VM_PACKAGES)
        with self.lock("bringing the bench up"), usual_umask():
            current = {host.name: host for host in self.hosts()}
            for spec in unique(wanted):
                known = current.get(spec.name)
                if known and known.record.exists() and (differing := conflict(known.spec, spec)):
                    raise LabError(
                        f"host {spec.name} of bench {self.name} is there with another specification "
                        f"({differing}): take the bench down first with lab --bench {self.name} down"
                    )
            finished = {name: host for name, host in current.items() if host.record.exists()}
            stopped = [
                finished[spec.name]
                for spec in wanted
                if spec.name in finished and not finished[spec.name].is_running()
            ]
            missing = [spec for spec in wanted if spec.name not in finished]
            if not stopped and not missing and self.network.subnet():
                return []
            return self._start(current, finished, stopped, missing)

    def _start(
        self,
        current: dict[str, Host],
        finished: dict[str, Host],
        stopped: list[Host],
        missing: list[HostSpec],
    ) -> list[str]:
        require_space(self.state, HOST_MEBIBYTES * len(missing) + 200, f"starting {len(missing)} hosts")
        machine = cgroups.layout()
        versions = [cgroups.guest_version(spec, machine) for spec in missing]
        images = self._images(missing)
        for host in current.values():
            if host.name not in finished:  # what an interrupted call left of it
                host.remove(self.network)
        any_address = next((host.address for host in finished.values()), None)
        subnet = self.network.up(
            ipaddress.IPv4Interface(f"{any_address}/24").network if any_address else None
        )
        addresses = free_addresses(subnet, [host.address for host in finished.values()], len(missing))
        made = [
            Host(spec, address, version, self.id, self._host_directory(spec.name))
            for spec, address, version in zip(missing, addresses, versions, strict=True)
        ]
        everyone = [*finished.values(), *made]
        self._write_plan(everyone)
        write_ssh_files(self.directory, everyone, self.ssh_control_path)
        try:
            self._boot([(host, images[_base(host.spec)]) for host in made], stopped, everyone, subnet)
        except BaseException:
            self.say("something failed: removing what was started")
            for host in made:
                host.remove(self.network)
            for host in stopped:
                host.stop()
            self._write_plan(list(finished.values()))
            if not finished:
                self._remove_all()
            raise
        return [host.name for host in (*made, *stopped)]

    def _images(self, specs: list[HostSpec]) -> dict[Base, list[Path]]:
        """Layers and image of each base; built one after the other, as a build uses the whole machine."""
        images = {}
        for suite, kind, names in dict.fromkeys(map(_base, specs)):
            recipe = rootfs.recipe_for(suite, kind == "qemu")
            image = rootfs.ensure(recipe, self.cache, self.say)
            images[suite, kind, names] = [image]
            if names:
                from lab import layers

                images[suite, kind, names] = layers.ensure(recipe, image, names, self.cache, self.say)
        return images

    def _boot(
        self,
        made: list[tuple[Host, list[Path]]],
        stopped: list[Host],
        everyone: list[Host],
        subnet: ipaddress.IPv4Network,
    ) -> None:
        names = {host.name: host.address for host in everyone}

        def prepare(item: tuple[Host, list[Path]]) -> tuple[Host, list[Path], list[Bind]]:
            host, images = item
            host.mount(images)
            host.prepare(self.keys, names)
            return host, images, self._extras(host)

        with ThreadPoolExecutor(max_workers=8) as pool:
            prepared = list(pool.map(prepare, made))
        again = [load(host.record, self.id) for host in stopped]
        for host, images, _ in again:
            host.stop()
            self.network.detach(host.name, host.address)
            if host.spec.kind == "nspawn":
                host.mount(images)
        boot([(host, binds) for host, _, binds in prepared + again], self.network, subnet)
        for host, images, binds in prepared:
            host.save(images, binds)

    def _extras(self, host: Host) -> list[Bind]:
        """Parts that only some hosts have; their code is loaded only for hosts that ask for them."""
        binds: list[Bind] = []
        if host.spec.gpus:
            from lab import nvmlsim

            try:
                nvmlsim.install(host.root, list(host.spec.gpus), self.cache)
            except RuntimeError as error:
                raise LabError(f"host {host.name}: {error}") from None
        if host.spec.iam:
            from lab import iam

            binds += iam.install(host.root, host.address, self.directory, self.cache)
        if host.spec.kind == "nspawn":
            binds += [bytecode.install(host.root, self.cache), warm.install(self.cache)]
        else:
            bytecode.install_copy(host.root, self.cache)
            vm.make_disk(host)
        return binds

    def down(self) -> None:
        """Remove the bench, in whatever state it is, and all it left on this machine."""
        require_root()
        with self.lock("taking the bench down"):
            self._remove_all()

    def _remove_all(self) -> None:
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(lambda host: host.remove(self.network), self.hosts()))
        groups = cgroups.bench_groups(self.id, cgroups.layout())
        cgroups.kill(groups, f"bench {self.name}")
        cgroups.remove(groups)
        unmount_all(self.id)
        self.network.down()
        for path in RUN.glob(f"{self.id}-*"):
            path.unlink(missing_ok=True)
        if self.directory.exists():
            run(["rm", "-rf", "--one-file-system", self.directory])
        self._lock_file.unlink(missing_ok=True)

    def reset(self, name: str) -> None:
        """Make a host anew: a fresh disk under the same name, address and keys."""
        require_root()
        with self.lock("resetting a host"), usual_umask():
            host = self.host(name)
            images = self._images([host.spec])[_base(host.spec)]
            subnet = self.network.up(ipaddress.IPv4Interface(f"{host.address}/24").network)
            host.remove(self.network)
            self._boot([(host, images)], [], self.hosts(), subnet)

    def _write_plan(self, hosts: list[Host]) -> None:
        entries = [
            {"spec": host.spec.as_dict(), "address": host.address, "version": host.version} for host in hosts
        ]
        write_atomically(self.plan_file, json.dumps({"hosts": entries}, indent=1))
