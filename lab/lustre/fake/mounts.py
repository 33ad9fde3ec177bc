# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake of mount.lustre: a client's file system is a folder, a target an empty tmpfs."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from . import disk, lnet, mmp, network, state

HERE = Path(__file__).resolve().parents[1]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Options that mount(8) and mount.lustre handle themselves (lustre/utils/mount_lustre.c, opt_map).
FLAGS = words(
    "defaults remount rw ro exec noexec suid nosuid dev nodev sync async atime noatime diratime"
    " nodiratime relatime norelatime strictatime auto noauto nousers nouser noowner _netdev loop"
)
# lustre/llite/llite_lib.c (ll_options) and lustre/obdclass/obd_mount.c (lmd_parse); mount.lustre(8).
CLIENT = words(
    "flock localflock noflock lazystatfs nolazystatfs user_xattr nouser_xattr always_ping verbose noverbose"
    " user_fid2path nouser_fid2path noencrypt test_dummy_encryption"
)
SERVER = words("acl noacl no_create nosvc nomgs noclient noscrub skip_lfsck abort_recov")
WITH_VALUE = {
    "network": r"(tcp|o2ib)[0-9]*",
    "mgsname": ".+",
    "mgssec": "null|plain|gssnull|krb5[naip]|ski?|skpi|skn|ska",
    "skpath": "/.+",
    "exclude": ".+",
    "retry": "[0-9]+",
}
SERVER_WITH_VALUE = {
    "md_stripe_cache_size": "[0-9]+",
    "recovery_time_soft": "[0-9]+",
    "recovery_time_hard": "[0-9]+",
    "mgsnode": ".+",
}
ADVICE = {
    errno.EBUSY: "Is the backend filesystem mounted?\nCheck /etc/mtab and /proc/mounts",
    errno.ENODEV: "Are the lustre modules loaded?\nCheck /etc/modprobe.conf and /proc/filesystems",
    errno.ENOMEDIUM: "This filesystem needs at least 1 OST",
    errno.ENOENT: "Is the MGS specification correct?\nIs the filesystem name correct?\n"
    "If upgrading, is the copied client log valid? (see upgrade docs)",
    errno.EALREADY: "The target service is already running.",
    errno.EIO: "Is the MGS running?",
    errno.EADDRINUSE: "The target service's index is already in use.",
}


def refuse(source: str, path: str, code: int) -> NoReturn:
    words = f"mount.lustre: mount {source} at {path} failed: {state.reason(code)}"
    if code == errno.EINVAL:
        name = source.partition(":/")[2]
        words += "\nThis may have multiple causes.\n"
        words += f"Is '{name}' the correct filesystem name?\n" if name else ""
        words += "Are the mount options correct?\nCheck the syslog for more info."
    elif code in ADVICE:
        words += "\n" + ADVICE[code]
    state.fail(code, words)


def read_options(given: list[str], client: bool) -> tuple[list[str], dict[str, str]] | None:
    """Return flags and options; None when the kernel would refuse one."""
    flags, options = [], {}
    plain = CLIENT if client else SERVER
    values = WITH_VALUE if client else SERVER_WITH_VALUE
    for one in given:
        name, _equals, value = one.partition("=")
        if not one or name in FLAGS or name.startswith("x-") or name == "comment":
            flags.append(one)
        elif (name in values and re.fullmatch(values[name], value)) or one in plain:
            options[name] = value
        else:
            return None
    return flags, options


def to_nid(text: str) -> str:
    """Return a NID with its address as numbers (convert_hostnames)."""
    address, at, net = text.partition("@")
    if not address:  # which gethostbyname would take
        raise ValueError
    net = network.canonical(net if at else "tcp")
    if not re.fullmatch(r"(tcp|o2ib|efa|kfi|gni)[0-9]{0,5}", net):
        raise ValueError
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){3}", address):
        try:
            address = socket.gethostbyname(address)
        except (OSError, UnicodeError):
            raise ValueError from None
    if any(int(part) > 255 for part in address.split(".")):
        raise ValueError
    return f"{address}@{net}"


def read_source(source: str) -> tuple[list[list[str]], str, str]:
    """Return the NIDs of each server, the file system and the folder in it."""
    servers, _separator, rest = source.partition(":/")
    groups = []
    for server in servers.split(":"):
        try:
            groups.append([to_nid(one) for one in server.split(",")])
        except ValueError:
            state.fail(errno.EINVAL, f"mount.lustre: Can't parse NID '{source}'")
    name, _slash, folder = rest.partition("/")
    return groups, name, folder


def numeric(source: str) -> str:
    """Return a source as the kernel is told of it, with addresses in place of names (convert_hostnames)."""
    if ":/" not in source:
        return source
    groups, name, folder = read_source(source)
    servers = ":".join(",".join(group) for group in groups)
    return f"{servers}:/{name}/{folder}" if folder else f"{servers}:/{name}"


def mount(words: list[str]) -> None:
    given: list[str] = []
    operands = []
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "-o":
            given += words.pop(0).split(",")
        elif not word.startswith("-"):
            operands.append(word)
    if len(operands) != 2:
        state.fail(errno.EINVAL, "mount.lustre: too few arguments")
    source, path = numeric(operands[0]), os.path.realpath(operands[1])
    if not Path(path).is_dir():
        state.fail(errno.ENOENT, f"warning: {operands[1]}: cannot resolve: No such file or directory")
    if state.mounted().get(path) == source:
        state.fail(
            errno.EEXIST, f"mount.lustre: according to /etc/mtab {source} is already mounted on {path}"
        )
    client = ":/" in source
    if not client and not disk.read(source):
        state.fail(
            errno.ENODEV,
            f"mount.lustre: {source} has not been formatted with mkfs.lustre or the backend filesystem type"
            " is not supported by this tool",
        )
    load_modules(source, path)
    understood = read_options(given, client)
    if understood is None:
        refuse(source, path, errno.EINVAL)
    if client:
        mount_client(source, path, *understood)
    else:
        mount_target(source, path)


def load_modules(source: str, path: str) -> None:
    """The kernel loads what the type of file system needs, and LNet with the networks of its modules."""
    if not (state.RUN / "loaded").exists():
        try:
            state.load("lustre")
        except SystemExit:
            refuse(source, path, errno.ENODEV)
    with state.kernel() as known:
        configured = known["configured"]
    if not configured:
        lnet.configure(everything=True)


def mount_client(source: str, path: str, flags: list[str], options: dict[str, str]) -> None:
    groups, name, folder = read_source(source)
    if options.get("network", "") and options["network"] not in network.reachable():
        refuse(source, path, errno.EINVAL)
    tries = min(int(options.get("retry", 0)), 99) + 1
    for number in range(tries):
        answers = (network.ask(nid, {"file_system": name}) for group in groups for nid in group)
        answer = next((one for one in answers if one and "targets" in one), None)
        if answer:
            break
        if number + 1 < tries:
            time.sleep(2 ** max(number // 2, 5))
    if not answer:
        refuse(source, path, errno.EIO)
    if not answer["targets"]:
        refuse(source, path, errno.EINVAL)
    if not any("-OST" in one for one in answer["targets"]):
        refuse(source, path, errno.ENOMEDIUM)
    data = state.VAR / "data" / name
    if not data.is_dir():
        data.mkdir(mode=0o755, parents=True)
        state.VAR.chmod(0o700)
    data = data / folder if folder else data
    if not data.is_dir():
        refuse(source, path, errno.ENOENT)
    kept = [one for one in flags if one in ("ro", "noexec", "nosuid", "nodev", "noatime")]
    words = ["/usr/bin/python3", "-m", "fake.folder", source, name, str(data), path, *kept]
    done = subprocess.run(
        words, cwd=HERE, capture_output=False, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        refuse(source, path, errno.EIO)
    client = {
        "source": source,
        "file_system": name,
        "targets": sorted(answer["targets"]),
        "options": sorted(options),
        "pid": process_of(words),
    }
    with state.kernel(write=True) as known:
        known["clients"][path] = client


def process_of(words: list[str]) -> int:
    wanted = "\0".join(words).encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().rstrip(b"\0") == wanted:
                return int(process.name)
        except OSError:  # ended meanwhile
            continue
    return state.fail(errno.EIO, "mount.lustre: the process that serves the mount has ended")


def mount_target(device: str, path: str) -> None:
    data = disk.read(device) or {}
    if device in state.mounted().values():
        refuse(device, path, errno.EALREADY)
    # Linux, fs/ext4/mmp.c: the kernel does not mount what another machine has mounted.
    if mmp.protected(device) and mmp.is_held(device):
        refuse(device, path, errno.EBUSY)
    with state.kernel(write=True) as known:
        known["targets"][path] = {
            "device": device,
            **{key: data[key] for key in ("name", "types", "mgsnode")},
        }
    done = state.run("mount", "-t", "tmpfs", "-o", "ro,size=4k,mode=700", device, path)
    if done.returncode != 0:
        state.fail(errno.EIO, done.stderr)
    code = registered(data)
    if code:
        state.run("umount", path)
        refuse(device, path, code)
    disk.relabel(device, data)
    if mmp.protected(device):
        mmp.start(device, path)


def registered(data: dict[str, Any]) -> int:
    """Tell the management target of this target; an error number when that does not work."""
    if data["types"] == ["MGS"]:
        return 0
    target = {"name": data["name"], "uuid": data["uuid"]}
    if "MGS" in data["types"]:
        return int(network.register(target).get("problem", 0))
    answers = [network.ask(nid, {"register": target}) for nid in data["mgsnode"]]
    known = [one for one in answers if one]
    if any("ok" in one for one in known):
        return 0
    codes = [int(one["problem"]) for one in known if one.get("problem") == errno.EADDRINUSE]
    if data["separator"] == "-":  # registered before: it has a copy of its configuration
        return codes[0] if codes else 0
    return codes[0] if codes else errno.EIO


def hang(path: str, stop: bool) -> None:
    """Have processes that use a mount wait, or go on."""
    one = state.clients().get(os.path.abspath(path))  # noqa: PTH100 - it may hang already
    if one is None:
        state.fail(1, f"{path} is no mount of Lustre")
    os.kill(one["pid"], signal.SIGSTOP if stop else signal.SIGCONT)


def hangs(path: str) -> bool:
    pid = state.clients()[path]["pid"]
    return "State:\tT" in Path(f"/proc/{pid}/status").read_text()


def told(program: str) -> None:
    """Do what a test wants a program to do: wait forever, or fail."""
    file = state.TOLD / program
    if file.exists():
        what = json.loads(file.read_text())
        if what == "hang":
            signal.pause()
        print(what["words"], file=sys.stderr)
        raise SystemExit(what["status"])
