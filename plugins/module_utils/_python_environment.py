# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a virtual environment with a lock file, and plan the changes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

# Packages that `python -m venv` installs; uv leaves these alone in an environment that it did not create.
SEED_PACKAGES = frozenset(("pip", "setuptools", "wheel"))

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*==\s*(?P<version>[A-Za-z0-9.!+_-]+)\s*(?:;\s*(?P<marker>.*?))?\s*"
)
_HASH = re.compile(r"--hash=sha256:(?P<digest>[0-9a-f]{64})(?!\S)")
_DIST_INFO = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)\.dist-info")


class LockError(ValueError):
    """The lock file cannot be used."""


@dataclass(frozen=True, order=True)
class Requirement:
    """One pinned package of a lock file; `marker` is empty when the package is for every machine."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The requirement as the lock file writes it, without its hashes."""
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")


@dataclass(frozen=True)
class Project:
    """A package that is installed from its sources.

    Attributes:
        name: in its normal form.
        version: as its ``pyproject.toml`` says.
        digest: fingerprint of its files.
    """

    name: str
    version: str
    digest: str

    @property
    def text(self) -> str:
        """The project as a diff shows it."""
        return f"{self.name}=={self.version}, made of {self.digest[:12]}"


@dataclass(frozen=True)
class Record:
    """State of the environment after the last run.

    `created` says that the environment itself was finished, `complete` that its packages were too: a run
    that was interrupted leaves a record that says so. `projects` are those that were installed to the end.
    """

    python: str
    digest: str
    requirements: tuple[str, ...]
    installed: tuple[tuple[str, str], ...]
    created: bool
    complete: bool
    projects: tuple[Project, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The planned changes.

    Attributes:
        create: build the environment anew.
        synchronize: install the packages of the lock, and then all projects.
        reinstall: install these packages again, as some may be torn.
        projects: those to install where the packages are right.
        before: lines that tell what is there.
        after: lines that tell what will be there.
    """

    create: bool
    synchronize: bool
    reinstall: bool
    projects: tuple[Project, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return self.create or self.synchronize or bool(self.projects)


def normalize(name: str) -> str:
    """Return a package's name in its normal form (PyPA specification "Names and normalization")."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_lock(text: str) -> tuple[Requirement, ...]:
    """Read a lock file for pip's hash-checking mode, as `uv pip compile --generate-hashes` writes it.

    Raises LockError for anything but pinned packages with SHA-256 hashes, and for a lock that lacks uv.
    """
    requirements = []
    for raw in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*", "", raw).strip()
        if line:
            requirements.append(_parse_line(line))
    if "uv" not in {requirement.name for requirement in requirements}:
        raise LockError("The lock file does not pin uv, which installs the other packages: add uv to it.")
    return tuple(sorted(requirements))


def _parse_line(line: str) -> Requirement:
    pinned, separator, options = line.partition(" --")
    options = separator + options
    match = _REQUIREMENT.fullmatch(pinned.strip())
    if match is None:
        raise LockError(
            f"The lock file has the line '{line}', which is not of the form NAME==VERSION --hash=sha256:...;"
            " make the lock with 'uv pip compile --generate-hashes'."
        )
    hashes = tuple(sorted(found["digest"] for found in _HASH.finditer(options)))
    if not hashes or _HASH.sub("", options).strip():
        raise LockError(
            f"The lock file's line for {match['name']} has no SHA-256 hashes, or other options beside them;"
            " make the lock with 'uv pip compile --generate-hashes'."
        )
    return Requirement(normalize(match["name"]), match["version"], match["marker"] or "", hashes)


def digest(requirements: tuple[Requirement, ...]) -> str:
    """Return a fingerprint of a lock file that ignores its comments, layout and order."""
    lines = [f"{requirement.text} {' '.join(requirement.hashes)}" for requirement in requirements]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def project(name: str, version: str, files: Mapping[str, str]) -> Project:
    """Return what is to be known of a project.

    Args:
        name: as its ``pyproject.toml`` says.
        version: as that says.
        files: their texts by their paths.
    """
    texts = json.dumps(sorted(files.items())).encode()
    return Project(normalize(name), version, hashlib.sha256(texts).hexdigest())


def render_uv(requirements: tuple[Requirement, ...]) -> str:
    """Return the part of a lock that pip needs to install uv."""
    chosen = [requirement for requirement in requirements if requirement.name == "uv"]
    return "".join(f"{r.text} {' '.join('--hash=sha256:' + one for one in r.hashes)}\n" for r in chosen)


def installed_packages(names: list[str]) -> tuple[tuple[str, str], ...]:
    """Return (name, version) of each package among the entries of `site-packages`, seed packages left out.

    The names are those of the `.dist-info` directories (PyPA specification "Recording installed projects").
    """
    matches = [_DIST_INFO.fullmatch(name) for name in names]
    found = [(normalize(match["name"]), match["version"]) for match in matches if match]
    return tuple(sorted(one for one in found if one[0] not in SEED_PACKAGES))


def parse_record(text: str) -> Record | None:
    """Return the record in a file's text, or None when the text is none (a torn file tells nothing)."""
    try:
        found = json.loads(text)
        return Record(
            python=found["python"],
            digest=found["digest"],
            requirements=tuple(found["requirements"]),
            installed=tuple((name, version) for name, version in found["installed"]),
            created=found["created"],
            complete=found["complete"],
            projects=tuple(Project(**one) for one in found.get("projects", ())),
        )
    except (ValueError, KeyError, TypeError):
        return None


def plan(
    requirements: tuple[Requirement, ...],
    projects: tuple[Project, ...],
    python: str,
    record: Record | None,
    installed: tuple[tuple[str, str], ...],
    torn: frozenset[str] = frozenset(),
) -> Plan:
    """Compare an environment with a lock.

    Args:
        requirements: what the lock says.
        projects: what is installed beside.
        python: the version of the interpreter that the environment is for, such as `3.11`.
        record: what the last run left, None when there was none.
        installed: (name, version) of the packages found now.
        torn: names of projects of which an installed file is not as it was installed.
    """
    after = (
        f"python {python}",
        *(requirement.text for requirement in requirements),
        *(one.text for one in projects),
    )
    if record is None or not record.created:
        return Plan(True, True, False, projects, (), after)
    before = (
        f"python {record.python}",
        *record.requirements,
        *(one.text for one in record.projects),
        *_drift(record, installed),
        *(f"{name} was changed by hand" for name in sorted(torn)),
    )
    if record.python != python:
        return Plan(True, True, False, projects, before, after)
    if not record.complete:
        return Plan(False, True, True, projects, (*before, "an installation that was interrupted"), after)
    stale = tuple(one for one in projects if one not in record.projects or one.name in torn)
    same = record.digest == digest(requirements) and record.installed == installed
    # uv removes what neither the lock nor a project names.
    same = same and {one.name for one in record.projects} <= {one.name for one in projects}
    return Plan(False, not same, False, stale if same else projects, before, after)


def difference(
    requirements: tuple[Requirement, ...],
    projects: tuple[Project, ...],
    installed: tuple[tuple[str, str], ...],
) -> tuple[str, ...]:
    """Return a clause for each way in which installed packages contradict lock and projects, if any."""
    allowed: dict[str, set[str]] = {one.name: {_comparable(one.version)} for one in projects}
    for requirement in requirements:
        allowed.setdefault(requirement.name, set()).add(_comparable(requirement.version))
    problems = [f"{name} {version} is not in the lock" for name, version in installed if name not in allowed]
    problems += [
        f"{name} is {version}, the lock says {' or '.join(sorted(allowed[name]))}"
        for name, version in installed
        if name in allowed and _comparable(version) not in allowed[name]
    ]
    present = SEED_PACKAGES.union(name for name, _version in installed)
    wanted = [*(one.name for one in projects), *(one.name for one in requirements if not one.marker)]
    problems += [f"{name} is missing" for name in wanted if name not in present]
    return tuple(problems)


def _drift(record: Record, installed: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Lines that tell what somebody else did to the environment since the last run."""
    if not record.complete:
        return ()
    missing = [f"{name}=={version} was removed by hand" for name, version in record.installed
               if (name, version) not in installed]  # fmt: skip
    added = [f"{name}=={version} was installed by hand" for name, version in installed
             if (name, version) not in record.installed]  # fmt: skip
    return (*missing, *added)


def _comparable(version: str) -> str:
    """Drop trailing zeros, as 1.0 and 1.0.0 are the same (PyPA specification "Version specifiers")."""
    return re.sub(r"(\.0)+$", "", version.lower())
