# SPDX-License-Identifier: GPL-3.0-or-later
"""Common parts of all ways of logging in: admission, and messages to refused users."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jupyterhub.auth import Authenticator
from tornado.web import HTTPError
from traitlets import Float, Set, Unicode

from gpufarm_hub.sharing import keeping
from gpufarm_hub.spawning.engine import EngineError
from gpufarm_hub.store import JsonStore, StoreError

from . import accounts, visitors
from .accounts import AccountError
from .attempts import Attempts

# The reason that users read, once they may come in again, whose notebook was ended meanwhile.
SHUT_OUT = "you were in none of the groups that may use this service, or did not sign in again in time"


class LoginDownError(Exception):
    """The source of users does not answer; the text is for the administrator."""


def refusal(groups: Iterable[str], whom_to_ask: str) -> str:
    """Return what a user in none of the groups is told."""
    return (
        f"Your account is in none of the groups that may use this service ({', '.join(groups)}). "
        f"Ask {whom_to_ask} for membership, then sign in again."
    )


@contextlib.contextmanager
def forbidden() -> Iterator[None]:
    """Turn an `AccountError` into a page that says why the user cannot come in."""
    try:
        yield
    except AccountError as error:
        raise HTTPError(403, "%s", str(error)) from error


def apply_groups(authenticator: Any, groups: list[str], admin_groups: list[str]) -> None:
    """Configure which groups may come in, and how soon who leaves them is out.

    Args:
        authenticator: the authenticator's section of the configuration object.
        groups: names of the groups that may come in.
        admin_groups: names of the groups that may come in and administer the hub.
    """
    authenticator.manage_groups = True
    authenticator.allowed_groups = set(groups)
    authenticator.admin_groups = set(admin_groups)
    authenticator.enable_auth_state = True
    # Seconds between two looks at the groups of a user. With what the keeper (30) and a notebook (60) may
    # take after that, who leaves is out within six minutes.
    authenticator.auth_refresh_age = 240
    authenticator.refresh_pre_spawn = True
    # Tokens, and so notebooks, are refused as well while a user has to log in again.
    authenticator.auth_refresh_strict = True


@dataclass(frozen=True)
class Person:
    """A user as the provider, directory or machine reports them.

    Attributes:
        name: how the account is called.
        groups: names of the groups.
        uid: number of the account that is theirs already, if they have one.
        identifier: what tells them from somebody else who is given the same name later.
    """

    name: str
    groups: frozenset[str]
    uid: int | None
    identifier: str


class LeavingLogin(Authenticator):  # type: ignore[misc]
    """A login that ends what users have here as soon as they may not come in any more.

    A login derives from this class first.
    """

    shared_account = Unicode(help="An account of nobody, if any; nobody logs in as it.").tag(config=True)
    refused_file = Unicode(help="The file that remembers who must log in again.").tag(config=True)
    relogin_hours = Float(help="How long notebooks go on of users who must log in again.").tag(config=True)
    source = "The service that knows the users"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._looks: dict[str, asyncio.Future[bool | dict[str, Any] | None]] = {}
        self._asked: dict[str, float] = {}
        self._unknown: dict[str, float] = {}  # since when nobody can tell who they are

    def doubt(self, name: str) -> str:
        """Return what users are told while nobody can say who they are by now; empty when somebody can."""
        if name not in self._unknown:
            return ""
        since = datetime.fromtimestamp(self._unknown[name], UTC).strftime("%Y-%m-%d %H:%M UTC")
        return (
            f"{self.source} has not answered since {since}, so it is not known whether you may still come "
            "in. You stay signed in meanwhile."
        )

    async def get_authenticated_user(self, handler: Any, data: Any) -> dict[str, Any] | None:
        """Log a user in."""
        model: dict[str, Any] | None = await super().get_authenticated_user(handler, data)
        if model:
            self._unknown.pop(model["name"], None)
            self._remember_refusal(model["name"], False)
        return model

    def is_due(self, name: str) -> bool:
        """Tell whether it is time to ask again who a user is."""
        return time.monotonic() - self._asked.get(name, float("-inf")) >= self.auth_refresh_age

    async def look_again(self, user: Any, handler: Any) -> bool | dict[str, Any] | None:
        """Ask who the user is by now.

        Returns:
            As `refresh_user` of JupyterHub: the user's model, True for as before, False for a user who must
            log in again; or None for a user who may not come in any more.

        Raises:
            LoginDownError: nobody can tell.
        """
        raise NotImplementedError

    async def refresh_user(self, user: Any, handler: Any = None, **_kwargs: Any) -> bool | dict[str, Any]:
        """Ask who the user is by now; end tokens and notebooks of one who may not come in any more.

        Requests of one user that come together share one question: a refresh token may work once only.
        """
        if user.name == self.shared_account:
            return True  # its users are looked up themselves
        look = self._looks.get(user.name)
        if look is None:
            self._asked[user.name] = time.monotonic()
            look = self._looks[user.name] = asyncio.ensure_future(self.look_again(user, handler))
            look.add_done_callback(lambda _look: self._looks.pop(user.name, None))
        try:
            answer = await asyncio.shield(look)
        except LoginDownError as error:
            self.log.warning("%s stays logged in: %s", user.name, error)
            self._unknown.setdefault(user.name, time.time())
            return True
        self._unknown.pop(user.name, None)
        if answer is None or self._remember_refusal(user.name, answer is False) > 3600 * self.relogin_hours:
            await self._end(user, handler)
            return False
        return dict(answer) if isinstance(answer, dict) else answer

    def _remember_refusal(self, name: str, refused: bool) -> float:
        """Remember whether a user must log in again; return for how many seconds that has been so."""
        store, now = JsonStore(Path(self.refused_file)), time.time()
        try:
            if not refused and name not in store.read():
                return 0
            with store.change() as content:
                if refused:
                    return now - float(content.setdefault(name, now))
                content.pop(name, None)
                return 0
        except StoreError as error:
            self.log.error("It is not known since when %s must log in again: %s", name, error)
            return 0

    async def _end(self, user: Any, handler: Any) -> None:
        self.log.warning("%s may not come in any more: tokens and notebooks end", user.name)
        visitors.shut_out(handler, user.orm_user)
        for name, spawner in [*user.spawners.items()]:  # JupyterHub takes those that it stops out of it
            if spawner.ready or await _interrupted(spawner):
                await handler.stop_single_user(user, name)
                try:
                    spawner.desk.notices.tell(spawner.owner, keeping.ended(SHUT_OUT, time.time()))
                except StoreError as error:
                    self.log.error("%s is not told why the notebook was ended: %s", user.name, error)
            elif not spawner.pending:
                try:
                    await spawner.give_up()
                except EngineError as error:
                    self.log.error("%s is not taken out of the queue: %s", spawner.owner, error)


async def _interrupted(spawner: Any) -> bool:
    """Interrupt the start of a notebook as JupyterHub's API does; tell whether it is to be stopped now."""
    start = spawner._spawn_future
    if spawner.pending != "spawn" or start is None:
        return False
    start.cancel()
    await asyncio.wait([start])
    return not spawner.pending  # another request may have been faster


class PasswordLogin(LeavingLogin):
    """A login by name and password in the hub's own form."""

    allowed_groups = Set(Unicode(), help="Groups that may come in.").tag(config=True)
    admin_groups = Set(Unicode(), help="Groups that may come in and administer.").tag(config=True)
    whom_to_ask = "the administrator of this service"
    # Apart from the hub's other work in threads and from each other: the delay after wrong passwords must
    # hold up neither that nor those who have logged in.
    _checks = ThreadPoolExecutor(16, thread_name_prefix="password")
    _looks_up = ThreadPoolExecutor(8, thread_name_prefix="who")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._attempts = Attempts()

    def identify(self, name: str, password: str) -> Person | None:
        """Return the person of this name and password, or None. It may block.

        Raises:
            AccountError: the password is right, but the person cannot come in; the text is for the user.
            LoginDownError: nobody can tell.
        """
        raise NotImplementedError

    def look_up(self, name: str) -> Person | None:
        """Return the person of this name as they are now, or None when they are gone. It may block.

        Raises:
            LoginDownError: nobody can tell.
        """
        raise NotImplementedError

    async def authenticate(self, handler: Any, data: dict[str, str]) -> dict[str, Any] | None:
        """Check name and password; None when they are wrong.

        Raises:
            tornado.web.HTTPError: they are not wrong, but the user cannot come in; the form says why.
        """
        name, password = data.get("username", "").lower(), data.get("password", "")
        # To a directory an empty password is no login, and it answers "success" (RFC 4513, section 5.1.2).
        if not password or "\0" in password:
            return None
        try:
            with forbidden():
                accounts.check_spelling(name)
                async with self._attempts.one(handler, name) as attempt:
                    person = await _apart(self._checks, self.identify, name, password)
                    attempt.wrong = person is None
        except LoginDownError as error:
            self.log.error("Nobody can log in: %s", error)
            raise HTTPError(
                503,
                "Passwords cannot be checked at the moment. Try again in some minutes; if it lasts, "
                "tell the administrator of this service.",
            ) from error
        return self._model(person) if person else None

    async def check_allowed(self, username: str, auth_model: dict[str, Any] | None) -> bool:
        """Tell whether the user may come in.

        Raises:
            tornado.web.HTTPError: they may not; the form says why.
        """
        if auth_model is None or auth_model["admin"]:
            return True
        if self.allowed_groups.isdisjoint(auth_model["groups"]):
            groups = sorted(self.allowed_groups | self.admin_groups)
            raise HTTPError(403, "%s", refusal(groups, self.whom_to_ask))
        return True

    async def look_again(self, user: Any, handler: Any) -> bool | dict[str, Any] | None:
        """Look again who the user is."""
        person = await _apart(self._looks_up, self.look_up, user.name)
        if person is None:
            return None
        model = self._model(person)
        try:
            await self.check_allowed(user.name, model)
        except HTTPError:
            return None
        return model

    def _model(self, person: Person) -> dict[str, Any]:
        return {
            "name": person.name,
            "groups": sorted(person.groups),
            "admin": not self.admin_groups.isdisjoint(person.groups),
            # The spawner reads the uid, so that it uses the account.
            "auth_state": {"uid": person.uid, "identifier": person.identifier},
        }


async def _apart(
    pool: ThreadPoolExecutor, ask: Callable[..., Person | None], *arguments: str
) -> Person | None:
    return await asyncio.get_running_loop().run_in_executor(pool, ask, *arguments)
