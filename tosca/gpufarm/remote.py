# SPDX-License-Identifier: GPL-3.0-or-later
"""Deployments of a `gpufarm serve`, with the methods of `gpufarm.api.Deployer` that users need there."""

from __future__ import annotations

import html
import re
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode

from gpufarm import asking, template
from gpufarm.access import Token
from gpufarm.answers import Console, Deployment, Hours, Removal, Run, Task
from gpufarm.asking import Given
from gpufarm.connection import Connection, Refusal, plain
from gpufarm.errors import BadInput, GpufarmError, Interrupted

__all__ = ["Connection", "Remote", "Token"]

# Seconds between two looks at what goes on, and for which the service may fail to answer meanwhile.
PAUSE = 5.0
BEARABLE = 600.0
# Pages of a list, each with so many deployments; more than both would be no list to read.
PAGES, SIZE = 100, 100
_MONTH = re.compile(r"([0-9]{4}-[0-9]{2})-01")
HOURS = ("slice_hours", "gpu_hours", "cpu_hours", "memory_gib_hours")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Statuses of INDIGO's interface by their endings, in the words of the local command.
_WORDS = {
    "DELETE_IN_PROGRESS": "undeploying",
    "DELETE_COMPLETE": "undeployed",
    "_IN_PROGRESS": "deploying",
    "_COMPLETE": "deployed",
    "_FAILED": "failed",
}


class Remote:
    """The deployments of a user at a service. The name of a deployment there is its uuid."""

    def __init__(self, connection: Connection) -> None:
        """Take the connection; nothing is asked yet.

        Args:
            connection: to the service.
        """
        self._service = connection

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what only a local deployer does.

        Args:
            name: of the method.

        Raises:
            BadInput: always.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        raise BadInput(f"a service offers no {name}; leave out --server to work with machines of your own")

    def names(self) -> list[str]:
        """List the deployments of the user.

        Returns:
            Their names.
        """
        return [entry.name for entry in self.list()]

    def list(self) -> list[Deployment]:
        """List the deployments of the user that are not gone, the newest first.

        Returns:
            The deployments, without their machines.

        Raises:
            GpufarmError: the service refuses that, or does not answer.
        """
        found: list[Deployment] = []
        for page in range(PAGES):
            query = {"createdBy": "me", "excludedStatus": "DELETE_COMPLETE", "page": page, "size": SIZE}
            content = self._service.json("GET", f"/deployments?{urlencode(query)}").get("content")
            entries = content if isinstance(content, list) else []
            found += [_deployment(entry) for entry in entries if isinstance(entry, dict)]
            if len(entries) < SIZE:
                break
        return found

    def show(self, name: str) -> Deployment:
        """Tell about a deployment.

        Args:
            name: of the deployment.

        Returns:
            The deployment.

        Raises:
            GpufarmError: there is none, or the service does not answer.
        """
        here = _path(name)
        seen = self._service.json("GET", here)
        entries = self._service.json("GET", f"{here}/resources?size={SIZE}").get("content")
        machines = {
            _text(entry, "toscaNodeName"): {"host": _text(entry, "physicalId"), "address": ""}
            for entry in (entries if isinstance(entries, list) else [])
            if isinstance(entry, dict) and isinstance(entry.get("metadata"), dict) and entry["metadata"]
        }
        return _deployment(seen, machines, f"{self._service.url}{here}/log")

    def outputs(self, name: str, *, indigo: bool = False) -> dict[str, Any]:
        """Return the outputs of a deployment.

        Args:
            name: of the deployment.
            indigo: no difference: a service tells the names of INDIGO's templates, too.

        Returns:
            The outputs by name.

        Raises:
            GpufarmError: there is none, or the service does not answer.
        """
        return _deployment(self._service.json("GET", _path(name))).outputs

    def log(self, name: str) -> str:
        """Return the progress of all runs.

        Args:
            name: of the deployment.

        Returns:
            The lines.

        Raises:
            GpufarmError: there is none, or the service does not answer.
        """
        return plain(html.unescape(self._service.text("GET", f"{_path(name)}/log")))

    def console(self, name: str) -> Console:
        """Have a worker of the service read how containers and jobs went, and tell it.

        Args:
            name: of the deployment.

        Returns:
            The tasks, those that began last first, and why output could not be read.

        Raises:
            GpufarmError: there is none, it prints nothing, or no worker has read it within some minutes.
            Interrupted: a signal stopped it.
        """
        here, until = f"{_path(name)}/console", time.monotonic() + BEARABLE
        self._service.text("POST", here)
        try:
            while self._service.json("GET", f"{here}?output=false").get("waits") is True:
                if time.monotonic() > until:
                    raise GpufarmError(f"{name}: no worker of the service has read the output yet; try again")
                time.sleep(PAUSE)
        except KeyboardInterrupt as error:
            raise Interrupted(f"{name}: the service goes on reading; ask for it again later") from error
        told = self._service.json("GET", here)
        tasks, failure = told.get("tasks"), _text(told, "failure")
        return Console(
            [_task(entry) for entry in (tasks if isinstance(tasks, list) else []) if isinstance(entry, dict)],
            {name: failure} if failure else {},
        )

    def deploy(
        self,
        path: str | Path,
        pool: Path | None = None,
        *,
        name: str | None = None,
        inputs: Given = None,
        refresh: bool = False,
        description: str | None = None,
        group: str | None = None,
        take_over: bool = False,
        listener: Any,
    ) -> Run:
        """Make a deployment, and wait for its end.

        Args:
            path: of the template, which the service has to offer.
            pool: refused, as the service has one.
            name: refused, as the service makes one.
            inputs: values by name.
            refresh: refused, as the pool is the service's.
            description: refused, as the service keeps none.
            group: of the user, whose quota counts; None for none.
            take_over: refused, as users may not replace what is others'.
            listener: gets lines of progress.

        Returns:
            The deployment after the run.

        Raises:
            GpufarmError: the service refuses it, or it has failed.
        """
        given = {"--pool": pool, "--name": name, "--refresh": refresh, "--description": description}
        given["--take-over"] = take_over
        for option, value in given.items():
            if value:
                raise BadInput(f"{option}: a service decides that itself; leave it out with --server")
        located = asking.located(path)
        body: dict[str, Any] = {
            "parameters": asking.given_values(template.read_inputs(located)[1], inputs),
            "template": located.read_text(encoding="utf-8"),
        }
        if group:
            body["userGroup"] = group
        own = _text(self._service.json("POST", "/deployments", body), "uuid")
        _path(own)
        listener.say(f"{own}: the service has taken it; gpufarm status {own} tells how it goes")
        return self._ended(own, "", listener)

    def update(self, name: str, *, inputs: Given = None, pool: Path | None = None, listener: Any) -> Run:
        """Change values of a deployment, and wait for the end.

        Args:
            name: of the deployment.
            inputs: values that change, by name.
            pool: refused, as the service has one.
            listener: gets lines of progress.

        Returns:
            The deployment after the run.

        Raises:
            GpufarmError: the service refuses it, or it has failed.
        """
        _no_pool(pool)
        here = _path(name)
        text = self._service.text("GET", f"{here}/template")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "template.yaml"
            path.write_text(text, encoding="utf-8")
            values = asking.given_values(template.read_inputs(path)[1], inputs)
        before = self.log(name)
        self._service.text("PUT", here, {"template": text, "parameters": values})
        return self._ended(name, before, listener)

    def removal(self, name: str, *, pool: Path | None = None, forget: Sequence[str] = ()) -> Removal:
        """Look whether a deployment can be removed.

        Args:
            name: of the deployment.
            pool: refused, as the service has one.
            forget: refused, as users do not know the machines of the pool.

        Returns:
            Its name; the service does not tell the steps.

        Raises:
            GpufarmError: there is none, or the service does not answer.
        """
        _no_pool(pool)
        if forget:
            raise BadInput("--forget: a service gives machines up for its administrators only; ask them")
        self._service.json("GET", _path(name))
        return Removal(name, [], [])

    def undeploy(
        self,
        name: str,
        *,
        pool: Path | None = None,
        forget: Sequence[str] = (),
        agreed: Removal | None = None,
        listener: Any,
    ) -> Removal:
        """Remove a deployment, and wait for the end.

        Args:
            name: of the deployment.
            pool: refused, as the service has one.
            forget: refused, as for `removal`.
            agreed: what `removal` has returned.
            listener: gets lines of progress.

        Returns:
            Its name.

        Raises:
            GpufarmError: the service refuses it, or it has failed.
        """
        seen = agreed or self.removal(name, pool=pool, forget=forget)
        before = self.log(name)
        self._service.text("DELETE", _path(name))
        self._ended(name, before, listener)
        return seen

    def hours(
        self,
        *,
        pool: Path | None = None,
        since: str | None = None,
        before: str | None = None,
        by: Sequence[str] = ("month", "group", "user", "profile"),
        folder: Path | None = None,
    ) -> Hours:
        """Tell the hours that the service keeps: those of the user; for administrators, of all.

        Args:
            pool: refused, as the service has one.
            since: first day of a month, in ISO 8601; None for this month.
            before: first day of the month after the period; None for the next one.
            by: fields of a row: ``month``, ``user``, ``group``, ``source``, ``profile``, ``machine``.
            folder: refused, as a service keeps no records.

        Returns:
            The hours, without records.

        Raises:
            BadInput: an argument is refused, or no first day of a month.
            GpufarmError: the service refuses that, or does not answer.
        """
        _no_pool(pool)
        if folder:
            raise BadInput(
                "--folder: a service keeps no records of uses; take --json, or the files of its pages"
            )
        query = {"since": _month(since) if since else f"{datetime.now(UTC):%Y-%m}", "by": [*by]}
        if before:
            query["before"] = _month(before)
        told = self._service.json("GET", f"/hours?{urlencode(query, doseq=True)}")
        rows, silent = told.get("rows"), told.get("silent")
        return Hours(
            since=_text(told, "since"),
            before=_text(told, "before"),
            rows=[_row(row, by) for row in (rows if isinstance(rows, list) else [])],
            records=[],
            silent=_printable(silent) if isinstance(silent, dict) else {},
            machines={},
        )

    def _ended(self, name: str, before: str, listener: Any) -> Run:
        """Wait for the end of a run, and tell how it goes."""
        answered, done = time.monotonic(), None
        try:
            while done is None:
                try:
                    status = _text(self._service.json("GET", _path(name)), "status")
                    log = self.log(name)
                    if not status.endswith("_IN_PROGRESS"):
                        done = self.show(name)
                    answered = time.monotonic()
                except Refusal as error:
                    raise Refusal(f"{error.message}; {_later(name)}") from error
                except GpufarmError as error:  # such as a restart of the service, which goes on with the run
                    if time.monotonic() > answered + BEARABLE:
                        raise GpufarmError(f"{error.message}; {_later(name)}") from error
                else:
                    for line in log.removeprefix(before).splitlines():
                        listener.say(line)
                    before = log
                if done is None:
                    time.sleep(PAUSE)
        except KeyboardInterrupt as error:
            raise Interrupted(f"{name}: the service goes on; {_later(name)}") from error
        if done.status == "failed":
            raise GpufarmError(f"{name}: {done.failure or status}; more is told by gpufarm log {name}")
        return Run(done, [], done.log)


def _task(entry: dict[str, Any]) -> Task:
    cut = entry.get("cut")
    texts = ("node", "id", "machine", "state", "reason", "stdout", "stderr", "unread")
    return Task(
        **{name: _text(entry, name) for name in texts},
        begun=_seconds(_text(entry, "begun")),
        ended=_seconds(_text(entry, "ended")),
        cut=[plain(name) for name in cut if isinstance(name, str)] if isinstance(cut, list) else [],
    )


def _seconds(text: str) -> float:
    """Seconds since 1970 of a time in ISO 8601; 0 for none."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0


def _path(name: str) -> str:
    if not _UUID.fullmatch(name):
        raise BadInput(f"{plain(name)[:64]} is no deployment of a service; gpufarm list tells their names")
    return f"/deployments/{name}"


def _month(text: str) -> str:
    """The month that begins on a day."""
    found = _MONTH.fullmatch(text)
    if not found:
        raise BadInput(
            f"{plain(text)[:32]}: a service keeps hours by month; write the first day of one, as 2026-11-01"
        )
    return found[1]


def _row(row: Any, by: Sequence[str]) -> dict[str, Any]:
    """A row of hours, with the entries that were asked for."""
    told = row if isinstance(row, dict) else {}
    names = {name: _text(told, name) for name in by}
    numbers = {name: told.get(name) for name in HOURS}
    return names | {
        name: float(value) if isinstance(value, int | float) else 0.0 for name, value in numbers.items()
    }


def _later(name: str) -> str:
    return f"ask for it with gpufarm status {name}"


def _no_pool(pool: Path | None) -> None:
    if pool:
        raise BadInput("--pool: a service decides that itself; leave it out with --server")


def _text(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return plain(value) if isinstance(value, str) else ""


def _printable(value: Any) -> Any:
    """A value of an output, of which texts get to a terminal."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_printable(item) for item in value]
    if isinstance(value, dict):
        return {plain(str(key)): _printable(item) for key, item in value.items()}
    return value


def _deployment(
    entry: dict[str, Any], machines: dict[str, dict[str, str]] | None = None, log: str = ""
) -> Deployment:
    """A deployment of the service in the words of the local command."""
    status = _text(entry, "status")
    creator, outputs = entry.get("createdBy"), entry.get("outputs")
    return Deployment(
        name=_text(entry, "uuid"),
        status=next((word for ending, word in _WORDS.items() if status.endswith(ending)), status),
        machines=machines or {},
        failure=_text(entry, "statusReason"),
        id=_text(entry, "uuid"),
        operator=_text(creator, "subject") if isinstance(creator, dict) else "",
        group=_text(entry, "userGroup"),
        created=_text(entry, "creationTime"),
        updated=_text(entry, "updateTime"),
        outputs=_printable(outputs) if isinstance(outputs, dict) else {},
        log=log,
    )
