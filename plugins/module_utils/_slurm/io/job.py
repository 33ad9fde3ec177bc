# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks Slurm as a user, looks at files with the rights of that user, and remembers the user's jobs.

Slurm itself keeps users from the jobs of others, and the kernel from their files, whatever is asked for.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._host.io import timed
from ..._host.io.files import replace_file
from ..._host.io.patience import PATIENCE as FILE_SECONDS
from ..._host.io.patience import answers
from ..._mesos.console import readable
from ..._shared_home.program import COMMAND as HOME_COMMAND
from .. import job as jobs

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

FOLDER = Path("/var/lib/gpufarm/slurm_job")
HOME_SECONDS = 60.0
LOCKS = Path("/run")
COMPLETING = "COMPLETING"  # of a job whose programs have ended
UMASK = 0o022  # that of jobs, as at a login
PATIENCE = "120"  # seconds for an answer of Slurm
PROGRAMS = "/usr/local/bin:/usr/bin:/bin"


def account(name: str, machine: str) -> pwd.struct_passwd:
    """Return the account of a person.

    Args:
        name: of the account.
        machine: how the host is called in sentences.

    Raises:
        JobProblem: there is none, or it belongs to the system.
    """
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise jobs.JobProblem(
            f"{machine} has no account {name}; have the account made on all machines of the cluster."
        ) from None
    if any(found.pw_uid in numbers for numbers in jobs.SYSTEM):
        raise _of_system(name, machine)
    return found


def _of_system(name: str, machine: str) -> jobs.JobProblem:
    return jobs.JobProblem(
        f"{name} is an account of the system on {machine}, and jobs run for people; name the user's account."
    )


def _asked(user: pwd.struct_passwd, question: Callable[[], Any]) -> Any:
    """Ask about files with the rights of a user, and no others.

    The user may have mounted what never answers, so that is not waited for.

    Raises:
        OSError: the question could not be answered, or not in time.
    """

    def answer() -> Any:
        os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
        try:
            return question()
        except OSError as error:
            raise OSError(error.strerror or str(error)) from error

    found = answers({"": answer}, FILE_SECONDS)
    if not found:
        raise OSError(f"it does not answer within {FILE_SECONDS:.0f} seconds")
    return found[""]


def makes_homes() -> bool:
    """Return whether homes are made here on first use."""
    return Path(HOME_COMMAND).exists()


def make_home(user: pwd.struct_passwd) -> None:
    """Make the home of a user unless it is there: an owner of jobs may never have logged in.

    Args:
        user: whose home it is.

    Raises:
        JobProblem: it cannot be made, in the words of the command.
    """
    done = timed.run([HOME_COMMAND, user.pw_name], HOME_SECONDS)
    if done.status != 0:
        said = " ".join((done.output or done.errors or "no answer in time").split()).rstrip(".")
        raise jobs.JobProblem(f"{user.pw_name} cannot have a home: {said}.")


def check_folder(user: pwd.struct_passwd, job: jobs.Job, *, make: bool) -> None:
    """Refuse a folder that is not in the home, and make one that is not there.

    Args:
        user: owner of the job.
        job: the job.
        make: whether it is made.

    Raises:
        JobProblem: it leads elsewhere, or the user cannot use it.
    """
    path = jobs.folder_of(job, user.pw_dir)

    def outside() -> str:
        home = os.path.realpath(user.pw_dir, strict=True)
        # Links are followed as far as the path exists; the node follows them again, as the user.
        real = os.path.realpath(path)
        if os.path.commonpath([home, real]) != home:
            return real
        if make:
            os.umask(UMASK)
            Path(path).mkdir(mode=0o755, parents=True, exist_ok=True)
        return ""

    try:
        real = _asked(user, outside)
    except OSError as error:
        raise jobs.JobProblem(
            f"{user.pw_name} cannot use the folder {path} ({error}); correct slurm_job_folder, or have the "
            "home set up on this machine."
        ) from error
    if real:
        raise jobs.JobProblem(
            f"{path} leads to {real}, which is not in the home of {user.pw_name}; give a folder in it."
        )


def end_of(user: pwd.struct_passwd, path: str, most: int) -> tuple[str, bool]:
    """Return the end of a file as text, read with the rights of a user, and whether there is more before it.

    Args:
        user: whose rights count.
        path: of a file; links are not followed.
        most: bytes.

    Raises:
        OSError: it cannot be read.
    """

    def read() -> tuple[str, bool]:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        shape = os.fstat(descriptor)
        if not stat.S_ISREG(shape.st_mode):
            raise OSError("it is no plain file")
        start = max(0, shape.st_size - most)
        return readable(os.pread(descriptor, most, start), not start), start > 0

    text, cut = _asked(user, read)
    return text, cut


class Slurm:
    """Slurm, asked as a user.

    Args:
        module: runs the commands.
        user: the account.
        machine: how the host is called in sentences.
        everyone: whether the jobs are those of all users, as root sees them, not of the account alone.
    """

    def __init__(
        self, module: AnsibleModule, user: pwd.struct_passwd, machine: str, *, everyone: bool = False
    ) -> None:
        self.module = module
        self.user = user
        self.machine = machine
        self.everyone = everyone
        self.whose = [] if everyone else [f"--user={user.pw_name}"]

    def _run(self, words: Sequence[str], data: str | None = None) -> tuple[int, str, str]:
        clean = [
            f"HOME={self.user.pw_dir}",
            f"LOGNAME={self.user.pw_name}",
            f"USER={self.user.pw_name}",
            f"PATH={PROGRAMS}",
            "LC_ALL=C.UTF-8",
            "SLURM_TIME_FORMAT=%s",
        ]
        before = os.umask(UMASK)
        try:
            code, printed, complaint = self.module.run_command(
                [
                    *("timeout", PATIENCE, "runuser", f"--user={self.user.pw_name}", "--"),
                    *("env", "--ignore-environment", *clean, *words),
                ],
                data=data,
                binary_data=True,
                cwd="/",
            )
        finally:
            os.umask(before)
        return code, printed, complaint

    def _ask(self, words: Sequence[str]) -> str:
        code, printed, complaint = self._run(words)
        if code:
            reason = " ".join(complaint.split()) or f"it ended with {code}"
            raise jobs.JobProblem(
                f"'{shlex.join(words)}' failed on {self.machine}: {reason}. See that the machine is a login "
                "machine or controller of Slurm whose controller answers."
            )
        return printed

    def is_there(self) -> bool:
        """Return whether the machine has the commands of Slurm."""
        return shutil.which(jobs.QUEUE[0], path=PROGRAMS) is not None

    def queue(self) -> list[jobs.Queued]:
        """Return the jobs of the user, or of all.

        Raises:
            JobProblem: Slurm gives no answer.
        """
        return jobs.read_queue(self._ask([*jobs.QUEUE, *self.whose]))

    def refuse_its_own(self) -> None:
        """Refuse the account that Slurm runs under, whatever its number is.

        Raises:
            JobProblem: it is that account, or Slurm gives no answer.
        """
        if jobs.serves(self.user.pw_name, self._ask(jobs.CONFIGURATION)):
            raise _of_system(self.user.pw_name, self.machine)

    def submit(self, job: jobs.Job, nonce: str) -> int:
        """Submit a job and return its number.

        Args:
            job: the job.
            nonce: as `jobs.mark` takes it.

        Raises:
            JobProblem: Slurm does not take it.
        """
        code, printed, complaint = self._run(jobs.words(job, self.user.pw_dir, nonce), jobs.script(job))
        number = 0 if code else jobs.read_number(printed)
        if not number:
            lines = complaint.split("sbatch: error: ")
            reason = " ".join(lines[-1].split()) or f"it ended with {code}"
            raise jobs.JobProblem(f"Slurm does not take the job {job.name}: {reason}. Correct the request.")
        return number

    def cancel(self, numbers: Sequence[int], *, waiting: bool) -> None:
        """End jobs of the user, or of anybody; one that is over already is no mistake.

        Args:
            numbers: of the jobs.
            waiting: whether jobs that run by now go on.

        Raises:
            JobProblem: Slurm does not end them.
        """
        if numbers:
            only = ["--state=PENDING"] if waiting else []
            try:
                self._ask(["scancel", *self.whose, *only, *map(str, numbers)])
            except jobs.JobProblem:
                # Slurm refuses a job that has ended since the queue was read.
                left = {one.number for one in self.queue() if not one.over and one.state != COMPLETING}
                if left & {*numbers}:
                    raise

    def told(self, name: str, number: int) -> jobs.Told:
        """Return how a job goes or went; the state is unknown if Slurm has forgotten it without accounting.

        Args:
            name: of the job.
            number: of the job.
        """
        code, printed, _complaint = self._run([*jobs.DETAILS, str(number)])
        found = None if code else jobs.read_details(printed, self.user.pw_name, number)
        if found is None:
            code, printed, _complaint = self._run(
                [*jobs.ACCOUNTING, f"--user={self.user.pw_name}", f"--jobs={number}"]
            )
            found = None if code else jobs.read_accounting(printed, name, number)
        return found or jobs.Told(jobs.UNKNOWN, "Slurm has forgotten the job, and has no accounting of it")


@contextlib.contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Hold the lock of an open file, and close it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class Memories:
    """The memory of the jobs of a user, in files that root alone can read.

    Args:
        owner: name of the account.
        folder: where the files are.
        locks: where the locks of owners are.
    """

    def __init__(self, owner: str, folder: Path = FOLDER, locks: Path = LOCKS) -> None:
        self.above = folder
        self.folder = folder / owner
        self.lock = locks / f"gpufarm-slurm-job-{owner}.lock"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs for the user out, so that no job is submitted twice.

        Runs for others go on, also while a home of this user does not answer, or a job does not end.
        """
        with _locked(os.open(self.lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)):
            yield

    @contextlib.contextmanager
    def _folders(self) -> Iterator[None]:
        """Keep others from making and removing the folders for a moment."""
        above = self.above.parent
        above.mkdir(mode=0o755, parents=True, exist_ok=True)
        with _locked(os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)):
            yield

    def read(self, name: str) -> jobs.Memory | None:
        """Return what is remembered of a job; None for nothing, or nothing that can be read.

        Args:
            name: of the job.
        """
        try:
            found = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            job, made_for = jobs.Job(**found["job"]), str(found.get("made_for", ""))
            return jobs.Memory(job, str(found["nonce"]), int(found["number"]), made_for)
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
            return None

    def write(self, memory: jobs.Memory) -> None:
        """Remember a job.

        Args:
            memory: what is known of it.

        Raises:
            OSError: it cannot be written.
        """
        text = json.dumps({**memory._asdict(), "job": asdict(memory.job)})
        with self._folders():
            for folder in (self.above, self.folder):
                folder.mkdir(mode=0o700, exist_ok=True)
            replace_file(self.folder / f"{memory.job.name}.json", text + "\n", 0o600)

    def forget(self, name: str) -> bool:
        """Forget a job.

        Args:
            name: of the job.

        Returns:
            True if there was something to forget.
        """
        path = self.folder / f"{name}.json"
        with self._folders():
            there = path.exists()
            path.unlink(missing_ok=True)
            for folder in (self.folder, self.above):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        return there

    def knows(self, name: str) -> bool:
        """Return whether there is a file for a job.

        Args:
            name: of the job.
        """
        return (self.folder / f"{name}.json").exists()
