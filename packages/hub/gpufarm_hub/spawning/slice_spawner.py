# SPDX-License-Identifier: GPL-3.0-or-later
"""Common parts of notebooks that lease GPU slices of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from gpufarm_hub.people import accounts
from gpufarm_hub.sharing import adoption, answers, devices, sessions, shared, strays
from gpufarm_hub.sharing.leases import Lease, NoSliceError
from gpufarm_hub.sharing.shared import SharedProfile
from gpufarm_hub.sharing.slices import GpuQueryError, Slice, read_gpus
from gpufarm_hub.sharing.waiting import SliceRequest
from gpufarm_hub.store import StoreError

from . import form, offers
from .engine import Death, EngineError
from .spawner import NotebookSpawner, RefusedSpawnError

BOOT = Path("/proc/sys/kernel/random/boot_id")  # another one after each start of the machine (random(4))


class SliceSpawner(NotebookSpawner):
    """Starts a notebook with a lease of the slices chosen in the form.

    A spawner of one engine derives from this class first and from JupyterHub's class for that engine second.
    It defines `equip`, and what `NotebookSpawner` asks for.
    """

    _lease: Lease | None = None
    _boot = ""

    async def equip(self, pieces: Sequence[Slice]) -> None:
        """Prepare a notebook that sees these slices and no others; the engine's own `start` comes next.

        Raises:
            devices.DeviceError: a slice cannot be reached.
        """
        raise NotImplementedError

    async def have_account(self) -> None:
        """Make sure that the user has an account on this machine, whose own sessions open no GPU."""
        await super().have_account()
        await self._close_sessions()

    async def reserve(self) -> None:
        """Take the lease, and prepare the notebook for its slices."""
        if self._choice.gpu:
            self._lease = await self._take()
        else:
            self._lease = None
            self.desk.leave(self.owner)
        pieces = self._lease.pieces if self._lease else ()
        try:
            if pieces:
                await asyncio.to_thread(strays.clear, self.desk, self.log, pieces)
            await self.equip(pieces)
        except devices.DeviceError as error:
            self.log.error("The slices of %s cannot be used: %s", self.owner, error)
            raise RefusedSpawnError(
                "The GPU slice cannot be reached on this machine; tell its administrator.", "device", 503
            ) from error
        except EngineError as error:
            raise self._unknown(error) from error

    async def start(self) -> tuple[str, int] | str:
        """Take the lease and start the notebook."""
        answer = await super().start()
        self._boot = boot()
        return answer

    def get_state(self) -> dict[str, Any]:
        """Return what the hub remembers of a notebook."""
        return {**super().get_state(), "boot": self._boot}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up again what the hub remembers."""
        super().load_state(state)
        self._boot = state.get("boot", "")

    def clear_state(self) -> None:
        """Forget what is over when the notebook ends."""
        super().clear_state()
        self._boot = ""

    def death(self) -> Death | None:
        """Return how the notebook has failed, also when the machine was restarted under it."""
        death = super().death()
        return Death("restart") if self._boot and self._boot != boot() else death

    async def settle(self) -> None:
        """Give back the lease when the notebook is over."""
        await super().settle()
        lease = self.desk.give_back(self.owner)
        if lease:
            self.log.info("%s gave back slice %s", self.owner, lease.uuids)

    async def resource_fields(self) -> str:
        """Return the form's fields with the numbers of slices that are free right now."""
        render = partial(
            form.render, self.memory_offered, cpu_choices=self.cpu_choices, hours=self.most_hours
        )
        if not self.use_gpu:
            return render(None, ends=self._ends())
        try:
            gpus = await asyncio.to_thread(read_gpus)
        except GpuQueryError as error:
            self.log.error("No GPU slices are offered: %s", error)
            return render([], problem="The GPUs of this machine do not answer.")
        slices = gpus.offered
        try:
            offered = offers.offers(slices, self.desk.leases, self.owner, self._shared.values())
            held = [lease for lease in self.desk.leases.all() if lease.user == self.user.name]
        except StoreError as error:
            self.log.error("No GPU slices are offered: %s", error)
            return render([], problem="It is not known at the moment which GPU slices are free.")
        limit = self.limit
        allowed = {piece.profile for piece in slices if limit.gpus != 0 or not piece.whole}
        found = [offer for offer in offered if offer.profile in allowed and self.profile in ("", offer.name)]
        most = limit.slices if allowed or not slices else 0
        missing, cordoned = (
            sum(self.profile in ("", piece.profile) for piece in pieces)
            for pieces in (gpus.withheld, gpus.cordons)
        )
        left = most - sum(len(lease.pieces) for lease in held)
        return render(
            found,
            most,
            chosen=self.profile or form.preselected(found, left),
            missing=missing,
            cordoned=cordoned,
            ends=self._ends(),
        )

    async def options_from_form(self, form_data: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Return the user options; users who must wait for slices are told so on the form."""
        options: dict[str, Any] = await super().options_from_form(form_data)
        if self._choice.gpu:
            slices = await self._slices()
            try:
                place = self.desk.enter(self._slice_request(), slices)
            except NoSliceError as error:
                raise RefusedSpawnError(str(error), "no-slice", 409) from error
            if not place.called:
                raise RefusedSpawnError(answers.waits(place), "waiting", 409)
        return options

    async def _close_sessions(self) -> None:
        """Keep the user's own sessions on the machine from GPUs; administrators go on to see to them."""
        if not self.use_gpu or self.user.admin or not sessions.is_needed(self.user.name):
            return
        try:
            await asyncio.to_thread(sessions.close, accounts.uid_of_person(self.user.name))
        except sessions.SessionError as error:
            self.log.error("Sessions of %s can open GPUs: %s", self.user.name, error)
            raise RefusedSpawnError(
                "Your sessions on this machine cannot be kept from its GPUs; tell its administrator.",
                "account",
                503,
            ) from error

    async def _slices(self) -> list[Slice]:
        try:
            # Apart from taking: when the driver hangs, the hub gives up here and no lease is taken later.
            gpus = await asyncio.to_thread(adoption.agree, self.desk, self.log)
        except GpuQueryError as error:
            self.log.error("No GPU slice can be leased: %s", error)
            raise RefusedSpawnError(
                "The GPUs of this machine do not answer; choose no GPU or tell its administrator.", "gpu", 503
            ) from error
        except EngineError as error:
            raise self._unknown(error) from error
        return gpus.offered

    def _unknown(self, error: EngineError) -> RefusedSpawnError:
        """Return the refusal of a slice whose holders the engine does not tell."""
        self.log.error("No GPU slice can be leased: %s", error)
        return RefusedSpawnError(
            "It cannot be found out which GPU slices are free; choose no GPU or tell the administrator.",
            "engine",
            503,
        )

    @property
    def _shared(self) -> dict[str, SharedProfile]:
        """The profiles that the user may share, by the name of the choice."""
        return shared.choices(self.desk.shared, self.groups)

    def _slice_request(self) -> SliceRequest:
        choice, limit = self._choice, self.limit
        if choice.hours:
            limit = replace(limit, hours=float(choice.hours))
        options = {name: value for name, value in asdict(choice).items() if value}
        together = self._shared.get(choice.gpu)
        profile, notebooks = (together.profile, together.notebooks) if together else (choice.gpu, 1)
        return SliceRequest(self.owner, profile, choice.slices, limit, {**options, **self._more}, notebooks)

    async def _take(self) -> Lease:
        slices = await self._slices()
        try:
            taken = self.desk.take(self._slice_request(), self.unit_name, slices)
        except NoSliceError as error:
            raise RefusedSpawnError(str(error), "no-slice", 409) from error
        except StoreError as error:  # of a start JupyterHub shows no sentence otherwise
            self.log.error("No GPU slice is leased to %s: %s", self.owner, error)
            raise RefusedSpawnError(error.jupyterhub_message, "store", 503) from error
        if not isinstance(taken, Lease):
            raise RefusedSpawnError(answers.waits(taken), "waiting", 409)
        self.log.info("%s holds slice %s (%s)", self.owner, taken.uuids, self._choice.gpu)
        return taken

    def get_env(self) -> dict[str, str]:
        """Return the notebook's environment, with the slice in the variables of CUDA and NVIDIA's tools."""
        env: dict[str, str] = super().get_env()
        env["CUDA_VISIBLE_DEVICES"] = self._lease.uuids if self._lease else ""
        env["NVIDIA_VISIBLE_DEVICES"] = self._lease.uuids if self._lease else "void"
        return env


def boot() -> str:
    """Return what tells the present start of the machine from others."""
    return BOOT.read_text(encoding="ascii").strip()
