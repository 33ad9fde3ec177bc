# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a notebook in which Podman works: ``python -m gpufarm_hub.spawning.sealed COMMAND ARGUMENTS``.

It runs under the user's account. First it sets a filter of system calls that no program of the notebook can
remove (seccomp(2)). The filter lets through namespaces of users and mounts, which a container needs, and no
others: in a namespace of networks, a user would be root to the kernel's firewall. It answers that the newer
calls for mounts do not exist, and programs use mount(2). Then this program writes the settings of Podman.
"""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import nested

# <linux/sched.h>: of control groups, host names, IPC, processes, networks.
FORBIDDEN = (0x02000000, 0x04000000, 0x08000000, 0x20000000, 0x40000000)
TIME = 0x80  # of clocks; a part of the signal in the flags of clone(2), which makes none
# seccomp_rule_add(3), seccomp_init(3).
ALLOW, ERRNO, MASKED_EQUAL = 0x7FFF0000, 0x00050000, 7
LATER = ("fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "mount_setattr")
# The other systems whose programs a kernel runs (seccomp_arch_add(3)).
BESIDE = {"x86_64": ("x86", "x32"), "aarch64": ("arm",)}

DEV = Path("/dev")


class SealError(Exception):
    """The notebook cannot be started as it must be; the text says why."""


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


def seal() -> None:
    """Have the kernel refuse this process, and all that it starts, what containers do not need.

    Raises:
        SealError: it does not.
    """
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))

    def must(status: int) -> None:
        if status < 0:
            raise SealError(f"The kernel takes no filter of system calls: {os.strerror(-status)}.")

    def refuse(call: str, error: int, *flags: int) -> None:
        number = library.seccomp_syscall_resolve_name(call.encode())
        comparisons = [_Comparison(0, MASKED_EQUAL, flag, flag) for flag in flags]
        for one in comparisons:
            must(library.seccomp_rule_add_array(rules, ERRNO | error, number, 1, ctypes.byref(one)))
        if not flags:
            must(library.seccomp_rule_add_array(rules, ERRNO | error, number, 0, None))

    for name in BESIDE.get(os.uname().machine, ()):
        must(library.seccomp_arch_add(rules, library.seccomp_arch_resolve_name(name.encode())))
    refuse("unshare", errno.EPERM, *FORBIDDEN, TIME)
    refuse("clone", errno.EPERM, *FORBIDDEN)
    for call in ("clone3", *LATER):  # the flags of clone3(2) are in memory, which a filter does not see
        refuse(call, errno.ENOSYS)
    must(library.seccomp_load(rules))


def driver_of(home: Path) -> str:
    """Return the driver of the storage of images.

    Args:
        home: the user's.

    Returns:
        ``overlay`` if the kernel lets users lay changes over files in the home, which it does on local file
        systems, else ``vfs``. Images that are there are kept.
    """
    storage = home / ".local/share/containers/storage"
    for name in ("overlay", "vfs"):
        if (storage / name).is_dir():
            return name
    try:
        with tempfile.TemporaryDirectory(prefix=".containers-", dir=home) as folder:
            for name in ("lower", "upper", "work", "merged"):
                Path(folder, name).mkdir()
            options = f"userxattr,lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
            mount = ["mount", "-t", "overlay", "-o", options, "overlay", f"{folder}/merged"]
            tried = subprocess.run(
                ["unshare", "--user", "--map-root-user", "--mount", *mount], capture_output=True, check=False
            )
            subprocess.run(["unshare", "--user", "--map-root-user", "rm", "-rf", folder], check=False)
    except OSError:
        return "vfs"
    return "vfs" if tried.returncode else "overlay"


def prepare() -> None:
    """Write the settings of Podman for this notebook."""
    nodes = sorted(str(path) for pattern in ("nvidia*", "nvidia-caps/*") for path in DEV.glob(pattern))
    nodes = [node for node in nodes if not Path(node).is_dir()]
    driver, variables = {}, {}
    if nodes:
        cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
        driver = {f"{nested.LIBRARIES}/{name}": path for name, path in nested.libraries(cache).items()}
        if Path(nested.PROGRAM).exists():
            driver[nested.PROGRAM] = nested.PROGRAM
        variables = {
            name: os.environ.get(name, "") for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
        }
        variables["LD_LIBRARY_PATH"] = nested.LIBRARIES
    home = Path.home()
    nested.FOLDER.mkdir(mode=0o700, exist_ok=True)
    nested.SETTINGS.write_text(nested.settings(nodes, driver, variables), encoding="utf-8")
    nested.STORAGE.write_text(nested.storage(str(home), driver_of(home)), encoding="utf-8")
    nested.RUNTIME.write_text(nested.RUNTIME_TEXT, encoding="utf-8")
    nested.RUNTIME.chmod(0o700)


def main() -> None:
    """Run the program."""
    try:
        seal()
    except (SealError, OSError) as error:
        sys.exit(str(error))
    try:
        prepare()
    except OSError as error:  # as in a full home: the notebook starts, and its user can make room
        print(f"Podman has no settings: {error}", file=sys.stderr)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the notebook's command


if __name__ == "__main__":
    main()
