#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: format targets of Lustre on empty devices."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lustre_target
short_description: Format targets of Lustre on empty devices
version_added: 0.1.0
description:
  - Formats devices with C(mkfs.lustre) that are named, empty and confirmed. A device that holds anything else
    is refused, and so is a target that differs from what is declared. Nothing is ever formatted anew.
  - A target that another of its servers has mounted is told of, so that nobody mounts it twice. The device
    itself says so (multiple mount protection), whether that server can be asked or not.
  - All devices are looked at before the first is formatted, and everything that is wrong is told at once.
attributes:
  check_mode:
    support: full
    description: Tells what would be formatted, also where Lustre is not installed yet.
  diff_mode:
    support: full
    description: Shows the targets before and after.
  idempotent:
    support: full
    description: A device that holds the declared target is left alone.
options:
  targets:
    description: The targets of the machine.
    type: list
    elements: dict
    required: true
    suboptions:
      device:
        description: Path of the device, or of a file that stands in for one.
        type: path
        required: true
      name:
        description: Name of the target, such as V(home-OST0001), or V(MGS).
        type: str
        required: true
      kind:
        description: Kind of the target.
        type: str
        choices: [mgs, mdt, ost]
        required: true
      mgs:
        description: Whether the management target is part of it.
        type: bool
        default: false
      file_system:
        description: Name of its file system.
        type: str
        default: ""
      index:
        description: Its number among those of its kind.
        type: int
      mgs_nodes:
        description: NIDs of the servers of the management target, those of one server in one text.
        type: list
        elements: str
        default: []
      service_nodes:
        description: NIDs of the servers that can serve it, those of one server in one text.
        type: list
        elements: str
        default: []
      size_mb:
        description: Size in MB of a file that stands in for a device and is made when it is missing.
        type: int
        default: 0
  confirmed:
    description: Devices that may be formatted.
    type: list
    elements: path
    default: []
  host:
    description: Name of the machine, for messages.
    type: str
    default: this machine
  timeout:
    description: Seconds that one format may take.
    type: float
    default: 3600
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Format an object target
  gpufarm.cluster.lustre_target:
    targets:
      - device: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
        name: scratch-OST0000
        kind: ost
        file_system: scratch
        index: 0
        mgs_nodes: [10.0.0.1@o2ib]
    confirmed: [/dev/disk/by-id/wwn-0x5000c500a1b2c3d4]
"""

RETURN = r"""
formatted:
  description: Names of targets that were formatted, or would be in check mode.
  returned: success
  type: list
  elements: str
elsewhere:
  description: Machines that have targets mounted which this one usually serves, by target.
  returned: success
  type: dict
  sample: {home-OST0001: oss2}
"""

import errno
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import layout, read
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table

FOLDERS = "/usr/sbin:/sbin:/usr/bin:/bin"
LOOK = 60.0  # seconds
BEGINNING = 1024 * 1024  # bytes that must be zero: where file systems and volume managers have their headers


def program(name: str) -> str | None:
    """Return the path of a program."""
    return shutil.which(name, path=FOLDERS)


def read_target(device: str) -> dict[str, Any] | None:
    """Return the target that a device holds; None when it holds none."""
    tunefs = program("tunefs.lustre")
    if tunefs is None or not Path(device).exists():
        return None
    done = timed.run([tunefs, "--dryrun", device], LOOK)
    if done.status is None:
        raise OSError(errno.ETIMEDOUT, f"tunefs.lustre did not answer within {LOOK:g} seconds", device)
    return read.parse_target(done.output) if done.status == 0 else None


def signature(device: str) -> dict[str, str]:
    """Return what blkid finds on a device."""
    done = timed.run([str(program("blkid") or "blkid"), "--probe", "--output", "export", device], LOOK)
    # blkid(8), "EXIT STATUS": 2 when nothing was found
    if done.status not in (0, 2):
        raise OSError(
            errno.EIO, f"blkid cannot tell what is on it: {done.errors.strip() or 'no answer'}", device
        )
    return layout.parse_blkid(done.output)


def beginning_is_empty(device: str) -> bool:
    """Whether the beginning of a device is all zeros."""
    with Path(device).open("rb") as file:
        return not file.read(BEGINNING).strip(b"\0")


def holder(device: str) -> str:
    """Return the machine that has a device mounted which several can; empty when none has.

    The question takes some seconds where the device was not unmounted: it is whether its mark still changes.
    """
    asked = str(program("e2mmpstatus") or "e2mmpstatus")
    done = timed.run([asked, device], LOOK)
    # e2mmpstatus(8), "EXIT CODE"
    if done.status == 0:
        return ""
    if done.status != 1:
        said = " ".join((done.errors or done.output).split()) or "no answer"
        raise OSError(errno.EIO, f"e2mmpstatus cannot tell whether another server has it: {said}", device)
    return read.parse_mmp(timed.run([asked, "-i", device], LOOK).output) or "another machine"


def mounted_elsewhere(targets: list[dict[str, Any]]) -> dict[str, str]:
    """Return the machines that have targets mounted, other than this one, by target."""
    table = mount_table.parse(Path("/proc/self/mountinfo").read_text(errors="replace"))
    here = {os.path.realpath(one.source) for one in table.values() if one.source.startswith("/")}
    asked = [one for one in targets if one["service_nodes"] and os.path.realpath(one["device"]) not in here]
    with ThreadPoolExecutor(max_workers=16) as pool:
        found = list(pool.map(holder, [one["device"] for one in asked]))
    return {one["name"]: node for one, node in zip(asked, found) if node}


def same_device(targets: list[dict[str, Any]]) -> list[str]:
    """Return, in a sentence each, which targets are on one device under two names."""
    first: dict[str, dict[str, Any]] = {}
    wrong = []
    for one in targets:
        other = first.setdefault(os.path.realpath(one["device"]), one)
        if other is not one:
            wrong.append(
                f"{other['device']} of {other['name']} and {one['device']} of {one['name']} are the same"
                " device; give each target one of its own."
            )
    return wrong


def in_use(device: str) -> bool:
    """Whether the kernel has a block device in use: mounted, part of a volume, swap (open(2), O_EXCL)."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return True
        raise
    return False


def check(target: dict[str, Any], confirmed: list[str], host: str) -> tuple[bool, str]:
    """Return whether a target has to be formatted, and why it cannot be or an empty text."""
    device, name = target["device"], target["name"]
    there = Path(device)
    if not there.exists():
        if not target["size_mb"] or device.startswith("/dev/"):
            return False, f"{host} has no device {device}, for {name}; check the path and the cabling."
    else:
        mode = there.stat().st_mode
        if not stat.S_ISBLK(mode) and not (stat.S_ISREG(mode) and target["size_mb"]):
            return False, f"{device} on {host} is no block device; name the one for {name}."
        found = read_target(device)
        if found is not None:
            wrong = layout.differences(target, found)
            if wrong:
                return False, (
                    f"{device} on {host} holds a target of Lustre, and not {name} as declared:"
                    f" {' and '.join(wrong)}; correct the declaration, or change the target with"
                    " tunefs.lustre."
                )
            return False, ""
        known = signature(device)
        # Lustre's own label, where the programs that read more are not there yet.
        if program("tunefs.lustre") is None and known.get("LABEL", "").replace(":", "-") == name:
            return False, ""
        problem = layout.signature_problem(device, known, host)
        if problem:
            return False, problem
        if stat.S_ISBLK(mode) and in_use(device):
            return False, f"{device} on {host} is in use; 'lsblk {device}' there tells by what."
        if not beginning_is_empty(device):
            return False, (
                f"{device} on {host} has data at its beginning, and only an empty device is formatted; name"
                " another, or look at what is on it and empty it yourself with 'blkdiscard' or 'dd'."
            )
    if device not in confirmed:
        return False, (
            f"{device} on {host} is empty and would be formatted as {name}; add it to lustre_server_format"
            " to confirm that."
        )
    return True, ""


def format_target(module: AnsibleModule, target: dict[str, Any]) -> None:
    """Format a device and read it again."""
    mkfs = program("mkfs.lustre")
    if mkfs is None:
        module.fail_json(msg="mkfs.lustre is not installed; install Lustre's server first.")
    done = timed.run([str(mkfs), *layout.mkfs_words(target)], module.params["timeout"])
    if done.status != 0:
        why = f"no answer within {module.params['timeout']:g} seconds"
        said = [line for line in done.errors.splitlines() if line.strip()]
        module.fail_json(
            msg=(
                f"{target['device']} cannot be formatted as {target['name']}:"
                f" {why if done.status is None else ' '.join(said)}"
            )
        )
    found = read_target(target["device"])
    wrong = ["it cannot be read"] if found is None else layout.differences(target, found)
    if wrong:
        module.fail_json(msg=f"{target['device']} was formatted, and {' and '.join(wrong)}.")


def main() -> None:
    """Run the module."""
    item: dict[str, Any] = {
        "device": {"type": "path", "required": True},
        "name": {"type": "str", "required": True},
        "kind": {"type": "str", "choices": ["mgs", "mdt", "ost"], "required": True},
        "mgs": {"type": "bool", "default": False},
        "file_system": {"type": "str", "default": ""},
        "index": {"type": "int"},
        "mgs_nodes": {"type": "list", "elements": "str", "default": []},
        "service_nodes": {"type": "list", "elements": "str", "default": []},
        "size_mb": {"type": "int", "default": 0},
    }
    module = AnsibleModule(
        argument_spec={
            "targets": {"type": "list", "elements": "dict", "required": True, "options": item},
            "confirmed": {"type": "list", "elements": "path", "default": []},
            "host": {"type": "str", "default": "this machine"},
            "timeout": {"type": "float", "default": 3600},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        verdicts = [check(one, params["confirmed"], params["host"]) for one in params["targets"]]
    except OSError as error:
        module.fail_json(msg=f"{error.filename} cannot be looked at: {error.strerror}.")
    wrong = same_device(params["targets"]) + [problem for _needed, problem in verdicts if problem]
    if wrong:
        module.fail_json(msg=" ".join(wrong) + " Nothing was formatted.")
    needed = [one for one, (must, _problem) in zip(params["targets"], verdicts) if must]
    try:
        elsewhere = mounted_elsewhere([one for one in params["targets"] if one not in needed])
    except OSError as error:
        module.fail_json(msg=f"{error.filename} cannot be looked at: {error.strerror}.")
    for target in needed if not module.check_mode else []:
        format_target(module, target)
    lines = [f"{one['name']} on {one['device']}\n" for one in params["targets"] if one not in needed]
    after = [f"{one['name']} on {one['device']}\n" for one in params["targets"]]
    module.exit_json(
        changed=bool(needed),
        formatted=[one["name"] for one in needed],
        elsewhere=elsewhere,
        diff={"before": "".join(lines), "after": "".join(after)},
    )


if __name__ == "__main__":
    main()
