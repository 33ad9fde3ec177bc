# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks as containers of Docker, each with its own GPU slices and nothing else of the machine."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import jupyterhub
from dockerspawner import DockerSpawner
from traitlets import Dict, Instance, Unicode, default

from gpufarm_hub.sharing import devices
from gpufarm_hub.sharing.slices import Slice

from . import container, containers, form, images, mounts, network, pulling, walls
from .container import GpuAccess, NoGpuAccessError, Plan
from .images import Image, ImageError, Offer, Policy, runs_with
from .slice_spawner import SliceSpawner
from .spawner import RefusedSpawnError

PULL_MINUTES = 30  # that a start may take, as images of several GiB are pulled in it


def configure(c: Any, settings: Mapping[str, Any]) -> None:
    """Have the hub start notebooks with Docker.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
        settings: those of the role.

    Raises:
        ImageError: the settings name an image that cannot be one.
    """
    own = settings["engines"]["docker"]
    c.JupyterHub.spawner_class = DockerSliceSpawner
    spawner = c.NotebookSpawner
    spawner.environment = {}
    spawner.cmd = ["jupyterhub-singleuser"]
    spawner.policy = images.read(own)
    spawner.registries = json.loads(Path(own["registries_file"]).read_text(encoding="utf-8"))
    spawner.pull_when = own["pull_policy"]
    spawner.network_name = network.NAME
    spawner.hub_connect_url = f"http://{walls.hub_address(own['subnet'])}:{own['hub_port']}"
    spawner.start_timeout = 60 * PULL_MINUTES


class DockerSliceSpawner(SliceSpawner, DockerSpawner):  # type: ignore[misc]
    """Starts a notebook under the user's own account in a container of the chosen image."""

    policy = Instance(Policy, help="Which images can be started.").tag(config=True)
    registries = Dict(help="User name and password by registry.").tag(config=True)
    pull_when = Unicode("if-not-present", help="When images are pulled.").tag(config=True)

    _wanted: Image
    _plan: Plan
    _news: asyncio.Queue[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._news = asyncio.Queue()

    @default("object_name")
    def _object_name_default(self) -> str:
        return containers.container_of(self.unit_name)

    def take_programs(self, shared: Mapping[str, Any]) -> None:
        """Be started from the image of the collaborative JupyterLab, the only one that is offered."""
        self.policy = Policy((Offer("JupyterLab", images.parse(shared["image"])),))

    def first_fields(self) -> str:
        """Return the form's fields for the image, where there is a choice."""
        groups = self.groups
        return form.image_fields(
            [offer.label for offer in self.policy.seen_by(groups)], self.policy.own_from(groups)
        )

    def apply_more(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check and take the choice of the image."""
        label, own = options.get("image", ""), options.get("own_image", "")
        try:
            self._wanted = self.policy.choose(label, own, self.groups)
        except ImageError as error:
            raise form.ChoiceError(str(error)) from error
        more = {name: value for name, value in (("image", label), ("own_image", own)) if value}
        return {**super().apply_more(options), **more}

    async def prepare(self) -> None:
        """Have the image on this machine, and see that a notebook can start from it."""
        account = pwd.getpwnam(self.user.name)
        gid = self.file_group_id(account.pw_gid)
        groups = {*os.getgrouplist(self.user.name, account.pw_gid)} - {gid}
        self._plan = Plan(
            uid=account.pw_uid,
            gid=gid,
            groups=sorted(groups),
            home=account.pw_dir,
            memory=self.mem_limit,
            cores=self.cpu_limit,
            processes=self.processes,
            temporary=self.temporary,
            network=self.network_name,
            binds=self._binds,
            hidden=mounts.within(mounts.hidden(self.folders, self._binds), self._binds),
        )
        loop = asyncio.get_running_loop()

        def tell(words: str) -> None:
            loop.call_soon_threadsafe(self._news.put_nowait, words)

        probe = container.host_config(replace(self._plan, network="none"))
        try:
            identity = await asyncio.to_thread(
                pulling.have,
                self._wanted,
                self.pull_when,
                self.registries,
                tell,
            )
            version = await asyncio.to_thread(
                pulling.hub_version_in, self._wanted, identity, probe, container.user_of(self._plan)
            )
        except pulling.PullError as error:
            raise RefusedSpawnError(str(error), "image", 409) from error
        if not runs_with(version, jupyterhub.__version__):
            raise RefusedSpawnError(
                f"The image {self._wanted} has JupyterHub {version}, but this service needs version "
                f"{jupyterhub.__version__.partition('.')[0]}; choose another image.",
                "image",
                409,
            )
        self.image = str(self._wanted)
        self._plan = replace(self._plan, image=f"{self._wanted.repository}@{identity}")

    async def equip(self, pieces: Sequence[Slice]) -> None:
        """Put the slices into the container that is to be started."""
        if pieces:
            await asyncio.to_thread(
                devices.nodes_of_all, pieces
            )  # the driver makes them when they are asked for
            access = await self._gpu_access()
            self._plan = replace(self._plan, slices=[piece.uuid for piece in pieces], access=access)

    async def _gpu_access(self) -> GpuAccess:
        try:
            return container.gpu_access(await self.docker("info"))
        except NoGpuAccessError as error:
            raise devices.DeviceError(str(error)) from error

    async def check_allowed(self, image: str) -> str:
        """Return the image; the choice was checked when it was applied."""
        return str(self.image)

    async def pull_image(self, image: str) -> None:
        """Do nothing: `prepare` has pulled it, before the slices were taken."""

    async def create_object(self) -> dict[str, Any]:
        """Create the container."""
        created: dict[str, Any] = await self.docker(
            "create_container",
            self.image,
            name=self.container_name,
            command=await self.get_command(),
            user=container.user_of(self._plan),
            working_dir=self._plan.home,
            environment=self.get_env(),
            ports=[self.port],
            host_config=self.client.create_host_config(**container.host_config(self._plan)),
        )
        return created

    async def start_object(self) -> None:
        """Start the container."""
        try:
            await super().start_object()
        except docker.errors.APIError as error:
            self.log.error("The container of %s does not start: %s", self.owner, error)
            raise RefusedSpawnError(
                "Docker could not start the notebook; tell the administrator of this service, whose journal "
                "has the reason.",
                "engine",
                503,
            ) from error

    def get_env(self) -> dict[str, str]:
        """Return the notebook's environment."""
        return {
            **super().get_env(),
            **container.environment_of(self._plan),
            "HOME": self._plan.home,
            "USER": self.user.name,
            "LOGNAME": self.user.name,
            "SHELL": "/bin/bash",
        }

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the user how far the pull is."""
        yield {"progress": 10, "message": "Your notebook is being prepared."}
        while True:
            yield {"progress": 30, "message": await self._news.get()}
