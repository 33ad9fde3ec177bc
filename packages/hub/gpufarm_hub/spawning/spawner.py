# SPDX-License-Identifier: GPL-3.0-or-later
"""Common parts of notebooks of all engines: the choice in the form, and the lease of GPU slices."""

from __future__ import annotations

import asyncio
import grp
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from jupyterhub.spawner import Spawner, SpawnException
from traitlets import Bool, Dict, Instance, Int, List, Unicode

from gpufarm_hub.people import accounts
from gpufarm_hub.sharing import adoption, answers, devices, keeping, limits, sessions, strays
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.keeping import Rules
from gpufarm_hub.sharing.leases import Lease, NoSliceError
from gpufarm_hub.sharing.limits import Limit, bytes_of
from gpufarm_hub.sharing.slices import GpuQueryError, Slice, read_gpus
from gpufarm_hub.sharing.waiting import SliceRequest
from gpufarm_hub.store import StoreError

from . import collaborative, deaths, engines, form, mounts, offers
from .engine import Death, EngineError

BOOT = Path("/proc/sys/kernel/random/boot_id")  # another one after each start of the machine (random(4))


class RefusedSpawnError(SpawnException):  # type: ignore[misc]
    """A notebook that is not started, and why: one sentence that the user sees."""

    def __init__(self, message: str, reason: str, status_code: int) -> None:
        super().__init__(message, reason=reason, status_code=status_code)
        # Without it the page shows "409 RefusedSpawnError(reason=...)" in front of the sentence.
        self.jupyterhub_message = message


class SliceSpawner(Spawner):  # type: ignore[misc]
    """Starts a notebook under the user's own account with the memory and GPU slices chosen in the form.

    A spawner of one engine derives from this class first and from JupyterHub's class for that engine second.
    It defines `equip` and `take_programs`, and may add fields to the form (`first_fields`, `apply_more`),
    preparations that take long (`prepare`) and its own way to start a notebook (`launch`).
    """

    desk = Instance(Desk, help="Where slices are handed out.").tag(config=True)
    persons = Instance(accounts.Persons, help="Persons that the names of users belong to.").tag(config=True)
    memory_choices = List(Unicode(), help="Memory sizes offered in the form.").tag(config=True)
    cpu_choices = List(Unicode(), help="Numbers of CPU cores offered in the form.").tag(config=True)
    rules = Instance(Rules, help="When notebooks end.").tag(config=True)
    use_gpu = Bool(help="Whether GPU slices are offered.").tag(config=True)
    profile = Unicode(help="The only profile of GPU slices that is offered; empty for all.").tag(config=True)
    collaborative = Dict(help="Settings of the collaborative JupyterLab.").tag(config=True)
    folders = List(Instance(mounts.Offer), help="Folders of the machine for notebooks.").tag(config=True)
    file_groups = Dict(help="Group of the machine for files, by the user's group.").tag(config=True)
    processes = Int(4096, help="Processes and threads that a notebook may have.").tag(config=True)
    temporary = Unicode("1G", help="Size of a notebook's /tmp.").tag(config=True)

    mem_limit: Any  # bytes; JupyterHub turns what it is given into them
    _lease: Lease | None = None
    _started = False
    _boot = ""
    _asked_to_stop = False
    _choice: form.Choice
    _more: dict[str, Any]
    _binds: list[mounts.Bind]
    _file_group: str = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The notebook, as its engine names it. It is kept in the hub's database, so that a notebook of
        # another engine than the present one is watched over until it ends.
        self.unit_name = self.desk.engine.name_of(self.owner)
        collaborative.adapt(self, self.collaborative)

    def take_programs(self, shared: Mapping[str, Any]) -> None:
        """Be started from the programs of the collaborative JupyterLab.

        Args:
            shared: the settings' entry ``collaborative``; the programs are in ``venv`` or in ``image``.
        """
        raise NotImplementedError

    async def equip(self, pieces: Sequence[Slice]) -> None:
        """Prepare a notebook that sees these slices and no others; the engine's own `start` comes next.

        Raises:
            devices.DeviceError: a slice cannot be reached.
        """
        raise NotImplementedError

    async def prepare(self) -> None:
        """Do what may take long, before the slices are taken."""

    async def launch(self) -> tuple[str, int]:
        """Start the notebook; return its address."""
        started: tuple[str, int] = await super().start()
        return started

    def first_fields(self) -> str:
        """Return fields of the form, as HTML, that come before memory and slices."""
        return ""

    def apply_more(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check and take what is not in `form.Choice`; return it as user options, without what was left out.

        Raises:
            form.ChoiceError: something in it is not offered.
        """
        wanted, group = options.get("mounts", []), options.get("group", "")
        offered = self._file_group_choices()
        if group and group not in offered:
            raise form.ChoiceError(f"The group {group!s:.40} is not offered to you.")
        try:
            self._binds = mounts.choose(self.folders, self.groups, wanted)
        except mounts.MountError as error:
            raise form.ChoiceError(str(error)) from error
        self._file_group = group
        return {name: value for name, value in (("mounts", wanted), ("group", group)) if value}

    @property
    def groups(self) -> list[str]:
        """Names of the user's groups, as the hub knows them."""
        return [group.name for group in self.user.groups]

    def _file_group_choices(self) -> list[str]:
        return sorted({self.file_groups[group] for group in self.groups if group in self.file_groups})

    def file_group_id(self, own: int) -> int:
        """Return the id of the group of new files.

        Args:
            own: the id of the user's own group, which is taken when none was chosen.

        Raises:
            RefusedSpawnError: the chosen group is not a group of persons on this machine.
        """
        if not self._file_group:
            return own
        try:
            found = grp.getgrnam(self._file_group).gr_gid
        except KeyError:
            found = 0
        if not accounts.is_person(found):
            self.log.error("The group %s is missing, or one of the system", self._file_group)
            raise RefusedSpawnError(
                f"The group {self._file_group} cannot be used on this machine; choose another one, or tell "
                "its administrator.",
                "group",
                503,
            )
        return found

    def get_state(self) -> dict[str, Any]:
        """Return what the hub remembers of a notebook."""
        ours = {"unit_name": self.unit_name, "started": self._started, "memory": self.mem_limit}
        return {**super().get_state(), **ours, "boot": self._boot}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up again what the hub remembers."""
        super().load_state(state)
        self.unit_name = state.get("unit_name", self.unit_name)
        self.mem_limit = state.get("memory", self.mem_limit)
        # An earlier version remembered nothing before a notebook was started.
        self._started = state.get("started", "unit_name" in state)
        self._boot = state.get("boot", "")

    def clear_state(self) -> None:
        """Forget what is over when the notebook ends."""
        super().clear_state()
        self._started = False
        self._boot = ""

    @property
    def owner(self) -> str:
        """The lease's owner: user and server name."""
        return f"{self.user.name}/{self.name}"

    @property
    def limit(self) -> Limit:
        """Limit of the user."""
        return self.desk.limit_of(self.user.name, self.groups)

    @property
    def memory_offered(self) -> list[str]:
        """Memory sizes that the user may have."""
        most = self.limit.memory
        return [size for size in self.memory_choices if not most or bytes_of(size) <= most]

    async def get_options_form(self) -> str:
        """Return the form with the numbers of slices that are free right now."""
        last = form.last_fields(self._file_group_choices(), mounts.choices(self.folders, self.groups))
        return self.first_fields() + await self._slice_fields() + last

    async def _slice_fields(self) -> str:
        render = partial(
            form.render, self.memory_offered, cpu_choices=self.cpu_choices, hours=self.limit.hours
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
            offered = offers.offers(slices, self.desk.leases, self.owner)
            held = [lease for lease in self.desk.leases.all() if lease.user == self.user.name]
        except StoreError as error:
            self.log.error("No GPU slices are offered: %s", error)
            return render([], problem="It is not known at the moment which GPU slices are free.")
        limit = self.limit
        allowed = {piece.profile for piece in slices if limit.gpus != 0 or not piece.whole}
        found = [
            offer for offer in offered if offer.profile in allowed and self.profile in ("", offer.profile)
        ]
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

    def _ends(self) -> str:
        """Return when a notebook of this user ends, in words."""
        times = (self.rules.idle_gpu, self.rules.idle, 3600 * self.limit.hours)
        idle_gpu, idle, hours = (keeping.span(seconds) if seconds else "" for seconds in times)
        return form.when_it_ends(idle_gpu, idle, hours, self.use_gpu)

    async def options_from_form(self, form_data: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Return the user options.

        `apply_choice` and `start` check them, because the REST API sets them as well. Choices that they would
        refuse are refused here already: a start that takes longer than a second shows its refusals on another
        page, which knows no queue.
        """
        options = form.parse(form_data)
        apply_choice(self, options)
        self._check_limit()
        if self._choice.gpu:
            slices = await self._slices()
            try:
                place = self.desk.enter(self._slice_request(), slices)
            except NoSliceError as error:
                raise RefusedSpawnError(str(error), "no-slice", 409) from error
            if not place.called:
                raise RefusedSpawnError(answers.waits(place), "waiting", 409)
        return options

    async def start(self) -> tuple[str, int]:
        """Take the lease and start the notebook. When it fails, the hub calls `give_back`."""
        try:
            state = await self.user.get_auth_state() or {}
            person = self.persons.mark(self.user.name)
            await asyncio.to_thread(accounts.ensure, self.user.name, state.get("uid"), person)
        except accounts.AccountError as error:
            raise RefusedSpawnError(str(error), "account", 403) from error
        await self._close_sessions()
        self._check_limit()
        # The hub may have lost sight of a notebook of this user; it must end before its lease does.
        await self._end()
        self.unit_name = self.desk.engine.name_of(self.owner)
        await self.prepare()
        if self._choice.gpu:
            self._lease = await self._take()
        else:
            self._lease = None
            self.desk.leave(self.owner)
        self.desk.notices.clear(self.owner)
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
        self._asked_to_stop = False
        answer = await self.launch()
        self._started, self._boot = True, boot()
        return answer

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

    async def stop(self, now: bool = False) -> None:
        """End the notebook."""
        self._asked_to_stop = True
        await self._end()

    async def _end(self) -> None:
        await asyncio.to_thread(engines.of(self.unit_name).stop, self.unit_name)

    async def tell_death(self) -> None:
        """Tell the user why the notebook has ended, if nobody asked for that."""
        if not self._started or self._asked_to_stop:
            return
        try:
            death = await asyncio.to_thread(engines.of(self.unit_name).death, self.unit_name)
            if self._boot and self._boot != boot():
                death = Death("restart")
            if death:
                self.log.warning("The notebook %s has died: %s", self.owner, death)
                self.desk.notices.tell(self.owner, deaths.explain(death, self.mem_limit or 0))
        except (EngineError, StoreError) as error:
            self.log.error("%s is not told why the notebook has ended: %s", self.owner, error)

    def _check_limit(self) -> None:
        others = [
            spawner for spawner in self.user.spawners.values() if spawner is not self and spawner.active
        ]
        refusal = limits.refusal(
            self.limit, [spawner.mem_limit or 0 for spawner in others], bytes_of(self._choice.memory)
        )
        if refusal:
            self.desk.leave(self.owner)
            raise RefusedSpawnError(refusal, "limit", 409)

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
            self.log.error("No GPU slice can be leased: %s", error)
            raise RefusedSpawnError(
                "It cannot be found out which GPU slices are free; choose no GPU or tell the administrator.",
                "engine",
                503,
            ) from error
        return gpus.offered

    def _slice_request(self) -> SliceRequest:
        choice, limit = self._choice, self.limit
        if choice.hours:
            limit = replace(limit, hours=float(choice.hours))
        options = {name: value for name, value in asdict(choice).items() if value}
        return SliceRequest(self.owner, choice.gpu, choice.slices, limit, {**options, **self._more})

    async def _take(self) -> Lease:
        slices = await self._slices()
        try:
            taken = self.desk.take(self._slice_request(), self.unit_name, slices)
        except NoSliceError as error:
            raise RefusedSpawnError(str(error), "no-slice", 409) from error
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

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the user how far the start is."""
        yield {"progress": 50, "message": "Your notebook is being prepared."}

    async def poll(self) -> int | None:
        """Return None while any process of the notebook is left.

        Engines' own classes take "is stopping" and "does not answer" for the end; the slice of a notebook
        that still computes could then be given to somebody else.

        When the hub died while it started a notebook, it does not know where that answers: it would wait for
        it until the time is up, and turn its user away so long. Such a notebook counts as over, so that the
        hub ends it.
        """
        if self._check_pending and not self._started:
            return 0
        try:
            over = await asyncio.to_thread(engines.of(self.unit_name).is_over, self.unit_name)
        except EngineError as error:
            self.log.error("Taking the notebook of %s as running: %s", self.user.name, error)
            return None
        return 0 if over else None


def boot() -> str:
    """Return what tells the present start of the machine from others."""
    return BOOT.read_text(encoding="ascii").strip()


def apply_choice(spawner: SliceSpawner, user_options: Mapping[str, Any]) -> None:
    """Check the user's choice and apply it: ``c.Spawner.apply_user_options``."""
    try:
        choice = form.check(
            user_options,
            spawner.memory_offered,
            spawner.use_gpu,
            spawner.profile,
            spawner.cpu_choices,
            spawner.limit.hours,
        )
        spawner._more = spawner.apply_more(user_options)
    except form.ChoiceError as error:
        raise RefusedSpawnError(str(error), "choice", 400) from error
    spawner.mem_limit = choice.memory
    if spawner.cpu_choices:
        spawner.cpu_limit = float(choice.cpus or spawner.cpu_choices[0])
    spawner._choice = choice


async def give_back(spawner: SliceSpawner) -> None:
    """Give back the lease: ``c.Spawner.post_stop_hook``.

    The hub calls it after a stop, after a start that failed, and when it finds that a notebook has ended;
    ``stop`` it calls only in the first case.
    """
    await spawner.tell_death()
    try:
        await spawner._end()
    except EngineError as error:
        spawner.log.error("%s keeps its slice: %s", spawner.owner, error)
        return
    lease = spawner.desk.give_back(spawner.owner)
    if lease:
        spawner.log.info("%s gave back slice %s", spawner.owner, lease.uuids)
