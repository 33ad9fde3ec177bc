"""Calls to the machine's own programs, and what the bench needs of the machine before it starts."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lab.errors import LabError

# program -> Debian package that brings it
TOOLS = {
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "nsenter": "util-linux",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "setpriv": "util-linux",
    "systemd-nspawn": "systemd-container",
    "unshare": "util-linux",
}
VM_TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "mke2fs": "e2fsprogs"}
# QEMU's firmware and network ROM are separate packages that --no-install-recommends leaves out.
VM_PACKAGES = ["qemu-system-x86", "seabios", "ipxe-qemu", "e2fsprogs"]


def run(command: Sequence[str | Path], *, stdin: str | None = None, check: bool = True) -> str:
    """Run a program and return its standard output.

    :param command: program and arguments.
    :param stdin: text for standard input; nothing when None.
    :param check: whether a non-zero exit status is an error.
    :raises LabError: naming the command and the last lines it wrote to standard error.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        check=False,
    )
    if check and done.returncode:
        said = " / ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-3:])
        raise LabError(f"`{' '.join(words[:8])}` failed with exit status {done.returncode}: {said}")
    return done.stdout


def require_root() -> None:
    """:raises LabError: unless the user is root (mounts, namespaces and bridges need it)."""
    if os.geteuid() != 0:
        raise LabError("lab makes mounts and network namespaces and needs root: run it with sudo")


def require_tools(tools: dict[str, str], packages: Sequence[str] | None = None) -> None:
    """Check that programs are installed.

    :param tools: program -> Debian package.
    :param packages: what to propose for installation, if more than the packages of ``tools``.
    :raises LabError: naming the missing programs and the command that installs them.
    """
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        wanted = sorted(set(packages or [tools[tool] for tool in missing]))
        raise LabError(
            f"missing on this machine: {', '.join(missing)}; "
            f"install with: apt-get install --no-install-recommends {' '.join(wanted)}"
        )


def require_space(path: Path, mebibytes: int, purpose: str) -> None:
    """:raises LabError: if the file system of ``path`` has less than ``mebibytes`` MiB free."""
    path.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path).free >> 20
    if free < mebibytes:
        raise LabError(
            f"{path} has {free} MiB free, {purpose} needs {mebibytes} MiB: free some space or point "
            "LAB_STATE_DIR and LAB_CACHE_DIR elsewhere"
        )


@contextmanager
def locked(path: Path, purpose: str, timeout: float) -> Iterator[None]:
    """Hold an advisory lock; the kernel frees it when the holder dies.

    :param path: the lock file, made when missing.
    :param purpose: what is waited for, for the message.
    :param timeout: seconds to wait for another holder.
    :raises LabError: when the time is over.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path, timeout=timeout):
            yield
    except Timeout:
        raise LabError(
            f"another lab command has held {path} for {timeout:.0f} s, and {purpose} needs it: "
            "wait for that command to end, then try again"
        ) from None


@contextmanager
def usual_umask() -> Iterator[None]:
    """Make files that everybody may read, whatever the umask of the user is (umask(2)).

    Services of a host run as users of their own, and images and packages in the cache serve later runs.
    """
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def fill_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """Have a folder of a cache filled, unless it is there.

    Parallel processes fill folders of their own, and the first one wins.

    Args:
        folder: its name says what is in it; the folder above is made if needed.
        fill: gets an empty folder that everybody may read.
    """
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        scratch.chmod(0o755)
        fill(scratch)
        try:
            scratch.rename(folder)
        except OSError:
            if not folder.exists():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file in one step, so that a reader or a crash sees the old or the new text, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    partial.rename(path)
