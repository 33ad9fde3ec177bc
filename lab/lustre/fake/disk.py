# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes of mkfs.lustre and tunefs.lustre: a real ext4 file system with Lustre's label."""

from __future__ import annotations

import argparse
import errno
import json
import re
import stat
import tempfile
import uuid
from pathlib import Path
from typing import Any, NoReturn

from . import mmp, network, state

DATA = "CONFIGS/mountdata"  # lustre_disk.h, MOUNT_DATA_FILE
LEAST = 8096  # KB (mkfs_lustre.c, make_lustre_backfs)


def fatal(program: str, code: int, words: str) -> NoReturn:
    state.fail(code, f"\n   {program} FATAL: {words}\n{program}: exiting with {code} ({state.reason(code)})")


def read(device: str) -> dict[str, Any] | None:
    """Return the data of a target; None when a device has none."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "data"
        state.run("debugfs", "-c", "-R", f"dump {DATA} {copy}", device)
        if not copy.exists() or not copy.read_text():
            return None
        found: dict[str, Any] = json.loads(copy.read_text())
        return found


def write(device: str, data: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, mmp.set_aside(device):
        copy = Path(folder) / "data"
        copy.write_text(json.dumps(data))
        for request in ("mkdir CONFIGS", f"rm {DATA}", f"write {copy} {DATA}"):
            state.run("debugfs", "-w", "-R", request, device)


def label(data: dict[str, Any]) -> str:
    """NAME:OST0001 before the first mount, NAME-OST0001 after it, NAME=OST0001 to write the logs anew."""
    name: str = data["name"]
    return re.sub("-(?=[A-Z]{3}[0-9a-f]{4}$)", data["separator"], name)


def relabel(device: str, data: dict[str, Any]) -> None:
    if data["separator"] != "-":
        data["separator"] = "-"
        rename(device, data)
        write(device, data)


def rename(device: str, data: dict[str, Any]) -> None:
    with mmp.set_aside(device):
        state.run("e2label", device, label(data))


def show(title: str, data: dict[str, Any]) -> None:
    first = "first_time " if data["separator"] == ":" else ""
    again = "writeconf " if data["separator"] == "=" else ""
    index = int(data["name"][-4:], 16) if data["types"] != ["MGS"] else "unassigned"
    parameters = [f"mgsnode={nid}" for nid in data["mgsnode_given"]]
    parameters += [f"failover.node={nid}" for nid in data["servicenode"]]
    parameters += data["parameters"]
    print(f"\n   {title}:\nTarget:     {label(data)}\nIndex:      {index}")
    print(f"Lustre FS:  {data['file_system']}\nMount type: ldiskfs\nFlags:      0x62")
    print(f"              ({' '.join(data['types'])} {first}update {again})")
    print(f"Persistent mount opts: ,errors=remount-ro\nParameters: {' '.join(parameters)}")
    if data["comment"]:
        print(f"Comment: {data['comment']}")
    print()


def flatten(values: list[str]) -> list[str]:
    """Return the NIDs of options that may be repeated, with `:` and `,` between NIDs."""
    nids = [nid for value in values for nid in re.split("[:,]", value)]
    for nid in nids:
        found = network.NID.fullmatch(nid)
        if not found:
            fatal("mkfs.lustre", errno.EINVAL, f"Can't parse NID '{nid}'")
    return [f"{nid.partition('@')[0]}@{network.canonical(nid.partition('@')[2])}" for nid in nids]


def arguments(program: str, words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program, add_help=False)
    for name in ("--mgs", "--mdt", "--ost", "--reformat", "--replace", "--dryrun", "--quiet", "--verbose"):
        parser.add_argument(name, action="store_true")
    for name in ("--writeconf", "--erase-params"):
        parser.add_argument(name, action="store_true")
    for name in ("--fsname", "--index", "--backfstype", "--mkfsoptions", "--comment", "--network"):
        parser.add_argument(name)
    parser.add_argument("--device-size", type=int)
    for name in ("--mgsnode", "--servicenode", "--failnode", "--param"):
        parser.add_argument(name, action="append", default=[])
    parser.add_argument("device")
    return parser.parse_args(words)


def mkfs(words: list[str]) -> None:
    me = "mkfs.lustre"
    asked = arguments(me, words)
    device = asked.device
    if not (asked.mgs or asked.mdt or asked.ost) or (asked.mdt and asked.ost):
        fatal(me, errno.EINVAL, "must set target type: MDT,OST,MGS")
    if asked.backfstype not in (None, "ldiskfs"):
        fatal(me, errno.EINVAL, f"unsupported backing file system {asked.backfstype}")
    targets = asked.mdt or asked.ost
    if targets and not re.fullmatch("[-_A-Za-z0-9]{1,8}", asked.fsname or ""):
        fatal(me, errno.EINVAL, "filesystem name must be 1-8 chars")
    if targets and asked.index is None:
        fatal(me, errno.EINVAL, "must specify --index for the target")
    if targets and not asked.mgs and not asked.mgsnode:
        fatal(me, errno.EINVAL, "Must specify either --mgs or --mgsnode")
    if asked.servicenode and asked.failnode:
        fatal(me, errno.EINVAL, "Don't use both servicenode and failnode")
    there = Path(device)
    if not there.exists():
        if not asked.device_size:
            fatal(
                me,
                errno.ENOENT,
                f"Unable to stat {device}: No such file or directory; --device-size makes a file",
            )
        if asked.device_size < LEAST:
            fatal(
                me,
                errno.EINVAL,
                f"size of filesystem must be larger than 8MB, but is set to {asked.device_size}KB",
            )
    if there.is_dir():
        fatal(me, errno.ENOTBLK, f"Unable to stat {device}: Block device required")
    if device in state.mounted().values():
        fatal(me, errno.EBUSY, f"{device} is mounted.")
    if there.exists() and read(device) and not asked.reformat:
        fatal(
            me,
            errno.EEXIST,
            f"Device {device} was previously formatted for lustre. Use --reformat to reformat it, or"
            " tunefs.lustre to modify.",
        )
    data = {
        "name": f"{asked.fsname}-{'OST' if asked.ost else 'MDT'}{int(asked.index, 0):04x}"
        if targets
        else "MGS",
        "file_system": asked.fsname or "lustre",
        "separator": ":" if targets else "-",
        "types": [name for name, on in (("MDT", asked.mdt), ("OST", asked.ost), ("MGS", asked.mgs)) if on],
        "mgsnode": flatten(asked.mgsnode),
        "mgsnode_given": [given for value in asked.mgsnode for given in value.split(":")],
        "servicenode": [given for value in asked.servicenode + asked.failnode for given in value.split(":")],
        "parameters": asked.param,
        "comment": asked.comment or "",
        "uuid": str(uuid.uuid4()),
    }
    nodes = flatten(asked.servicenode + asked.failnode)
    show("Permanent disk data", data)
    if asked.dryrun:
        print("Dry-run, exiting before disk write.")
        return
    if not there.exists() or not stat.S_ISBLK(there.stat().st_mode):
        with there.open("ab") as file:  # a file stands in for a device (--device-size)
            if asked.device_size:
                file.truncate(asked.device_size * 1024)
    # mkfs_lustre.c, enable_default_ext4_features: protected where several servers can mount it
    options = mmp.OPTIONS if nodes else ()
    done = state.run("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", *options, "-L", label(data), device)
    if done.returncode != 0:
        fatal(me, errno.EIO, f"Unable to build fs {device}: {done.stderr}")
    write(device, data)


def tunefs(words: list[str]) -> None:
    me = "tunefs.lustre"
    asked = arguments(me, words)
    data = read(asked.device) if Path(asked.device).exists() else None
    if data is None:
        print("checking for existing Lustre data: not found")
        fatal(me, errno.ENODEV, f"Device {asked.device} has not been formatted with mkfs.lustre")
    print("checking for existing Lustre data: found")
    show("Read previous values", data)
    if asked.erase_params:
        data |= {"mgsnode": [], "mgsnode_given": [], "servicenode": [], "parameters": []}
    if asked.writeconf and data["separator"] == "-" and data["name"] != "MGS":
        data["separator"] = "="
    data["mgsnode"] = data["mgsnode"] + flatten(asked.mgsnode)
    data["mgsnode_given"] = data["mgsnode_given"] + [
        one for value in asked.mgsnode for one in value.split(":")
    ]
    nodes = asked.servicenode + asked.failnode
    data["servicenode"] = data["servicenode"] + [one for value in nodes for one in value.split(":")]
    data["parameters"] = data["parameters"] + asked.param
    show("Permanent disk data", data)
    if asked.dryrun:
        print("exiting before disk write.")
        return
    if asked.device in state.mounted().values():
        fatal(me, errno.EBUSY, f"{asked.device} is mounted.")
    rename(asked.device, data)
    write(asked.device, data)
