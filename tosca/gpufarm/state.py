# SPDX-License-Identifier: GPL-3.0-or-later
"""State of deployments: one file per deployment, locked, replaced atomically, readable by its owner alone."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import filelock

from gpufarm.errors import BadInput, GpufarmError, Locked
from gpufarm.key import Key
from gpufarm.secrecy import separated

FORMAT = 1
# A file system in memory (shm_overview(7)): what a run needs in clear gets to no disk and into no backup.
MEMORY = Path("/dev/shm")  # noqa: S108  (names in it are chosen by mkdtemp)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def now() -> str:
    """Tell the time.

    Returns:
        UTC in ISO 8601, to the second.
    """
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@dataclass
class Deployment:
    """A deployment as it is remembered.

    Attributes:
        name: its name.
        template: absolute path of the template.
        pool: absolute path of the inventory.
        status: ``deploying``, ``deployed``, ``undeploying``, ``failed`` or ``interrupted``.
        created: time of the first run.
        updated: time of the last change.
        inputs: values that the user gave, secrets excepted.
        secrets: values of the secret inputs that the user gave; encrypted on disk.
        machines: ``host`` and ``address`` of each Compute node.
        steps: of each step that was begun: ``digest`` (empty until it is done), ``attributes`` (the secret
            ones are encrypted on disk), ``changed`` (number of tasks), ``made`` (whether any run of it
            changed something on the machine, or may have), and since it was done ``host`` and a hash of each
            of its ``variables``.
        running: names of the steps of the run that is under way. After a run that was killed they stay here:
            what they made is not known.
        instances: chosen numbers of instances of Compute nodes.
        outputs: of the template.
        failure: what went wrong last; empty if nothing.
        log: file with the output of the last run.
    """

    name: str
    template: str
    pool: str
    status: str = "deploying"
    created: str = field(default_factory=now)
    updated: str = field(default_factory=now)
    inputs: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, Any] = field(default_factory=dict)
    machines: dict[str, dict[str, str]] = field(default_factory=dict)
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    instances: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    failure: str = ""
    log: str = ""

    @property
    def owner(self) -> str:
        """Owner that the roles record for objects they create; each deployment has its own."""
        return f"deployment {self.name} of {self.created}"

    def begin(self, steps: Iterable[str]) -> None:
        """Note, before a run, what it may change. Nothing is known to be in order until it is done.

        Args:
            steps: names of those that will be run.
        """
        for name in self.running:
            self.steps[name]["made"] = True
        self.running = list(steps)
        for name in self.running:
            self.steps.setdefault(name, {"attributes": {}, "changed": 0, "made": False})["digest"] = ""

    def settle(self, name: str, *, changed: bool) -> None:
        """Note what a step of the run has changed when it is done or has failed.

        Args:
            name: of the step.
            changed: whether it changed something.
        """
        if name in self.running:
            self.running.remove(name)
            self.steps[name]["made"] = self.steps[name].get("made", True) or changed

    def end(self, halted: Iterable[str]) -> None:
        """Note that a run is over, and forget the steps that it never began or that changed nothing.

        Args:
            halted: names of the steps that were stopped halfway.
        """
        for name in halted:
            self.settle(name, changed=True)
        self.running = []
        self.steps = {
            name: step for name, step in self.steps.items() if step["digest"] or step.get("made", True)
        }

    def made(self) -> set[str]:
        """Tell what this deployment has carried out.

        Returns:
            The names of the steps that changed something on their machines, or may have.
        """
        known = {name for name, step in self.steps.items() if step.get("made", True)}
        return known | set(self.running)


def default_directory() -> Path:
    """Find where state is kept.

    Returns:
        ``GPUFARM_STATE_DIR``, or ``gpufarm`` below ``XDG_STATE_HOME`` or ``~/.local/state``.
    """
    chosen = os.environ.get("GPUFARM_STATE_DIR")
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "gpufarm"


class Store:
    """The folder with the state of all deployments of a user."""

    def __init__(self, directory: Path, password_file: Path | None = None) -> None:
        """Open the folder; it is made when something is written.

        Args:
            directory: the folder.
            password_file: has the vault password that the key in the folder is encrypted with; None for none.
        """
        self.directory = directory
        self._key = Key(directory / "key", password_file)

    @property
    def files(self) -> Path:
        """The folder with the files of the controller that inputs may name."""
        return Path(os.environ.get("GPUFARM_FILES_DIR") or self.directory / "files").absolute()

    def _ready(self) -> None:
        try:
            for folder in (self.directory, self.directory / "logs", self.directory / "runs"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise GpufarmError(f"{self.directory}: state cannot be kept here: {error.strerror}") from error

    def file(self, name: str, folder: str = "", ending: str = "") -> Path:
        """Name a file of a deployment. All file names that have a deployment's name in them come from here.

        Args:
            name: of the deployment.
            folder: in which the file is, in the folder of the state.
            ending: of the file's name.

        Returns:
            The path; the file need not be there.

        Raises:
            BadInput: it is no name of a deployment, so the path could be anywhere.
        """
        if not _NAME.fullmatch(name):
            raise BadInput(f'"{name}" is no name for a deployment; use letters, digits, ".", "_" and "-"')
        return self.directory / folder / f"{name}{ending}"

    def _path(self, name: str) -> Path:
        return self.file(name, ending=".json")

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold the lock of a deployment.

        Args:
            name: of the deployment.

        Yields:
            Nothing; the lock is held meanwhile.

        Raises:
            Locked: another run holds it.
        """
        path = self.file(name, ending=".lock")
        self._ready()
        lock = filelock.FileLock(path, mode=0o600)
        try:
            lock.acquire(timeout=1)  # a moment of patience: `status` tries the lock too
        except filelock.Timeout as error:
            raise Locked(
                f"deployment {name} is being changed by another run; wait for it; see: gpufarm status {name}"
            ) from error
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def reserving(self) -> Iterator[None]:
        """Hold the lock under which machines are chosen, so that no two deployments take the same one.

        Yields:
            Nothing; the lock is held meanwhile.

        Raises:
            Locked: another run held it for 30 seconds.
        """
        self._ready()
        try:
            with filelock.FileLock(self.directory / ".machines.lock", mode=0o600, timeout=30):
                yield
        except filelock.Timeout as error:
            raise Locked("another run has been choosing machines for 30 seconds; try again") from error

    def is_locked(self, name: str) -> bool:
        """Tell whether a run is changing a deployment.

        Args:
            name: of the deployment.

        Returns:
            True if its lock is held.
        """
        try:
            with self.locked(name):
                return False
        except Locked:
            return True

    def load(self, name: str, *, secrets: bool = True) -> Deployment | None:
        """Read a deployment.

        Args:
            name: its name.
            secrets: whether they are needed; without them it can only be looked at, and no key is needed.

        Returns:
            The deployment; None if there is none of this name.

        Raises:
            GpufarmError: its file cannot be understood.
        """
        path = self._path(name)
        try:
            content = json.loads(path.read_text())
            if content.pop("format") != FORMAT:
                raise GpufarmError(f"{path}: was written by another version of gpufarm")
            sealed, content["secrets"] = content["secrets"], {}
            returned = content.pop("returned", "")
            if secrets and sealed:
                content["secrets"] = self._key.unseal(sealed)
            if secrets and returned:
                for step, attributes in self._key.unseal(returned).items():
                    content["steps"][step]["attributes"] |= attributes
            return Deployment(**content)
        except FileNotFoundError:
            return None
        except GpufarmError:
            raise
        except Exception as error:  # the vault has exceptions of its own; none may end in a traceback
            raise GpufarmError(f"{path}: cannot be read: {error}; restore it or the key beside it") from error

    def save(self, deployment: Deployment) -> None:
        """Write a deployment, all or nothing.

        Args:
            deployment: as it shall be remembered.

        Raises:
            GpufarmError: the disk is full or the folder cannot be written.
        """
        self._ready()
        deployment.updated = now()
        content = asdict(deployment) | {"format": FORMAT}
        if deployment.secrets:
            content["secrets"] = self._key.seal(deployment.secrets)
        returned: dict[str, dict[str, Any]] = {}
        for name, step in content["steps"].items():
            step["attributes"], hidden = separated(step["attributes"])
            returned |= {name: hidden} if hidden else {}
        if returned:
            content["returned"] = self._key.seal(returned)
        path = self._path(deployment.name)
        self.write(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def write(self, path: Path, text: str) -> None:
        """Write a file of the folder, all or nothing.

        Args:
            path: the file; its own folder is made.
            text: its content.

        Raises:
            GpufarmError: the disk is full or the folder cannot be written.
        """
        self._ready()
        fresh = path.with_name(f".{path.name}.new")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except OSError as error:
            raise GpufarmError(f"{path}: state cannot be written: {error.strerror}") from error

    def remove(self, name: str) -> None:
        """Forget a deployment; its logs stay.

        Args:
            name: of the deployment.
        """
        self._path(name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """List the deployments.

        Returns:
            Their names, sorted.
        """
        return sorted(path.stem for path in self.directory.glob("*.json") if not path.name.startswith("."))

    def held(self, name: str) -> dict[str, str]:
        """List the machines that are not free.

        Args:
            name: of the deployment that asks; its own machines are free for it.

        Returns:
            The deployment that holds each address.
        """
        found: dict[str, str] = {}
        for other in self.names():
            deployment = self.load(other, secrets=False) if other != name else None
            if deployment:
                found |= {machine["address"]: other for machine in deployment.machines.values()}
        return found

    def log(self, name: str) -> Path:
        """Choose the log file of a run that starts now.

        Args:
            name: of the deployment.

        Returns:
            A path that does not exist yet.
        """
        self._ready()
        stamp = now().replace(":", "").replace("+0000", "Z")
        return self.file(name, "logs", f"-{stamp}-{os.getpid()}.log")

    def run_path(self, name: str) -> Path:
        """Name the private folder of a run.

        Args:
            name: of the deployment.

        Returns:
            The folder, a link into memory; it exists only during a run and after one that was killed.
        """
        return self.file(name, "runs")

    @contextlib.contextmanager
    def run_directory(self, name: str) -> Iterator[Path]:
        """Make the private folder of a run; what a killed run left there goes first.

        Args:
            name: of the deployment, whose lock is held.

        Yields:
            An empty folder that is removed afterwards.
        """
        path = self.run_path(name)
        _clear(path)
        path.symlink_to(tempfile.mkdtemp(prefix="gpufarm-", dir=MEMORY))
        try:
            yield path
        finally:
            _clear(path)

    def digest(self, value: Any) -> str:
        """Fingerprint a value that may contain secrets.

        Args:
            value: anything that JSON can carry.

        Returns:
            A keyed hash; without the key it does not help to guess the value.
        """
        self._ready()
        return self._key.digest(value)


def _clear(path: Path) -> None:
    """Remove the private folder of a run and the link to it."""
    shutil.rmtree(path.resolve(), ignore_errors=True)
    path.unlink(missing_ok=True)
