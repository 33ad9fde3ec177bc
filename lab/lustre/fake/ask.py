# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes of lctl and lfs."""

from __future__ import annotations

import contextlib
import fnmatch
import grp
import json
import os
import pwd
import re
import time
from pathlib import Path
from typing import Any

from . import mounts, network, quota, state

# lustre/obdclass and lustre/osc, as far as tests look at them; value, least, most.
CLIENT_VALUES: dict[str, tuple[int, int, int]] = {
    "osc.{fs}-OST0000-osc-{id}.max_rpcs_in_flight": (8, 1, 512),
    "osc.{fs}-OST0000-osc-{id}.max_dirty_mb": (2000, 1, 2048),
    "osc.{fs}-OST0000-osc-{id}.max_pages_per_rpc": (1024, 1, 4096),
    "osc.{fs}-OST0000-osc-{id}.checksums": (1, 0, 1),
    "osc.{fs}-OST0000-osc-{id}.idle_timeout": (20, 0, 3600),
    "mdc.{fs}-MDT0000-mdc-{id}.max_rpcs_in_flight": (8, 1, 512),
    "mdc.{fs}-MDT0000-mdc-{id}.max_mod_rpcs_in_flight": (7, 1, 511),
    "llite.{fs}-{id}.max_read_ahead_mb": (256, 0, 65536),
    "llite.{fs}-{id}.max_read_ahead_per_file_mb": (256, 0, 65536),
    "llite.{fs}-{id}.statahead_max": (128, 0, 2048),
    "llite.{fs}-{id}.lazystatfs": (1, 0, 1),
    "llite.{fs}-{id}.xattr_cache": (1, 0, 1),
}
GLOBAL_VALUES = {"at_min": (5, 0, 65535), "at_max": (600, 0, 65535), "timeout": (100, 1, 65535)}
ID = "ffff888100000000"


def values() -> dict[str, tuple[str, int, int]]:
    """Return all parameters: value, least, most; words have neither."""
    found = {name: (str(value), least, most) for name, (value, least, most) in GLOBAL_VALUES.items()}
    found |= {
        "version": (state.VERSION, 1, 0),
        "health_check": ("healthy", 1, 0),
        "jobid_var": ("disable", 1, 0),
    }
    found["jobid_name"] = ("%e.%u", 1, 0)
    for one in state.clients().values():
        for name, (value, least, most) in CLIENT_VALUES.items():
            found[name.format(fs=one["file_system"], id=ID)] = (str(value), least, most)
    for one in state.targets().values():
        if one["name"] != "MGS":
            enabled = quota_types(one["name"], one["mgsnode"])
            found[f"osd-ldiskfs.{one['name']}.quota_slave.info"] = (
                f"target name:    {one['name']}\npool ID:        0\ntype:           "
                f"{'md' if 'MDT' in one['types'] else 'dt'}\n"
                f"quota enabled:  {enabled}\nconn to master: setup",
                1,
                0,
            )
    with state.kernel() as known:
        for name, value in known["parameters"].items():
            if name in found:
                found[name] = (value, *found[name][1:])
    return found


def quota_types(target: str, mgsnode: list[str]) -> str:
    """Parameters of `lctl set_param -P` on the machine of the management target."""
    question = {"parameter": f"osd-ldiskfs.{target}.quota_slave.enabled"}
    answers = [network.ask(nid, question) for nid in mgsnode or network.own_nids()]
    return next((one["value"] for one in answers if one and one.get("value")), "none")


def matching(pattern: str) -> list[str]:
    pattern = pattern.replace("/", ".")
    return [name for name in values() if fnmatch.fnmatchcase(name, pattern)]


def get_param(words: list[str]) -> None:
    bare = "-n" in words
    status = 0
    for pattern in (word for word in words if not word.startswith("-")):
        names = matching(pattern)
        if not names:
            print_error(f"get_param: param_path '{pattern.replace('.', '/')}': No such file or directory")
            status = 2
        for name in names:
            value = values()[name][0]
            print(value if bare else f"{name}={value}" if "\n" not in value else f"{name}=\n{value}")
    raise SystemExit(status)


def print_error(words: str) -> None:
    os.write(2, f"error: {words}\n".encode())


def keep_param(word: str) -> None:
    """Keep a parameter for all that it is for, which only the machine of the management target does."""
    need_mgs()
    pattern, _equals, value = word.partition("=")
    if pattern.endswith(".quota_slave.enabled") and not re.fullmatch("(?=.)u?g?p?|none", value):
        state.fail(22, f"error: set_param: setting {pattern}={value}: Invalid argument")
    known = network.parameters()
    known.pop(pattern, None)
    keep(network.parameters_file(), {**known, pattern: value})


def set_param(words: list[str]) -> None:
    if words[0] == "-P":
        for word in words[1:]:
            keep_param(word)
        return
    status = 0
    for word in (word for word in words if not word.startswith("-")):
        pattern, _equals, value = word.partition("=")
        names = matching(pattern)
        if not names:
            print_error(f"set_param: param_path '{pattern.replace('.', '/')}': No such file or directory")
            status = 2
        for name in names:
            _old, least, most = values()[name]
            if least <= most and not (re.fullmatch("-?[0-9]+", value) and least <= int(value) <= most):
                print_error(f"set_param: setting {name}={value}: Numerical result out of range")
                status = 34
                continue
            with state.kernel(write=True) as known:
                known["parameters"][name] = value
            print(f"{name}={value}")
    raise SystemExit(status)


def devices() -> list[str]:
    """Return the lines of `lctl dl`."""
    found = ["UP mgc MGC 7b0d8e5c 4"] if state.clients() or state.targets() else []
    for one in state.clients().values():
        found += [
            f"UP {'osc' if '-OST' in name else 'mdc'} {name}-{ID} 7b0d8e5c 4" for name in one["targets"]
        ]
    for one in state.targets().values():
        for kind in one["types"]:
            service = {"MGS": "mgs", "MDT": "mdt", "OST": "obdfilter"}[kind]
            found.append(f"UP {service} {'MGS' if kind == 'MGS' else one['name']} 7b0d8e5c 7")
    return found


def need_mgs() -> None:
    if not network.manages():
        state.fail(1, "error: there is no MGS on this node")


def pools_file() -> Path:
    return state.VAR / "pools.json"


def pools() -> dict[str, list[str]]:
    return dict(json.loads(pools_file().read_text())) if pools_file().exists() else {}


def keep(file: Path, data: Any) -> None:
    state.VAR.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(json.dumps(data))


def pool(command: str, words: list[str]) -> None:
    name, targets = words[0], words[1:]
    known = pools()
    file_system, _dot, short = name.partition(".")
    if command == "pool_list":
        if short:
            if name not in known:
                state.fail(2, f"pool_list: {name}: No such file or directory")
            print(f"Pool: {name}", *(f"{one}_UUID" for one in known[name]), sep="\n")
        else:
            print(f"Pools from {name}:", *(one for one in known if one.startswith(f"{name}.")), sep="\n")
        return
    need_mgs()
    if not re.fullmatch("[-_A-Za-z0-9]{1,15}", short):
        state.fail(22, f"{command}: invalid pool name '{short}'")
    if command == "pool_new":
        if name in known:
            state.fail(17, f"Pool {name} already exists")
        known[name] = []
    elif name not in known:
        state.fail(2, f"Pool {name} does not exist")
    elif command == "pool_destroy":
        if known[name]:
            state.fail(39, f"Pool {name} not empty, please remove all members")
        del known[name]
    for target in targets:
        target = target.removesuffix("_UUID")
        if command == "pool_add":
            if target not in network.registry() or not target.startswith(f"{file_system}-OST"):
                state.fail(22, f"OST {target} is not part of the '{file_system}' fs.")
            known[name] += [target] if target not in known[name] else []
        elif command == "pool_remove":
            known[name] = [one for one in known[name] if one != target]
    keep(pools_file(), known)


def lctl(words: list[str]) -> None:
    command, rest = words[0], words[1:]
    if command == "dl":
        for number, line in enumerate(devices()):
            print(f"{number:3d} {line}")
    elif command == "get_param":
        get_param(rest)
    elif command == "set_param":
        set_param(rest)
    elif command == "list_nids":
        print(*network.own_nids(), sep="\n")
    elif command == "ping":
        answer = network.ask(rest[0], {"ping": rest[0]})
        if answer is None:
            state.fail(1, f"failed to ping {rest[0]}: Input/output error")
        print(*answer["nids"], sep="\n")
    elif command.startswith("pool_"):
        pool(command, rest)
    else:
        state.fail(1, f"lctl: unknown command {command}")


def mount_of(path: str) -> tuple[str, dict[str, Any]]:
    here = os.path.abspath(path)  # noqa: PTH100 - one that hangs must not be looked at
    for mount, one in sorted(state.clients().items(), reverse=True):
        if here == mount or here.startswith(f"{mount}/"):
            return mount, one
    return state.fail(1, f"lfs: '{path}' is not on a mounted Lustre filesystem")


def wait_for(path: str) -> None:
    """A question to a file system whose servers do not answer waits."""
    while mounts.hangs(path):
        time.sleep(1)


def df(words: list[str]) -> None:
    asked = [word for word in words if not word.startswith("-")]
    flags = json.loads((state.TOLD / "flags").read_text()) if (state.TOLD / "flags").exists() else {}
    for path, one in state.clients().items():
        if asked and mount_of(asked[0])[0] != path:
            continue
        wait_for(path)
        print(f"{'UUID':<22}{'1K-blocks':>12}{'Used':>12}{'Available':>12} Use% Mounted on")
        size = os.statvfs(state.VAR)
        total, free = (blocks * size.f_frsize // 1024 for blocks in (size.f_blocks, size.f_bavail))
        used = total - free
        for name in one["targets"]:
            kind, index = name[-7:-4], int(name[-4:], 16)
            if flags.get(name) == "inactive":
                print(f"{name[-7:]:<20}: inactive device")
                continue
            print(
                f"{name + '_UUID':<22}{total:>12}{used:>12}{free:>12} {100 * used // total:>3}%"
                f" {path}[{kind}:{index}]"
                f"{' ' + flags[name] if name in flags else ''}"
            )
        print(
            f"\n{'filesystem_summary:':<22}{total:>12}{used:>12}{free:>12} {100 * used // total:>3}% {path}\n"
        )


def check(words: list[str]) -> None:
    asked = [word for word in words[1:] if not word.startswith("-")]
    wanted = {"osts": ("-OST",), "mds": ("-MDT",)}.get(words[0] if words else "", ("-OST", "-MDT"))
    flags = json.loads((state.TOLD / "flags").read_text()) if (state.TOLD / "flags").exists() else {}
    status = 0
    for path, one in state.clients().items():
        if asked and mount_of(asked[0])[0] != path:
            continue
        wait_for(path)
        for name in one["targets"]:
            if not any(kind in name for kind in wanted):
                continue
            device = f"{name}-{'osc' if '-OST' in name else 'mdc'}-{ID}"
            if flags.get(name) == "inactive":
                print(f"{device}: check error: Resource temporarily unavailable")
                status = 11
            else:
                print(f"{device} active.")
    raise SystemExit(status)


def kilobytes(text: str) -> int:
    found = re.fullmatch("([0-9]+)([kKmMgGtTpP]?)", text)
    if not found:
        state.fail(22, f"error: setquota: bad limit '{text}'")
    return int(found[1]) * 1024 ** ("kmgtp".index(found[2].lower()) if found[2] else 0)


def identity(kind: str, text: str) -> int:
    with contextlib.suppress(KeyError):
        if text.isdigit():
            return int(text)
        if kind == "u":
            return pwd.getpwnam(text).pw_uid
        if kind == "g":
            return grp.getgrnam(text).gr_gid
    return state.fail(22, f"lfs quota: unknown name '{text}'")


LIMITS = {"-b": 0, "-B": 1, "-i": 2, "-I": 3}


def setquota(words: list[str]) -> None:
    kind, who = words[0].strip("-"), words[1]
    path, one = mount_of(words[-1])
    wait_for(path)
    known = quota.read(one["file_system"])
    key = f"{kind}{identity(kind, who)}"
    limits = known["limits"].get(key, [0, 0, 0, 0])
    for option, value in zip(words[2:-1:2], words[3:-1:2], strict=True):
        if option not in LIMITS:
            state.fail(22, f"error: setquota: unknown option '{option}'")
        limits[LIMITS[option]] = kilobytes(value) if option in "-b-B" else int(value)
    known["limits"][key] = limits
    quota.keep(one["file_system"], known)


def show_quota(words: list[str]) -> None:
    quiet = "-q" in words
    words = [word for word in words if word != "-q"]
    kind, who = words[0].strip("-"), words[1]
    path, one = mount_of(words[-1])
    wait_for(path)
    number = identity(kind, who)
    size, count = quota.used(one["file_system"], kind, number)
    soft, hard, soft_files, hard_files = quota.read(one["file_system"])["limits"].get(
        f"{kind}{number}", [0, 0, 0, 0]
    )
    if not quiet:
        word = {"u": "usr", "g": "grp", "p": "prj"}[kind]
        print(f"Disk quotas for {word} {who} ({word[0]}id {number}):")
        print("      Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace")
    over = "*" if 0 < hard <= size else ""
    over_files = "*" if 0 < hard_files <= count else ""
    print(
        f"{path:>16} {str(size) + over:>7} {soft:>7} {hard:>7}       -"
        f" {str(count) + over_files:>7} {soft_files:>7} {hard_files:>7}       -"
    )


def project(words: list[str]) -> None:
    """Set, clear, or show the project of a folder (lfs-project(1))."""
    path, one = mount_of(words[-1])
    wait_for(path)
    relative = os.path.relpath(os.path.abspath(words[-1]), path)  # noqa: PTH100
    known = quota.read(one["file_system"])
    if "-p" in words:
        known["projects"][relative] = int(words[words.index("-p") + 1])
        quota.keep(one["file_system"], known)
    elif "-C" in words:
        known["projects"].pop(relative, None)
        quota.keep(one["file_system"], known)
    else:
        print(f"{known['projects'].get(relative, 0):>5} P {words[-1]}")


def lfs(words: list[str]) -> None:
    commands = {"df": df, "check": check, "quota": show_quota, "setquota": setquota, "project": project}
    if words[:1] == ["getname"]:
        path, one = mount_of(words[-1])
        print(f"{one['file_system']}-{ID} {path}")
    elif words[:1] and words[0] in commands:
        commands[words[0]](words[1:])
    else:
        state.fail(1, f"lfs: {' '.join(words[:1])} is not known here")
