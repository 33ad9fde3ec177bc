"""Runs pipelined modules of Ansible on a host, in children of a Python that has loaded Ansible's code.

interpreter.c hands calls over. A call is taken only when a Python that began in its place would begin as this
one began (`beginning`), and only when the module brings the very code that is loaded here (`Loaded`); any
other call runs in the host's own Python. The child takes over the state that differs between calls from its
caller: standard streams, environment, working directory, umask and control groups.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import atexit
import gc
import importlib
import os
import selectors
import signal
import site
import socket
import struct
import sys
import threading
import types
import zipfile
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path

NAME = "\0lab-warm"
PYTHON = "/usr/bin/python3"
# Compiled code of archives is shared by all hosts (lab.bytecode).
ARCHIVE = str(Path(__file__).with_name("ansible.zip"))
# Imports that ansible/executor/module_common.py adds to every module, and other common imports.
PRELOADED = (
    "ansible.module_utils._internal._ansiballz._loader",
    "ansible.module_utils._internal._json._profiles._module_legacy_c2m",
    "ansible.module_utils._internal._json._profiles._module_legacy_m2c",
    "ansible.module_utils.common.respawn",
    "ansible.module_utils.compat.version",
    "ansible.module_utils.facts.ansible_collector",
    "ansible.module_utils.facts.compat",
    "ansible.module_utils.facts.default_collectors",
    "ansible.module_utils.service",
    "ansible.module_utils.urls",
    # of the standard library
    *("base64", "datetime", "glob", "grp", "pwd", "runpy", "shutil", "subprocess", "tempfile", "zipfile"),
)
# In the first lines of every packed module (ansible/_internal/_ansiballz/_wrapper.py).
MARK = b"\n_ANSIBALLZ_WRAPPER = True\n"

STATUS = (
    *("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Cpus_allowed", "SigBlk"),
    *("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"),
)
# Python ignores them itself (init_signals in Python/pylifecycle.c).
IGNORED = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
# Variables that Python, its site.py, the C library or OpenSSL read only once.
READ_ONCE = (b"PYTHON", b"LC_", b"LANG", b"LD_", b"TZ", b"HOME", b"GLIBC_", b"MALLOC_", b"OPENSSL_")
FILES_READ_ONCE = (
    *(sys.executable, os.__file__, str(Path(os.__file__).parent), "/etc/localtime", "/etc/ssl/openssl.cnf"),
    *(f"/etc/python3.{sys.version_info.minor}", *site.getsitepackages(), site.getusersitepackages()),
)


def status(pid: int) -> dict[str, str]:
    """Return what /proc/PID/status says (proc_pid_status(5))."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines)


def variables(pid: int) -> dict[bytes, bytes]:
    """Return the environment with which a process began."""
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(word.split(b"=", 1) for word in words if b"=" in word)


def version(path: str) -> tuple[int, int, int] | None:
    """Return something that changes when a file or the list of a folder's files changes."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def beginning(pid: int) -> tuple[object, ...]:
    """Return all that decides how a Python begins which is executed by a process, and what it inherits.

    Args:
        pid: a process that will execute Python, or this Python.
    """
    folder = Path(f"/proc/{pid}")
    said = status(pid)
    root = (folder / "root").stat()
    return (
        [said[key] for key in STATUS],
        int(said["SigIgn"], 16) | IGNORED,
        [(folder / name).read_text() for name in ("limits", "loginuid", "oom_score_adj")],
        os.getpriority(os.PRIO_PROCESS, pid),
        {space.name: str(space.readlink()) for space in (folder / "ns").iterdir()},
        (root.st_dev, root.st_ino, os.uname().nodename),
        {name: value for name, value in variables(pid).items() if name.startswith(READ_ONCE)},
        [version(path) for path in FILES_READ_ONCE],
    )


def control_groups(pid: int | str) -> dict[str, str]:
    """Return the control group of a process in each hierarchy that is mounted here, by mount point."""
    mounts = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, target, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            mounts[""] = target
        elif kind == "cgroup":
            mounts |= dict.fromkeys(options.split(","), target)
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    return {mounts[word]: path for _, words, path in lines if (word := words.split(",")[0]) in mounts}


def join(pid: int) -> None:
    """Move this process to the control groups of another."""
    mine = control_groups("self")
    for mount, path in control_groups(pid).items():
        if mine[mount] != path:
            Path(f"{mount}{path}/cgroup.procs").write_text("0")


class UnlikeError(BaseException):
    """A module brings other code than what is loaded. No `except Exception` on its way may hold it."""


def sums(archive: str) -> dict[str, tuple[int, int]]:
    """Return size and checksum of each file of an archive, as they stand in its directory."""
    with zipfile.ZipFile(archive) as opened:
        return {entry.filename: (entry.file_size, entry.CRC) for entry in opened.infolist()}


class Loaded(MetaPathFinder, Loader):
    """Ansible's code, loaded once, for modules that bring the same.

    Args:
        archive: where Ansible's package is imported from.
        names: modules to import.
    """

    def __init__(self, archive: str, names: Iterable[str]) -> None:
        sys.path.insert(0, archive)
        for name in names:
            importlib.import_module(name)
        sys.path.remove(archive)
        self.modules = {
            name: sys.modules.pop(name) for name in sorted(sys.modules) if name.split(".")[0] == "ansible"
        }
        inside = f"{archive}/"
        self.files: dict[str, str] = {}
        for name, module in self.modules.items():  # packages first
            file = getattr(module, "__file__", None) or ""
            # Modules that six generates or renames belong to the package around it.
            package = name.rpartition(".")[0]
            self.files[name] = file.removeprefix(inside) if file.startswith(inside) else self.files[package]
        self.sums = {file: found for file, found in sums(archive).items() if file in self.files.values()}
        # Paths that modules have stored of themselves, which differ in each call.
        self.places = [
            (module, name, str(value).removeprefix(archive))
            for module in self.modules.values()
            for name, value in vars(module).items()
            if isinstance(value, str | Path) and f"{value}/".startswith(inside)
        ]

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Look into the archive that the module's wrapper puts first, when it asks for Ansible's package.

        Raises:
            UnlikeError: it has a file of another content than the loaded one.
        """
        if name != "ansible":
            return None
        brought = sums(sys.path[0])
        if any(brought.get(file, known) != known for file, known in self.sums.items()):
            raise UnlikeError
        self.wanted = {name: self.modules[name] for name, file in self.files.items() if file in brought}
        return ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Put what the archive has loaded in its place; the rest is imported from there."""
        archive = sys.path[0]
        for owner, name, rest in self.places:
            setattr(owner, name, type(getattr(owner, name))(archive + rest))
        for owner in self.wanted.values():
            if getattr(owner, "__path__", None):
                owner.__path__ = [str(Path(owner.__file__ or "").parent)]
        sys.modules.update(self.wanted)
        sys.meta_path.remove(self)


def run_plain(source: bytes) -> None:
    """Let the host's own Python run what has been read from standard input already."""
    copy = os.memfd_create("source")
    os.write(copy, source)
    os.lseek(copy, 0, os.SEEK_SET)
    os.dup2(copy, 0)
    os.execv(PYTHON, [PYTHON])  # noqa: S606


def run(loaded: Loaded) -> None:
    """Run what standard input brings, as Python does without arguments."""
    sys.argv[:] = [""]
    sys.orig_argv[:] = [PYTHON]
    sys.path[0] = ""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    source = sys.stdin.buffer.read()
    if MARK in source[:4096]:
        sys.meta_path.insert(0, loaded)
        try:
            exec(compile(source, "<stdin>", "exec", dont_inherit=True), main.__dict__)  # noqa: S102
        except UnlikeError:
            pass
        else:
            return
    run_plain(source)


def end(code: object) -> None:
    """End the process of a call as Python does, but do not take apart all that is loaded: that costs as much
    as a small module.

    Python's own first steps are done: exit functions, the end of objects, pending buffers
    (Py_FinalizeEx in Python/pylifecycle.c). With other threads there is more to it: that is left to Python.
    """
    if not isinstance(code, int | None) or threading.active_count() > 1:
        return
    atexit._run_exitfuncs()
    sys.modules["__main__"].__dict__.clear()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit((code or 0) & 0xFF)


def watch(child: int, caller: socket.socket) -> None:
    """Wait for the end of a call and tell the caller; hand its signals on, and let nothing outlive it."""
    with selectors.DefaultSelector() as selector:
        ended = selector.register(os.pidfd_open(child), selectors.EVENT_READ)
        selector.register(caller, selectors.EVENT_READ)
        while ended not in [key for key, _ in selector.select()]:
            numbers = caller.recv(64)
            for number in numbers or [signal.SIGKILL]:
                os.kill(child, number)
            if not numbers:
                selector.unregister(caller)
    _, ending = os.waitpid(child, 0)
    caller.send(struct.pack("i", ending))


def serve(caller: socket.socket, pid: int, set_by_python: dict[bytes, bytes]) -> bool:
    """Take a call in a process of its own, and fork once more: the call leads no session, as under a shell.

    Args:
        caller: connection to the program that hands the call over.
        pid: its process.
        set_by_python: variables that Python sets when it begins (PEP 538).

    Returns:
        Whether this is the process of the call, which has all of the caller's now.
    """
    _, streams, _, _ = socket.recv_fds(caller, 1, 3)
    mask, environment = int(status(pid)["Umask"], 8), variables(pid)
    os.setsid()
    join(pid)
    os.chdir(f"/proc/{pid}/cwd")
    caller.send(b"\0")  # from here on the caller waits for its end
    child = os.fork()
    if child:
        os.chdir("/")
        for stream in streams:
            os.close(stream)
        watch(child, caller)
        return False
    caller.close()
    os.umask(mask)
    os.environ.clear()
    os.environb.update({**environment, **set_by_python})
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return True


def main() -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(NAME)  # a second daemon ends here
    join(1)  # the session that happened to start it may end
    began, at_child = beginning(os.getpid()), signal.getsignal(signal.SIGCHLD)
    environment = variables(os.getpid())
    set_by_python = {name: value for name, value in os.environb.items() if name not in environment}
    loaded = Loaded(ARCHIVE, PRELOADED)
    gc.freeze()  # children share the memory of what they do not touch
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        caller, _ = listener.accept()
        pid, *_ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        try:
            if beginning(pid) != began:
                listener.close()  # before the caller hears of it: it starts another, which begins as it does
                return
        except OSError:  # it has ended
            caller.close()
            continue
        if os.fork():
            caller.close()
            continue
        listener.close()
        signal.signal(signal.SIGCHLD, at_child)
        try:
            taken = serve(caller, pid, set_by_python)
        except OSError:
            os._exit(1)
        if not taken:
            os._exit(0)
        try:
            run(loaded)
        except SystemExit as ending:
            code = ending.code
        else:
            return
        end(code)
        sys.exit(code)


if __name__ == "__main__":
    main()
