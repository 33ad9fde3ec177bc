# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks as systemd units, each with the devices of its own GPU slices and nothing else."""

from __future__ import annotations

import asyncio
import pwd
from collections.abc import Sequence
from typing import Any

from systemdspawner import SystemdSpawner

from . import devices
from .slices import Slice
from .spawner import SliceSpawner

# systemd.exec(5), systemd.resource-control(5). A notebook runs its user's code and needs no privilege.
SANDBOX: dict[str, str] = {
    "CapabilityBoundingSet": "",
    "CollectMode": "inactive-or-failed",  # a failed notebook leaves no unit behind
    "CPUAccounting": "yes",  # tells whether programs compute; not the default with control groups version 1
    "DevicePolicy": "closed",
    # Over the system bus users could start services outside of these limits (loginctl enable-linger).
    "InaccessiblePaths": "-/run/dbus/system_bus_socket",
    "LockPersonality": "yes",
    "MemorySwapMax": "0",
    "PrivateDevices": "yes",
    "PrivateTmp": "yes",
    "ProtectClock": "yes",
    "ProtectControlGroups": "yes",
    "ProtectHostname": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectSystem": "strict",
    "RestrictNamespaces": "yes",
    "RestrictRealtime": "yes",
    "RestrictSUIDSGID": "yes",
    "TimeoutStopSec": "20",
}


class SystemdSliceSpawner(SliceSpawner, SystemdSpawner):  # type: ignore[misc]
    """Starts a notebook under the user's own account as a unit of systemd."""

    async def equip(self, pieces: Sequence[Slice]) -> None:
        """Put the devices of the slices into the unit that is to be started."""
        properties: dict[str, Any] = {
            **SANDBOX,
            "ReadWritePaths": pwd.getpwnam(self.user.name).pw_dir,
        }
        if pieces:
            nodes = await asyncio.to_thread(devices.nodes_of_all, pieces)
            # PrivateDevices= leaves only harmless nodes in /dev; those of the slice are put back.
            properties["BindPaths"] = [str(node.path) for node in nodes]
            properties["DeviceAllow"] = [f"{node.path} {node.access}" for node in nodes]
        self.unit_extra_properties = properties

    def _expand_user_vars(self, value: Any) -> Any:
        # The base class expands strings only, but a property that is given several times is a list.
        if isinstance(value, list):
            return [self._expand_user_vars(item) for item in value]
        return super()._expand_user_vars(value)
