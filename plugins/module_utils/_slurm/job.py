# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A batch job of a user, as it is asked for, and as Slurm takes and tells it. No I/O.

Sources: sbatch(1); squeue(1), "JOB STATE CODES"; sacct(1), "ExitCode".
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from .._mesos.console import FAILED, KILLED, LOST, RUNNING, SUCCEEDED, WAITING
from . import reasons
from .accounts import PROFILE, USER

# Of jobs, files in the home, and files of the role, so neither a path nor an option nor a pattern of Slurm.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
PARTITION = NAME
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
LONGEST = 65536  # letters of a command, and of a value; Slurm takes scripts of 4 MiB (slurm.conf(5))
LONGEST_FOLDER = 255  # letters
# Names and the least and most of the numbers: cores, MiB, GPUs, minutes of a year.
NUMBERS = {"cpus": (1, 4096), "memory": (1, 2**26), "gpus": (0, 64), "minutes": (1, 527040)}
# Numbers of accounts of the system: below UID_MIN (login.defs(5)), and those that Debian gives to packages,
# such as Slurm's, and keeps free (Debian Policy, 9.2.2).
SYSTEM = (range(1000), range(60000, 65536))
MARK = re.compile(r"gpufarm:([A-Za-z0-9_.-]+):([0-9a-f]{16}):([0-9a-f]{16})")
PENDING = "PENDING"
UNKNOWN = "unknown"
# Words of Slurm for jobs that wait or are over, in those of consoles; any other means that it runs.
STATES = {
    PENDING: WAITING,
    "COMPLETED": SUCCEEDED,
    "FAILED": FAILED,
    "TIMEOUT": FAILED,
    "OUT_OF_MEMORY": FAILED,
    "CANCELLED": KILLED,
    "DEADLINE": KILLED,
    "PREEMPTED": KILLED,
    "REVOKED": KILLED,
    "NODE_FAIL": LOST,
    "BOOT_FAIL": LOST,
}
CONFIGURATION = ("scontrol", "show", "config")
# Arguments after which times are seconds since 1970 where Slurm tells them (strftime(3)).
QUEUE = ("squeue", "--all", "--noheader", "--states=all", "--format=%A|%T|%j|%k")
DETAILS = ("scontrol", "--oneliner", "show", "job")
ACCOUNTING = (
    "sacct",
    "--noheader",
    "--parsable2",
    "--allocations",
    "--format=JobIDRaw,JobName,State,ExitCode,Start,End,NodeList",
)


class JobProblem(ValueError):
    """The job cannot be, or cannot change; sentences say what, why, and what to do."""


@dataclass(frozen=True)
class Job:
    """A job as it is asked for.

    `folder` is below the home, empty for the home itself. `memory` is in MiB, `minutes` the longest time.
    `gpu` is the type of the GPUs or slices as Slurm knows it, empty for any; `partition` is empty for the
    default one.
    """

    name: str
    command: str
    folder: str
    partition: str
    cpus: int
    memory: int
    gpus: int
    gpu: str
    minutes: int
    environment: Mapping[str, str]

    def digest(self) -> str:
        """Return what tells the definition from others."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def shown(self) -> dict[str, Any]:
        """Return what a diff shows: all but the values of variables."""
        return {**asdict(self), "environment": sorted(self.environment)}


class Memory(NamedTuple):
    """The memory of a job: its definition, what tells its mark from others, its number, and for whom it is.

    The number is 0 if the run ended while it submitted the job.
    """

    job: Job
    nonce: str
    number: int
    made_for: str = ""


class Queued(NamedTuple):
    """A job that Slurm has: number, state in its words, name, and the mark; empty texts if it has none."""

    number: int
    state: str
    name: str
    marked: str
    digest: str
    nonce: str

    @property
    def over(self) -> bool:
        """Return whether it has ended."""
        return STATES.get(self.state, RUNNING) not in (WAITING, RUNNING)


class Told(NamedTuple):
    """How a job goes: state in words of consoles, the reason, exit status, times and nodes.

    The reason is a sentence as long as the job waits, else a word of Slurm.
    The status is empty before the end, times are in seconds since 1970 and 0 for not yet.
    """

    state: str
    reason: str = ""
    exit_code: str = ""
    begun: float = 0.0
    ended: float = 0.0
    machine: str = ""


def problems(owner: str, asked: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a request, one sentence each.

    Args:
        owner: name of the account.
        asked: the fields of a job.
    """
    return list(_problems(owner, asked))


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings of the role.

    Args:
        settings: the variables of the role without ``slurm_job_``.

    Returns:
        ``problems`` and ``job``, the fields of the job as the module takes them.
    """
    fields = ("name", "command", "folder", "partition", *NUMBERS, "gpu", "environment")
    job = {name: settings[name] for name in fields}
    removed = settings["state"] == "absent"
    wrong = list(_identity(settings["owner"], job)) if removed else problems(settings["owner"], job)
    return {"problems": wrong, "job": job}


def read_job(owner: str, asked: Mapping[str, Any]) -> Job:
    """Return the job that is asked for.

    Args:
        owner: name of the account.
        asked: the fields of a job.

    Raises:
        JobProblem: something is wrong; all of it is told.
    """
    wrong = problems(owner, asked)
    if wrong:
        raise JobProblem(" ".join(wrong))
    return _job(asked)


def read_name(owner: str, asked: Mapping[str, Any]) -> str:
    """Return the name of a job, the only thing that matters for a removal.

    Args:
        owner: name of the account.
        asked: the fields of a job; only ``name`` is looked at.

    Raises:
        JobProblem: the account or the name is none.
    """
    wrong = list(_identity(owner, asked))
    if wrong:
        raise JobProblem(" ".join(wrong))
    return str(asked["name"])


def _job(asked: Mapping[str, Any]) -> Job:
    return Job(
        name=asked["name"],
        # Forms send the line ends of other systems, which Slurm refuses.
        command=asked["command"].replace("\r\n", "\n"),
        folder=asked["folder"],
        partition=asked["partition"],
        gpu=asked["gpu"],
        environment={name: str(value) for name, value in sorted(asked["environment"].items())},
        **{name: int(asked[name]) for name in NUMBERS},
    )


def _identity(owner: str, asked: Mapping[str, Any]) -> Iterator[str]:
    if owner == "root":
        yield "slurm_job_owner is root, and jobs never run as root; name the user's account."
    elif not USER.fullmatch(owner):
        yield f"slurm_job_owner is {owner!r}; name the user's account."
    if not NAME.fullmatch(str(asked.get("name") or "")):
        yield (
            f"slurm_job_name is {asked.get('name')!r}; give letters, digits, dots, dashes and underscores, "
            "at most 64, with a letter or digit first."
        )


def _problems(owner: str, asked: Mapping[str, Any]) -> Iterator[str]:
    yield from _identity(owner, asked)
    command, folder = asked["command"].replace("\r\n", "\n"), asked["folder"]
    if not command.strip() or len(command) > LONGEST or CONTROL.search(command):
        yield (
            f"slurm_job_command is empty, longer than {LONGEST} letters, or has control characters; give the "
            "lines of a script of bash."
        )
    parts = folder.split("/")
    plain = folder.isprintable() and "\\" not in folder and len(folder) <= LONGEST_FOLDER
    if folder and (not plain or {"", ".", ".."} & {*parts}):
        yield f"slurm_job_folder is {folder!r}; give a folder below the home, such as work/train, or nothing."
    if asked["partition"] and not PARTITION.fullmatch(asked["partition"]):
        yield f"slurm_job_partition is {asked['partition']!r}; name a partition, or none for the default one."
    if asked["gpu"] and not PROFILE.fullmatch(asked["gpu"]):
        yield f"slurm_job_gpu is {asked['gpu']!r}; name a profile or model that Slurm knows, such as 1g.10gb."
    if asked["gpu"] and not asked["gpus"]:
        yield f"slurm_job_gpu is {asked['gpu']}, and slurm_job_gpus is 0; say how many, or give no type."
    for name, (least, most) in NUMBERS.items():
        if not least <= asked[name] <= most:
            yield f"slurm_job_{name} is {asked[name]}; give {least} to {most}."
    for name, value in asked["environment"].items():
        if not VARIABLE.fullmatch(str(name)):
            yield f"slurm_job_environment has {name!r}; give names of variables, such as DATA."
        elif isinstance(value, bool) or not isinstance(value, (str, int, float)):
            yield f"slurm_job_environment has a value of {name} that is no text; write it in quotes."
        elif len(str(value)) > LONGEST or CONTROL.search(str(value)) or "\n" in str(value):
            yield f"slurm_job_environment has a value of {name} that is no line of text; shorten it."


def mark(job: Job, nonce: str) -> str:
    """Return the comment by which a job is known as ours, and as it is defined.

    Args:
        job: the job.
        nonce: 16 hexadecimal digits that no other submission has.
    """
    return f"gpufarm:{job.name}:{job.digest()}:{nonce}"


def folder_of(job: Job, home: str) -> str:
    """Return the folder in which a job runs.

    Args:
        job: the job.
        home: of its owner.
    """
    return f"{home}/{job.folder}" if job.folder else home


def outputs(job: Job, home: str, number: int | str) -> dict[str, str]:
    """Return the paths of what a job prints, ``stdout`` and ``stderr``.

    Args:
        job: the job.
        home: of its owner.
        number: of the job.
    """
    begin = f"{folder_of(job, home)}/{job.name}-{number}"
    return {"stdout": f"{begin}.out", "stderr": f"{begin}.err"}


def words(job: Job, home: str, nonce: str) -> list[str]:
    """Return the command that submits a job, whose script it reads from its standard input.

    Args:
        job: the job.
        home: of its owner.
        nonce: as `mark` takes it.
    """
    kind = f":{job.gpu}" if job.gpu else ""
    # In names of files, % begins a pattern.
    paths = {stream: path.replace("%", "%%") for stream, path in outputs(job, home, "NUMBER").items()}
    end = len("NUMBER.out")
    return [
        "sbatch",
        "--parsable",
        "--ignore-pbs",
        f"--job-name={job.name}",
        f"--comment={mark(job, nonce)}",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={job.cpus}",
        f"--mem={job.memory}M",
        f"--time={job.minutes}",
        *([f"--gres=gpu{kind}:{job.gpus}"] if job.gpus else []),
        *([f"--partition={job.partition}"] if job.partition else []),
        # The environment of a login of the user on the node, and nothing of this machine.
        "--export=NONE",
        "--input=/dev/null",
        f"--chdir={folder_of(job, home)}",
        f"--output={paths['stdout'][:-end]}%j.out",
        f"--error={paths['stderr'][:-end]}%j.err",
    ]


def script(job: Job) -> str:
    """Return the script of a job.

    After its first command sbatch reads no lines for options of its own any more, so those of users are text.
    Without the variable of Slurm, the option ``--export`` would hold for srun, too: its programs would have
    nothing of the environment, not even PATH (sbatch(1), --export).

    Args:
        job: the job.
    """
    exported = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in job.environment.items())
    return f"#!/bin/bash\n:\nexport SLURM_EXPORT_ENV=ALL\n{exported}{job.command.rstrip()}\n"


def serves(name: str, printed: str) -> bool:
    """Return whether Slurm runs under an account, which may do anything with the jobs of all users.

    Args:
        name: of the account.
        printed: by `CONFIGURATION`.
    """
    found = re.search(r"^SlurmUser\s*=\s*([^\s(]+)", printed, re.MULTILINE)
    return bool(found and found[1] == name)


def read_number(printed: str) -> int:
    """Return the number of the job that ``sbatch --parsable`` has told; 0 if it has told none."""
    found = re.fullmatch(r"([1-9][0-9]{0,9})(;[^\n]*)?\n?", printed)
    return int(found[1]) if found else 0


def read_queue(printed: str) -> list[Queued]:
    """Return the jobs of a user, from `QUEUE`."""
    found = []
    for line in printed.splitlines():
        number, _bar, rest = line.partition("|")
        state, _bar, rest = rest.partition("|")
        name, _bar, comment = rest.partition("|")
        marked = MARK.fullmatch(comment.strip())
        if number.isdigit():
            found.append(Queued(int(number), state, name, *(marked.groups() if marked else ("", "", ""))))
    return found


def ours(name: str, queued: Iterable[Queued], memory: Memory | None) -> list[Queued]:
    """Return the jobs of a name that are not over, those that were submitted last first.

    A user can change the comment of a job; then its number tells.

    Args:
        name: of the job.
        queued: the jobs of the owner.
        memory: what is remembered of the job; None for nothing.
    """
    number = memory.number if memory else 0
    found = [one for one in queued if one.marked == name or (one.number == number and one.name == name)]
    return sorted((one for one in found if not one.over), key=lambda one: -one.number)


def number_of(queued: Iterable[Queued], memory: Memory | None) -> int:
    """Return the number of the job that is remembered; 0 if it was never submitted.

    Args:
        queued: the jobs of the owner.
        memory: what is remembered of the job; None for nothing.
    """
    if memory is None or memory.number:
        return memory.number if memory else 0
    return next((one.number for one in queued if one.nonce == memory.nonce), 0)


class Decision(NamedTuple):
    """The work of a run: the number of the job that stays, or 0 to submit it, and jobs that are ended."""

    number: int
    nonce: str
    cancel: Sequence[int]


def decide(owner: str, job: Job, queued: Sequence[Queued], memory: Memory | None) -> Decision:
    """Return what leads to the job as it is defined.

    A job that is over stays as it is: to have it run once more, change or remove it.

    Args:
        owner: name of the account.
        job: as it is asked for.
        queued: the jobs of the owner.
        memory: what is remembered of the job; None for nothing.

    Raises:
        JobProblem: the job runs with another definition, whose work a change would lose.
    """
    alive = ours(job.name, queued, memory)
    for one in alive:
        digest = memory.job.digest() if memory and memory.number == one.number else one.digest
        if digest == job.digest():
            nonce = memory.nonce if memory and memory.number == one.number else one.nonce
            return Decision(one.number, nonce, [other.number for other in alive if other != one])
    runs = [one for one in alive if one.state != PENDING]
    if runs:
        raise JobProblem(
            f"The job {job.name} of {owner} runs as {runs[0].number} with another definition, and a change "
            "would lose its work; wait until it ends, or remove it first."
        )
    number = number_of(queued, memory)
    if memory and number and not alive and memory.job == job:
        return Decision(number, memory.nonce, [])
    return Decision(0, "", [one.number for one in alive])


def read_details(printed: str, owner: str, number: int) -> Told | None:
    """Return how a job goes, from `DETAILS`; None if it is not this job of the owner.

    Args:
        printed: one line.
        owner: name of the account.
        number: of the job.
    """

    def value(name: str) -> str:
        found = re.search(rf"(?:^| ){name}=(\S*)", printed)
        return found[1] if found else ""

    if value("JobId") != str(number) or value("UserId").partition("(")[0] != owner:
        return None
    return _told(
        value("JobState"),
        value("Reason"),
        value("ExitCode"),
        (value("StartTime"), value("EndTime")),
        value("NodeList"),
    )


def read_accounting(printed: str, name: str, number: int) -> Told | None:
    """Return how a job went, from `ACCOUNTING`; None if there is no such job.

    Args:
        printed: lines with bars between the columns.
        name: of the job.
        number: of the job.
    """
    for line in printed.splitlines():
        columns = line.split("|")
        if len(columns) == 7 and columns[:2] == [str(number), name]:
            state = columns[2].split()[0] if columns[2].split() else ""
            return _told(state, "", columns[3], (columns[4], columns[5]), columns[6])
    return None


def _told(state: str, reason: str, status: str, times: tuple[str, str], nodes: str) -> Told:
    word = STATES.get(state, RUNNING)
    begun, ended = (float(text) if re.fullmatch(r"[0-9]{1,12}", text) else 0.0 for text in times)
    over = word not in (WAITING, RUNNING)
    code, _colon, signal = status.partition(":")
    # As shells tell the end by a signal.
    exit_code = str(128 + int(signal)) if signal.isdigit() and int(signal) else code
    telling = "" if reason in ("None", "(null)") else reason
    if word == FAILED and state != "FAILED":
        telling = state
    if word == WAITING and telling:
        telling = reasons.of(telling)
    return Told(
        word,
        telling,
        exit_code if over else "",
        begun if word != WAITING else 0.0,
        ended if over else 0.0,
        "" if nodes in ("(null)", "None assigned") else nodes,
    )
