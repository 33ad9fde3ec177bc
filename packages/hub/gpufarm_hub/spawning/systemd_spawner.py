# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks as systemd units, each with the devices of its own GPU slices and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import pwd
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from systemdspawner import SystemdSpawner, systemd
from traitlets import Bool, List, Unicode

from gpufarm_hub.sharing import devices
from gpufarm_hub.sharing.slices import Slice

from . import addresses, barrier, environments, form, mounts, mps, nested, units, walls
from .engine import EngineError
from .environments import Environment
from .mounts import Bind
from .slice_spawner import SliceSpawner
from .spawner import RefusedSpawnError

LOOKS_EVERY = 0.2  # seconds; systemd knows of a unit within some milliseconds

# systemd.exec(5), systemd.resource-control(5). A notebook runs its user's code and needs no privilege.
SANDBOX: dict[str, str] = {
    "CapabilityBoundingSet": "",
    "CPUAccounting": "yes",  # tells whether programs compute; not the default with control groups version 1
    "DevicePolicy": "closed",
    # Over the system bus users could start services outside of these limits (loginctl enable-linger).
    "InaccessiblePaths": "-/run/dbus/system_bus_socket",
    "LockPersonality": "yes",
    "MemoryAccounting": "yes",
    "MemorySwapMax": "0",
    "NoNewPrivileges": "yes",
    "OOMPolicy": "continue",  # JupyterLab outlives a kernel that is killed because it needs too much memory
    "PrivateDevices": "yes",
    "PrivateIPC": "yes",  # what System V's shared memory holds is gone with the notebook
    "ProtectClock": "yes",
    "ProtectControlGroups": "yes",
    "ProtectHostname": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectProc": "invisible",  # of other users' programs not even the arguments
    "ProtectSystem": "strict",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_NETLINK AF_UNIX",
    "RestrictNamespaces": "yes",
    "RestrictRealtime": "yes",
    "RestrictSUIDSGID": "yes",
    # Debuggers and profilers are users' programs, so @debug is not among them.
    "SystemCallErrorNumber": "EPERM",
    "SystemCallFilter": "~@clock @cpu-emulation @module @mount @obsolete @raw-io @reboot @swap",
    "TimeoutStopSec": "20",
}


def configure(c: Any, settings: Mapping[str, Any]) -> None:
    """Have the hub start notebooks with systemd.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
        settings: those of the role.
    """
    venv = settings["venv"]
    c.JupyterHub.spawner_class = SystemdSliceSpawner
    spawner = c.NotebookSpawner
    # Nothing of the hub's environment reaches notebooks, but the language.
    spawner.env_keep = ["LANG", "LC_ALL"]
    spawner.environment = {"PATH": f"{venv}/bin:/usr/local/bin:/usr/bin:/bin"}
    spawner.cmd = [f"{venv}/bin/jupyterhub-singleuser"]
    spawner.slice = "jupyterhub.slice"
    spawner.default_shell = "/bin/bash"
    spawner.start_timeout = 90
    spawner.subnet = settings["walls"]["subnet"]
    spawner.port = 8888
    spawner.containers = settings["engines"]["systemd"]["containers"]
    spawner.sealed = [f"{venv}/bin/python", "-I", "-m", "gpufarm_hub.spawning.sealed"]


class SystemdSliceSpawner(SliceSpawner, SystemdSpawner):  # type: ignore[misc]
    """Starts a notebook under the user's own account as a unit of systemd."""

    subnet = Unicode(help="Network of the notebooks.").tag(config=True)
    containers = Bool(False, help="Whether users may start containers in notebooks.").tag(config=True)
    sealed = List(Unicode(), help="Command that starts such a notebook.").tag(config=True)

    environment: Any  # JupyterHub's own trait
    _properties: dict[str, Any]
    _environments: Sequence[Environment] = ()
    _chosen: Environment | None = None

    def take_programs(self, shared: Mapping[str, Any]) -> None:
        """Be started from the environment of the collaborative JupyterLab."""
        venv, own = shared["venv"], self.environment
        self.cmd = [f"{venv}/bin/jupyterhub-singleuser"]
        self.environment = {**own, "PATH": f"{venv}/bin:{own['PATH'].partition(':')[2]}"}

    def offered_environments(self) -> list[Environment]:
        """Return those that the user may choose; none when it is not known which there are."""
        try:
            return environments.seen_by(environments.read(), self.groups)
        except environments.EnvironmentsError as error:
            self.log.error("Notebooks have the kernel of the hub: %s", error)
            return []

    def first_fields(self) -> str:
        """Return the form's field for the environment, where there is a choice."""
        return form.environment_fields([(one.name, one.label) for one in self.offered_environments()])

    def apply_more(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check and take the choice of the environment."""
        name = options.get("environment", "")
        if not isinstance(name, str):
            raise form.ChoiceError("The environment must be given by its name.")
        self._environments = self.offered_environments()
        named = [one for one in self._environments if name in ("", one.name)]
        if name and not named:
            raise form.ChoiceError(f"The environment {name!s:.40} is not offered to you.")
        self._chosen = next(iter(named), None)
        return {**super().apply_more(options), **({"environment": name} if name else {})}

    def get_args(self) -> list[str]:
        """Return the arguments of the notebook server."""
        return [*super().get_args(), *environments.arguments(self._chosen)]

    def get_env(self) -> dict[str, str]:
        """Return the notebook's environment variables."""
        inside = nested.environment() if self.containers else {}
        return {**super().get_env(), **environments.variables(self._environments), **inside}

    async def equip(self, pieces: Sequence[Slice]) -> None:
        """Put limits, folders and the devices of the slices into the unit that is to be started."""
        hidden = mounts.hidden(self.folders, self._binds)
        hidden += mounts.within(hidden, self._binds)
        properties = properties_of(self._binds, hidden, self.temporary, self.mem_limit)
        properties |= {
            "CPUQuota": f"{int(self.cpu_limit * 100)}%",
            "MemoryMax": str(self.mem_limit),
            "TasksMax": str(self.processes),
        }
        account = pwd.getpwnam(self.user.name)
        properties["ReadWritePaths"].append(account.pw_dir)
        try:
            self.ip = addresses.free(self.subnet)
        except addresses.NoAddressError as error:
            raise RefusedSpawnError(str(error), "address", 503) from error
        properties |= walls.network_of(self.ip)
        names = barrier.names()
        if names:
            properties["BindReadOnlyPaths"].append(f"{names}:/etc/resolv.conf")
        if pieces:
            nodes = await asyncio.to_thread(devices.nodes_of_all, pieces)
            # PrivateDevices= leaves only harmless nodes in /dev; those of the slice are put back.
            properties["BindPaths"] += [str(node.path) for node in nodes]
            properties["DeviceAllow"] = [f"{node.path} {node.access}" for node in nodes]
        for name, values in mps.properties(self._mps_pieces()).items():
            properties[name] = [*properties.get(name, []), *values]
        if self.containers:
            properties |= nested.LOOSENED
            emptied = [f"/dev/null:{path}" for path in nested.EMPTIED if Path(path).exists()]
            properties["BindReadOnlyPaths"] += emptied
        self._properties = properties

    def _mps_pieces(self) -> tuple[Slice, ...]:
        """Return the slices that the notebook shares by MPS."""
        lease = self._lease
        if not lease or lease.notebooks < 2:
            return ()
        shared_by_mps = {one.profile for one in self.desk.shared if one.mps}
        return tuple(piece for piece in lease.pieces if piece.profile in shared_by_mps)

    async def launch(self) -> tuple[str, int]:
        """Start the unit. The base class's own way knows no group but the account's."""
        account = pwd.getpwnam(self.user.name)
        started = asyncio.ensure_future(
            systemd.start_transient_service(
                self.unit_name,
                cmd=[*self.sealed, *self.cmd] if self.containers else self.cmd,
                args=self.get_args(),
                working_dir=account.pw_dir,
                environment_variables={**self.get_env(), "SHELL": self.default_shell},
                properties={**self._properties, "RuntimeDirectory": folder_of(self.unit_name)},
                uid=account.pw_uid,
                gid=self.file_group_id(account.pw_gid),
                slice=self.slice,
            )
        )
        try:
            await asyncio.shield(started)
        except asyncio.CancelledError:
            await self._interrupt(started)
            raise
        return self.ip, self.port

    async def _interrupt(self, started: asyncio.Future[Any]) -> None:
        """End a start that systemd may not know of yet; once the hub gives it up, nobody else does."""
        while not started.done():
            with contextlib.suppress(EngineError):
                await self.in_thread(units.stop, self.unit_name)
            await asyncio.wait([started], timeout=LOOKS_EVERY)
        with contextlib.suppress(EngineError):  # the hub stops it, too, and tells the log
            await self.in_thread(units.stop, self.unit_name)


def folder_of(unit: str) -> str:
    """Return the folder below ``/run`` in which the base class puts the environment of a unit.

    It would take the unit's name, but a colon there is followed by the name of a link that systemd makes
    below ``/run`` (systemd.exec(5), RuntimeDirectory=): users would choose it by the name of a server.

    Args:
        unit: name of the unit.
    """
    return f"jupyterhub-environment-{hashlib.sha256(unit.encode()).hexdigest()[:32]}"


def properties_of(
    binds: Iterable[Bind], hidden: Sequence[str], temporary: str, memory: int
) -> dict[str, Any]:
    """Return the properties of the unit that have nothing to do with slices.

    The notebook writes to the user's home and to memory, and nowhere else; what is in memory is gone with it.

    The notebook sees later mounts on the machine, also below a folder that is bound (systemd.exec(5),
    MountFlags=); a folder that is there under its own path need not be bound.

    Args:
        binds: folders of the machine that the notebook sees.
        hidden: those that it does not.
        temporary: size of its ``/tmp``, and of its ``/var/tmp``.
        memory: bytes of its memory, which ``/dev/shm`` is a part of.
    """
    properties: dict[str, Any] = {
        **SANDBOX,
        "BindPaths": [],
        # The driver's list of devices may be a mount of its own, which the notebook's own /proc lacks.
        "BindReadOnlyPaths": ["-/proc/driver"],
        "InaccessiblePaths": [SANDBOX["InaccessiblePaths"], *(_quoted(f"-{path}") for path in hidden)],
        "ReadWritePaths": [],
        "TemporaryFileSystem": [
            f"{path}:mode=1777,nosuid,size={size}"
            for path, size in (("/tmp", temporary), ("/var/tmp", temporary), ("/dev/shm", memory))  # noqa: S108
        ],
    }
    for bind in binds:
        if bind.source != bind.target:
            kind = "BindReadOnlyPaths" if bind.read_only else "BindPaths"
            properties[kind].append(_quoted(f"{bind.source}:{bind.target}"))
        elif not bind.read_only:
            properties["ReadWritePaths"].append(_quoted(bind.target))
    return properties


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value
