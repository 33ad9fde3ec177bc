# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python environments of notebooks: their versions, folders and kernels. No I/O."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .. import _python_environment as locks
from . import trees
from .trees import Tree

GIB = 1 << 30
# Least branch of the driver that runs programs of a major version of CUDA on Linux ("CUDA Compatibility",
# table "CUDA Toolkit and Minimum Required Driver Versions for Minor Version Compatibility").
DRIVER_OF_CUDA = {11: 450, 12: 525, 13: 580}
# Packages that bring the libraries of CUDA along: nvidia-cuda-runtime-cu12, and without a number from 13 on.
CUDA_RUNTIME = re.compile(r"nvidia-cuda-runtime(-cu\d+)?")
# Processors that a marker names; uv writes each package's as alternatives.
PROCESSORS = re.compile(r"platform_machine == '(\w+)'")
# The kernel, and the programs that install its packages and those of users.
NEEDED = ("ipykernel", "pip", "uv")
# Packages that the kernel consists of; a package of a user cannot take their place.
KERNEL = (
    "comm",
    "debugpy",
    "ipykernel",
    "ipython",
    "jupyter-client",
    "jupyter-core",
    "matplotlib-inline",
    "pyzmq",
    "tornado",
    "traitlets",
)
# Releases of Python that the locks of the role are made for: from the one of Debian 12 on.
OLDEST_PYTHON = (3, 11)
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
FOLDER = re.compile(r"(/[A-Za-z0-9._-]+)+")
# Names of files in the folder of a version; the package gpufarm-environment knows them too.
ABOUT, CONSTRAINTS, KERNELS = "gpufarm-environment.json", "gpufarm-kernel.txt", "jupyter"


@dataclass(frozen=True)
class Lock:
    """A lock: its text, and what it says.

    `processor` is that of the machine, as `uname -m` names it; empty if that is not known.
    """

    text: str
    requirements: tuple[locks.Requirement, ...]
    processor: str

    @property
    def cuda(self) -> str:
        """The version of CUDA whose libraries it brings along to the machine; empty without."""
        brought = [one for one in self.requirements if CUDA_RUNTIME.fullmatch(one.name)]
        found = [
            one.version
            for one in brought
            if self.processor in (PROCESSORS.findall(one.marker) or [self.processor]) or not self.processor
        ]
        return ".".join(found[0].split(".")[:2]) if found else ""

    @property
    def branch(self) -> int | None:
        """The least branch of the driver that runs it: 0 if it needs none, None if that is not known here."""
        return DRIVER_OF_CUDA.get(int(self.cuda.partition(".")[0])) if self.cuda else 0

    def runs_with(self, driver: str) -> bool:
        """Tell whether a driver runs it; without a driver it runs on the CPU.

        Args:
            driver: version of the loaded driver, empty for none.
        """
        return not driver or (self.branch is not None and self.branch <= int(driver.partition(".")[0]))

    def version(self, python: str) -> str:
        """Return the name of the version: another lock or another Python is another folder."""
        text = f"{python} {locks.digest(self.requirements)}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Environment:
    """An environment.

    `groups` are those that see it; empty for all. `locks` are for different versions of CUDA, the latest
    first, without those that are for the CPU on the processor of the machine, and for GPUs on others.
    """

    name: str
    title: str
    groups: tuple[str, ...]
    locks: tuple[Lock, ...]

    def lock_for(self, driver: str) -> Lock | None:
        """Return the first lock that a driver runs; None if it runs none of them.

        Args:
            driver: version of the loaded driver, empty for none.
        """
        return next((lock for lock in self.locks if lock.runs_with(driver)), None)


@dataclass(frozen=True)
class Choice:
    """An environment and the one of its locks that the machine gets."""

    environment: Environment
    lock: Lock

    def about(self, driver: str) -> str:
        """Return the title of the environment, its version of CUDA, and why it has this one.

        Args:
            driver: version of the loaded driver, empty for none.
        """
        title, latest = self.environment.title, self.environment.locks[0]
        if not self.lock.cuda:
            return title
        if not driver:
            reason = "no driver is loaded"
        elif self.lock == latest:
            reason = f"driver {driver} runs it"
        else:
            reason = f"driver {driver} does not run CUDA {latest.cuda}"
        return f"{title} (CUDA {self.lock.cuda}: {reason})"


def plan(settings: Mapping[str, Any], machine: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the environments that settings result in.

    Args:
        settings: the variables of the role ``notebook_environments`` without its name, and ``shipped``, the
            environments of the role by name, each with ``title``, ``locks``, that for the latest CUDA first,
            ``gib``, the size on disk, and ``imports``, packages to try.
        machine: result of the module ``notebook_environments_info``; without it, only settings are checked.

    Returns:
        ``problems``, one sentence each. If there are none and the machine is known, ``environments``: of
        each its ``name``, ``version``, ``folder``, ``lock``, ``about``, its CUDA and the reason for that,
        ``imports``, and ``files``, texts by paths;
        ``versions``, each as ``NAME/VERSION``; ``trees``, as `trees.made` returns them; and ``index``, the
        text of the file from which a hub learns them.
    """
    found: list[Environment | Tree] = []
    problems = [*_setting_problems(settings)]
    for entry in _entries(settings):
        try:
            found.append(_read(entry, settings["shipped"], machine["processor"] if machine else ""))
        except ValueError as error:
            problems.append(str(error))
    names = [one.name for one in found]
    problems += [
        f"The environment {name} is named {names.count(name)} times in notebook_environments_names and"
        " notebook_environments_more; name it once."
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    default = settings["default"]
    if default and not problems and default not in names:
        problems.append(
            f"notebook_environments_default is {default:.40}, which is none of the environments; give one of"
            f" {', '.join(names)}."
        )
    if machine is not None and not problems:
        built = [one for one in found if isinstance(one, Environment)]
        locked = [(one, one.lock_for(machine["driver"])) for one in built]
        chosen = [Choice(one, lock) for one, lock in locked if lock]
        problems = [_driver_problem(one, machine["driver"]) for one, lock in locked if not lock]
        problems += _machine_problems(chosen, settings, machine) if built else []
    if problems or machine is None:
        return {"problems": problems}
    made = [_made(one, settings, machine) for one in chosen]
    paths = {one["name"]: f"{one['folder']}/{KERNELS}" for one in made}
    return {
        "problems": [],
        "environments": made,
        "versions": [f"{one['name']}/{one['version']}" for one in made],
        "trees": [trees.made(one) for one in found if isinstance(one, Tree)],
        "index": _index(found, paths, {one.environment.name: one.lock.cuda for one in chosen}, default),
    }


def _entries(settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    names = re.split(r"[\s,]+", settings["names"].strip(" ,"))
    return [*({"name": name} for name in names if name), *settings["more"]]


def _setting_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    folder = settings["folder"]
    if not FOLDER.fullmatch(folder) or len(folder.split("/")) < 3 or {".", ".."} & {*folder.split("/")}:
        yield (
            f"notebook_environments_folder is {folder:.80}, which cannot be used; give an absolute path of at"
            " least two folders, of letters, digits, dots, hyphens and underscores."
        )


def _read(entry: Mapping[str, Any], shipped: Mapping[str, Any], processor: str) -> Environment | Tree:
    name = entry["name"]
    if not NAME.fullmatch(name):
        raise ValueError(
            f"The environment {name!r:.60} has no usable name; use at most 40 lower-case letters, digits and"
            " hyphens."
        )
    if trees.is_tree(entry):
        return trees.read(entry, _title(entry, name))
    own = entry.get("lock") or ""
    known = shipped.get(name, {})
    if not own and not known:
        raise ValueError(
            f"The environment {name} is none of those that this role has ({', '.join(sorted(shipped))}); give"
            " its lock, as 'uv pip compile --generate-hashes' writes it."
        )
    every = tuple(_lock(name, text, processor) for text in ([own] if own else known["locks"]))
    read = tuple(lock for lock in every if lock.cuda) or every
    title = _title(entry, known.get("title") or name)
    return Environment(name, title, tuple(entry.get("groups") or ()), read)


def _lock(name: str, text: str, processor: str) -> Lock:
    try:
        requirements = locks.parse_lock(text)
    except locks.LockError as error:
        raise ValueError(f"The lock of the environment {name} cannot be used: {error}") from error
    missing = [one for one in NEEDED if one not in {requirement.name for requirement in requirements}]
    if missing:
        raise ValueError(
            f"The lock of the environment {name} does not pin {' and '.join(missing)}, which every kernel"
            " needs; add that to its input and make the lock again."
        )
    return Lock(text, requirements, processor)


def _title(entry: Mapping[str, Any], otherwise: str) -> str:
    title = " ".join((entry.get("title") or otherwise).split())
    if len(title) > 60 or not title.isprintable():
        raise ValueError(
            f"The title of the environment {entry['name']} cannot be shown; use at most 60 letters."
        )
    return title


def _machine_problems(
    chosen: list[Choice], settings: Mapping[str, Any], machine: Mapping[str, Any]
) -> Iterator[str]:
    python = machine["python"]
    if tuple(int(part) for part in python.split(".")) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        yield (
            f"The machine has Python {python}, and environments need {oldest} or later; upgrade the"
            " distribution."
        )
        return
    if machine["unsafe"]:
        yield (
            f"{machine['unsafe']} does not belong to root alone, so users could change environments in"
            f" {settings['folder']}; choose another notebook_environments_folder."
        )
    there = {(one["name"], one["version"]) for one in machine["versions"] if one["complete"]}
    new = [one for one in chosen if (one.environment.name, one.lock.version(python)) not in there]
    # Of a lock of the site nobody knows the size before it is fetched.
    needed = sum(_shipped(one.lock, settings).get("gib", 1) for one in new)
    free = machine["free"] / GIB
    if needed > free:
        names = ", ".join(one.environment.name for one in new)
        yield (
            f"The environments {names} need {needed:g} GiB in {settings['folder']}, where {free:.1f} GiB are"
            " free; make room there, or set notebook_environments_folder."
        )


def _driver_problem(environment: Environment, driver: str) -> str:
    """Return why a driver runs no lock of an environment."""
    built = f"The environment {environment.name} is built for CUDA {environment.locks[-1].cuda}"
    branch = environment.locks[-1].branch
    if branch is None:
        return f"{built}, of which the least driver is not known here; give a lock for another CUDA."
    return (
        f"{built}, which needs a driver of branch {branch} or later, and the machine has {driver}; upgrade"
        " the driver, or give a lock for another CUDA."
    )


def _shipped(lock: Lock, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the environment of the role that a lock is of; a lock of the site may bear its name too."""
    return next((known for known in settings["shipped"].values() if lock.text in known["locks"]), {})


def _made(choice: Choice, settings: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    one, lock = choice.environment, choice.lock
    version = lock.version(machine["python"])
    folder = f"{settings['folder']}/{one.name}/{version}"
    about = {"name": one.name, "title": one.title, "version": version, "index_url": settings["pip_index_url"]}
    # -I: neither the folder that the notebook is in nor variables of the user change what starts.
    kernel = {
        "argv": [f"{folder}/bin/python", "-I", "-m", "gpufarm_environment.kernel", "-f", "{connection_file}"],
        "display_name": one.title,
        "language": "python",
        "metadata": {"debugger": True},
    }
    pinned = [requirement for requirement in lock.requirements if requirement.name in KERNEL]
    return {
        "name": one.name,
        "title": one.title,
        "version": version,
        "folder": folder,
        "lock": lock.text,
        "about": choice.about(machine["driver"]),
        "imports": _shipped(lock, settings).get("imports", []),
        "files": {
            ABOUT: _json(about),
            CONSTRAINTS: "".join(requirement.text + "\n" for requirement in pinned),
            f"{KERNELS}/kernels/{one.name}/kernel.json": _json(kernel),
        },
    }


def _index(
    found: list[Environment | Tree], paths: Mapping[str, str], cuda: Mapping[str, str], default: str
) -> str:
    told = [
        {
            "name": one.name,
            "title": one.title,
            "groups": list(one.groups),
            "path": one.path if isinstance(one, Tree) else paths[one.name],
            "cuda": cuda.get(one.name, ""),
        }
        for one in found
    ]
    return _json({"environments": sorted(told, key=lambda one: one["name"] != default) if default else told})


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"
