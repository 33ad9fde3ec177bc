# SPDX-License-Identifier: GPL-3.0-or-later
"""Common parts of notebooks of all engines: the choice in the form, limits, and why a notebook ended."""

from __future__ import annotations

import asyncio
import grp
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, TypeVar

from jupyterhub.spawner import Spawner, SpawnException
from traitlets import Bool, Dict, Instance, Int, List, Unicode

from gpufarm_hub.people import accounts
from gpufarm_hub.sharing import keeping, limits
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.keeping import Rules
from gpufarm_hub.sharing.limits import Limit, bytes_of
from gpufarm_hub.store import StoreError

from . import collaborative, deaths, engines, form, mounts
from .engine import Death, EngineError

Answer = TypeVar("Answer")


class RefusedSpawnError(SpawnException):  # type: ignore[misc]
    """A notebook that is not started, and why: one sentence that the user sees."""

    def __init__(self, message: str, reason: str, status_code: int) -> None:
        super().__init__(message, reason=reason, status_code=status_code)
        # Without it the page shows "409 RefusedSpawnError(reason=...)" in front of the sentence.
        self.jupyterhub_message = message


class NotebookSpawner(Spawner):  # type: ignore[misc]
    """Starts a notebook under the user's own account with what is chosen in the form.

    A class for GPUs from somewhere derives from it: it defines the fields of the form for them
    (`resource_fields`), and may take them before a notebook is started (`reserve`) and give them back when it
    is over (`settle`). A spawner of one engine defines `take_programs`, and may add fields to the form
    (`first_fields`, `apply_more`), preparations that take long (`prepare`) and its own start
    of a notebook (`launch`).
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
    _started = False
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

    async def have_account(self) -> None:
        """Make sure that the user has an account on this machine.

        Raises:
            RefusedSpawnError: the account cannot be made, or is somebody else's.
        """
        try:
            state = await self.user.get_auth_state() or {}
            person = self.persons.mark(self.user.name)
            await asyncio.to_thread(accounts.ensure, self.user.name, state.get("uid"), person)
        except accounts.AccountError as error:
            raise RefusedSpawnError(str(error), "account", 403) from error

    async def in_thread(self, ask: Callable[..., Answer], *arguments: Any) -> Answer:
        """Return what a function returns that asks the engine, and may wait for it."""
        return await asyncio.to_thread(ask, *arguments)

    async def look(self) -> None:
        """Find out what can be offered now; a choice is checked next."""

    async def end_earlier(self) -> None:
        """End a notebook of the same name: the hub may have lost sight of it."""
        await self._end()

    async def prepare(self) -> None:
        """Do what may take long, before GPUs are taken."""

    async def reserve(self) -> None:
        """Take the GPUs that were chosen."""

    async def resource_fields(self) -> str:
        """Return the fields of the form for memory, CPU cores and GPUs, as HTML."""
        raise NotImplementedError

    async def launch(self) -> tuple[str, int] | str:
        """Start the notebook; return its address."""
        started: tuple[str, int] = await super().start()
        return started

    def first_fields(self) -> str:
        """Return fields of the form, as HTML, that come before those for resources."""
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
        return {**super().get_state(), **ours}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up again what the hub remembers."""
        super().load_state(state)
        self.unit_name = state.get("unit_name", self.unit_name)
        self.mem_limit = state.get("memory", self.mem_limit)
        # An earlier version remembered nothing before a notebook was started.
        self._started = state.get("started", "unit_name" in state)

    def clear_state(self) -> None:
        """Forget what is over when the notebook ends."""
        super().clear_state()
        self._started = False

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

    @property
    def most_hours(self) -> float:
        """Hours for which a notebook of the user may run; 0 for any number."""
        return self.limit.hours

    async def get_options_form(self) -> str:
        """Return the form with the resources that are free right now."""
        last = form.last_fields(self._file_group_choices(), mounts.choices(self.folders, self.groups))
        return self.first_fields() + await self.resource_fields() + last

    def _ends(self) -> str:
        """Return when a notebook of this user ends, in words."""
        times = (self.rules.idle_gpu, self.rules.idle, 3600 * self.most_hours)
        idle_gpu, idle, hours = (keeping.span(seconds) if seconds else "" for seconds in times)
        return form.when_it_ends(idle_gpu, idle, hours, self.use_gpu)

    async def options_from_form(self, form_data: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Return the user options.

        `apply_choice` and `start` check them, because the REST API sets them as well. Choices that they would
        refuse are refused here already: a start that takes longer than a second shows its refusals on another
        page, which knows no queue.
        """
        options = form.parse(form_data)
        await apply_choice(self, options)
        self._check_limit()
        return options

    async def start(self) -> tuple[str, int] | str:
        """Start the notebook; return its address. When it fails, the hub calls `give_back`."""
        await self.have_account()
        self._check_limit()
        await self.end_earlier()  # before its GPUs are given back
        self.unit_name = self.desk.engine.name_of(self.owner)
        await self.prepare()
        await self.reserve()
        self.desk.notices.clear(self.owner)
        self._asked_to_stop = False
        answer = await self.launch()
        self._started = True
        return answer

    async def stop(self, now: bool = False) -> None:
        """End the notebook."""
        self._asked_to_stop = True
        await self._end()

    async def _end(self) -> None:
        await self.in_thread(engines.of(self.unit_name).stop, self.unit_name)

    async def tell_death(self) -> None:
        """Tell the user why the notebook has ended, if nobody asked for that."""
        if not self._started or self._asked_to_stop:
            return
        try:
            death = await self.in_thread(self.death)
            if death:
                self.log.warning("The notebook %s has died: %s", self.owner, death)
                self.desk.notices.tell(self.owner, deaths.explain(death, self.mem_limit or 0))
        except (EngineError, StoreError) as error:
            self.log.error("%s is not told why the notebook has ended: %s", self.owner, error)

    def death(self) -> Death | None:
        """Return how the notebook has failed; None if it did not, or if that is forgotten.

        Raises:
            EngineError: the engine does not answer.
        """
        return engines.of(self.unit_name).death(self.unit_name)

    async def settle(self) -> None:
        """Have nothing left of a notebook that is over.

        Raises:
            EngineError: the engine does not answer.
        """
        await self._end()

    async def give_up(self) -> None:
        """Have nothing wait for another start of the notebook, as there will be none.

        Raises:
            EngineError: the engine does not answer.
        """

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
            over = await self.in_thread(engines.of(self.unit_name).is_over, self.unit_name)
        except EngineError as error:
            self.log.error("Taking the notebook of %s as running: %s", self.user.name, error)
            return None
        return 0 if over else None


async def apply_choice(spawner: NotebookSpawner, user_options: Mapping[str, Any]) -> None:
    """Check the user's choice and apply it: ``c.Spawner.apply_user_options``."""
    await spawner.look()
    try:
        choice = form.check(
            user_options,
            spawner.memory_offered,
            spawner.use_gpu,
            spawner.profile,
            spawner.cpu_choices,
            spawner.most_hours,
        )
        spawner._more = spawner.apply_more(user_options)
    except form.ChoiceError as error:
        raise RefusedSpawnError(str(error), "choice", 400) from error
    spawner.mem_limit = choice.memory
    if spawner.cpu_choices:
        spawner.cpu_limit = float(choice.cpus or spawner.cpu_choices[0])
    spawner._choice = choice


async def give_back(spawner: NotebookSpawner) -> None:
    """Tell why a notebook has ended, and give back what it had: ``c.Spawner.post_stop_hook``.

    The hub calls it after a stop, after a start that failed, and when it finds that a notebook has ended;
    ``stop`` it calls only in the first case.
    """
    await spawner.tell_death()
    try:
        await spawner.settle()
    except EngineError as error:
        spawner.log.error("%s keeps its GPUs: %s", spawner.owner, error)
