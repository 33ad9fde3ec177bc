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
import uuid
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from gpufarm import migrations, modes, records
from gpufarm.errors import BadInput, GpufarmError, Locked
from gpufarm.key import Key
from gpufarm.records import Record
from gpufarm.secrecy import separated

# A file system in memory (shm_overview(7)): what a run needs in clear gets to no disk and into no backup.
MEMORY = Path("/dev/shm")  # noqa: S108  (names in it are chosen by mkdtemp)
# The next step where an account may not read a file.
_SHARE = "use the account that made it, or share the state folder with a group as tosca/README.md says"
_PREFIX = "gpufarm-"
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
        template_text: content of the template in the last run; empty if that was done by an older version.
        id: made once; no other deployment ever has it.
        operator: account of the operator who made it; empty if that is not known.
        group: the people that it is for; empty if nobody said.
        description: purpose of the deployment.
        pool: absolute path of the inventory.
        status: ``deploying``, ``deployed``, ``undeploying``, ``failed`` or ``interrupted``.
        created: time of the first run.
        updated: time of the last change.
        inputs: values that the user gave, secrets excepted.
        defaults: those of other inputs, where the template has had another one since.
        secrets: values of the secret inputs that the user gave; encrypted on disk.
        machines: ``host`` and ``address`` of each Compute node.
        freed: the same of those that a removal has given back before it was over; the steps that are left may
            name their addresses.
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
    template_text: str = ""
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    operator: str = ""
    group: str = ""
    description: str = ""
    status: str = "deploying"
    created: str = field(default_factory=now)
    updated: str = field(default_factory=now)
    inputs: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, Any] = field(default_factory=dict)
    machines: dict[str, dict[str, str]] = field(default_factory=dict)
    freed: dict[str, dict[str, str]] = field(default_factory=dict)
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

    def free(self, busy: Collection[str], keep: Collection[str] = ()) -> None:
        """Give machines back on which a removal has nothing left to do.

        Args:
            busy: machines with steps that are left.
            keep: Compute nodes that stay.
        """
        for node, machine in [*self.machines.items()]:
            if node not in keep and machine["host"] not in busy:
                self.freed[node] = self.machines.pop(node)

    def made(self) -> set[str]:
        """Tell what this deployment has carried out.

        Returns:
            The names of the steps that changed something on their machines, or may have.
        """
        known = {name for name, step in self.steps.items() if step.get("made", True)}
        return known | set(self.running)


def _unfit(content: Any) -> str:
    """Say what a state file has that no deployment has; empty if it is in order."""
    for key, kind in get_type_hints(Deployment).items():
        if key in content and not isinstance(content[key], get_origin(kind) or kind):
            return f"{key} is of the wrong type"
    if not all(map(records.is_machine, [*content["machines"].values(), *content["freed"].values()])):
        return "machines have no host or address"
    steps = content["steps"].values()
    if not all(isinstance(step, dict) and {"digest", "attributes"} <= step.keys() for step in steps):
        return "steps have no digest or attributes"
    if not set(content["running"]) <= set(content["steps"]):
        return "running names unknown steps"
    return ""


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
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in ("logs", "runs"):
                modes.make(self.directory / name)
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
        import filelock

        path = self.file(name, ending=".lock")
        self._ready()
        lock = filelock.FileLock(path, mode=modes.of_file(self.directory))
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
        import filelock

        self._ready()
        try:
            path, mode = self.directory / ".machines.lock", modes.of_file(self.directory)
            with filelock.FileLock(path, mode=mode, timeout=30):
                self._complete_lists()
                yield
        except filelock.Timeout as error:
            raise Locked("another run has been choosing machines for 30 seconds; try again") from error

    def _complete_lists(self) -> None:
        """Write the lists that earlier versions did not write, while the states can be read."""
        for name in self.names():
            with contextlib.suppress(GpufarmError):
                if self._listed(name) is None and self.load(name, secrets=False):
                    with self.locked(name):  # a run that holds the lock writes the list itself
                        deployment = self.load(name, secrets=False)
                        if deployment:
                            self._save_list(name, None, deployment.machines)

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
            content = migrations.migrated(json.loads(path.read_text(encoding="utf-8")))
            sealed, content["secrets"] = content["secrets"], {}
            returned = content.pop("returned", "")
            deployment = Deployment(**content)
            wrong = _unfit(vars(deployment))
        except FileNotFoundError:
            if self._list(name).exists():
                raise GpufarmError(f"{path} is missing; {self._repair(name)}") from None
            return None
        except PermissionError as error:
            raise GpufarmError(f"{path} is closed to this account: {error.strerror}; {_SHARE}") from error
        except migrations.Newer as error:
            raise GpufarmError(f"{path} {error}") from error
        except Exception as error:  # whatever the file has in it, none may end in a traceback
            raise GpufarmError(f"{path} cannot be read: {error}; {self._repair(name)}") from error
        if deployment.name != name:
            raise GpufarmError(f"{path} is a copy of the state of {deployment.name}; move it elsewhere")
        if wrong:
            raise GpufarmError(f"{path} cannot be read: {wrong}; {self._repair(name)}")
        if secrets:
            self._unseal(deployment, sealed, returned)
        return deployment

    def _unseal(self, deployment: Deployment, sealed: str, returned: str) -> None:
        """Decrypt what a state file has of secrets."""
        try:
            deployment.secrets = self._key.unseal(sealed) if sealed else {}
            for step, attributes in (self._key.unseal(returned) if returned else {}).items():
                deployment.steps[step]["attributes"] |= attributes
        except GpufarmError:
            raise
        except Exception as error:  # the vault has exceptions of its own
            path = self._path(deployment.name)
            raise GpufarmError(f"{path} cannot be read: {error}; restore it or the key beside it") from error

    def _repair(self, name: str) -> str:
        """The next step where a state file is damaged or lost."""
        files = " and ".join(str(path) for path in (self._path(name), self._list(name)) if path.exists())
        return f"restore it from a backup, or, if its machines are free, remove {files}"

    def _list(self, name: str) -> Path:
        """The list of the machines of a deployment, which is read where its state cannot be."""
        return self.file(name, "machines", ".json")

    def save(self, deployment: Deployment) -> None:
        """Write a deployment, all or nothing.

        Args:
            deployment: as it shall be remembered.

        Raises:
            GpufarmError: the disk is full or the folder cannot be written.
        """
        self._ready()
        deployment.updated = now()
        content = asdict(deployment) | {"format": migrations.FORMAT}
        if deployment.secrets:
            content["secrets"] = self._key.seal(deployment.secrets)
        returned: dict[str, dict[str, Any]] = {}
        for name, step in content["steps"].items():
            step["attributes"], hidden = separated(step["attributes"])
            returned |= {name: hidden} if hidden else {}
        if returned:
            content["returned"] = self._key.seal(returned)
        # After a kill the list may name too many machines, never too few. A new deployment gets its state
        # first: a list alone means that the state was lost.
        listed = self._listed(deployment.name)
        if listed is not None:
            self._save_list(deployment.name, listed, listed | deployment.machines)
        path = self._path(deployment.name)
        self.write(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        self._save_list(deployment.name, listed, deployment.machines)

    def _listed(self, name: str) -> records.Machines | None:
        return records.machines_in(_text(self._list(name)))

    def _save_list(self, name: str, before: records.Machines | None, machines: records.Machines) -> None:
        if machines != before:
            self.write(self._list(name), json.dumps(machines, indent=2, ensure_ascii=False) + "\n")

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
            modes.make(path.parent)
            fresh.unlink(missing_ok=True)  # of a run that was killed, maybe of another account
            handle = modes.opened(fresh, os.O_WRONLY)
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
        self._list(name).unlink(missing_ok=True)
        self._path(name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """List the deployments, also those of which the state is damaged or lost.

        Returns:
            Their names, sorted.
        """
        paths = [*_files(self.directory), *_files(self.directory / "machines")]
        return sorted({path.stem for path in paths if path.suffix == ".json" and _NAME.fullmatch(path.stem)})

    def records(self) -> list[Record]:
        """Read all deployments as far as they can be read.

        Returns:
            The machines of each, and the problem of those of which the state cannot be used.
        """
        found = []
        for name in self.names():
            try:
                deployment = self.load(name, secrets=False)
            except GpufarmError as error:
                text = _text(self._path(name))
                found.append(records.unusable(name, text, self._listed(name), error.message))
            else:
                if deployment:  # else it was undeployed meanwhile
                    found.append(records.sound(deployment, self._listed(name)))
        return found

    def held(self, name: str, addresses: Iterable[str]) -> dict[str, str]:
        """List the machines that are not free.

        Args:
            name: of the deployment that asks; its own machines are free for it.
            addresses: of the machines to choose from.

        Returns:
            The deployment that holds each address.
        """
        return records.held(self.records(), name, addresses)

    def log(self, name: str) -> Path:
        """Choose the log file of a run that starts now.

        Args:
            name: of the deployment.

        Returns:
            A new file.

        Raises:
            GpufarmError: it cannot be made.
        """
        self._ready()
        stamp = now().replace(":", "").replace("+0000", "Z")
        path = self.file(name, "logs", f"-{stamp}-{os.getpid()}.log")
        try:
            os.close(modes.opened(path, os.O_WRONLY))
        except OSError as error:
            raise GpufarmError(f"{path}: the log cannot be written: {error.strerror}") from error
        return path

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
        path.symlink_to(tempfile.mkdtemp(prefix=_PREFIX, dir=MEMORY))
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


def _files(folder: Path) -> list[Path]:
    """The files of a folder. Nothing is left out without a word: it could hold a machine."""
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if not entry.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise GpufarmError(f"{folder} cannot be read: {error.strerror}; {_SHARE}") from error


def _text(path: Path) -> str | None:
    """The content of a file; None if it is missing or cannot be opened."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _clear(path: Path) -> None:
    """Remove the private folder of a run and the link to it; a link that leads elsewhere is not followed."""
    folder = path.resolve()
    if folder.parent == MEMORY.resolve() and folder.name.startswith(_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)
    path.unlink(missing_ok=True)
