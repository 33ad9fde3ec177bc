#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: whether a machine can have users' homes somewhere."""

from __future__ import annotations

DOCUMENTATION = r"""
module: shared_home_info
short_description: Tell whether users' homes can be at a path
version_added: 0.1.0
description:
  - Looks at the path, at what is mounted there, and at the file system that is to be mounted.
  - A file system that is not mounted yet is looked into by a process with mounts of its own, read-only and
    without a replay of its journal, so that nothing is left behind and nothing is written.
  - Each look is given up after a while, so that a file system that hangs does not hang the module.
  - It warns of accounts of the role C(user_accounts) whose homes are elsewhere.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  settings:
    description: >-
      The variables of the role C(shared_home) without C(shared_home_), with C(serves), whether this machine
      has the homes of a cluster, C(server_address) and C(client_addresses).
    type: dict
    required: true
  look_inside:
    description: Whether to look into a file system that is not mounted yet.
    type: bool
    default: false
  timeout:
    description: Seconds that each look may take.
    type: float
    default: 15
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Ask whether homes can come from a server
  gpufarm.cluster.shared_home_info:
    settings: "{{ settings }}"
    look_inside: true
  register: homes
"""

RETURN = r"""
problems:
  description: Why homes cannot be there, one sentence each; empty when they can.
  returned: success
  type: list
  elements: str
file_system:
  description: Type of the file system that is to be mounted; empty when nothing is.
  returned: success
  type: str
  sample: ext4
mounted:
  description: Whether it is mounted already.
  returned: success
  type: bool
exists:
  description: Whether the path is there.
  returned: success
  type: bool
answers:
  description: Whether the path could be looked at in time.
  returned: success
  type: bool
units:
  description: The mount units of earlier runs, with C(name), C(path) and C(what) is mounted there.
  returned: success
  type: list
  elements: dict
connected:
  description: Addresses of machines that have the homes mounted, which an earlier run exports to them.
  returned: success
  type: list
  elements: str
exports_more:
  description: Whether the machine exports other folders by NFS.
  returned: success
  type: bool
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._accounts import plan as accounts_plan
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import elsewhere
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import exports as home_exports
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import place as shared_home_place
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.place import Device, Seen, Top

UNITS = Path("/etc/systemd/system")
EXPORTS = Path("/etc/exports.d")  # exports(5); beside /etc/exports
CLIENTS = Path("/proc/fs/nfsd/clients")
# Run by a process of its own: the parts of a path, and what the folder holds. Root is refused, or told of a
# stale handle, by a server of NFS that no longer exports it to this machine.
_LOOK = """\
import errno, json, os, stat, sys
GONE = (errno.ESTALE, errno.EACCES)
path = sys.argv[1]
parts = path.strip("/").split("/")
folders = []
for whole in ["/" + "/".join(parts[:number]) for number in range(len(parts) + 1)]:
    try:
        status = os.lstat(whole)
    except FileNotFoundError:
        folders.append({"path": whole, "kind": "missing"})
        break
    except OSError as error:
        if error.errno not in GONE:
            raise
        folders.append({"path": whole, "kind": "stale"})
        break
    mode = status.st_mode
    kind = "folder" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "other"
    folders.append({"path": whole, "kind": kind, "uid": status.st_uid, "mode": stat.S_IMODE(mode)})
    if kind != "folder":
        break
entries = []
if folders[-1]["path"] == path and folders[-1]["kind"] == "folder":
    try:
        entries = os.listdir(path)
    except OSError as error:
        if error.errno not in GONE:
            raise
        folders[-1]["kind"] = "stale"
print(json.dumps([folders, entries]))
"""
# Run by a process with mounts of its own: mounts TYPE OPTIONS SOURCE FOLDER, and tells owner and mode.
_INSIDE = 'mount -t "$1" -o "$2" -- "$3" "$4" && exec stat --format "%u %a" -- "$4"'
# Run by a process of its own, as names are looked up without a limit of time: connects to HOST at PORT.
_CONNECT = """\
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2]))).close()
except OSError as error:
    raise SystemExit(error.strerror or str(error))
"""
# Read-only, and without a replay of the journal, which would write (ext4(5), xfs(5)).
_READ_ONLY = {"ext4": ["ro", "noload"], "xfs": ["ro", "norecovery"], "nfs": ["ro"]}


def mounts_now() -> dict[str, mount_table.Mount]:
    """Return the mounts of the machine."""
    return mount_table.parse(Path("/proc/self/mountinfo").read_text(errors="replace"))


def read_units() -> list[dict[str, str]]:
    """Return the units that the role has written, with what they mount and where."""
    found = []
    for path in sorted(UNITS.glob("*.mount")):
        lines = path.read_text(errors="replace").splitlines()
        if lines[:1] == [home_exports.MARK]:
            said = dict(line.partition("=")[::2] for line in lines)
            found.append({"name": path.name, "path": said.get("Where", ""), "what": said.get("What", "")})
    return found


def addresses_of(name: str, seconds: float) -> list[str]:
    """Return the addresses of a machine; none if its name is not known, or is not answered in time."""
    told = timed.run(["getent", "ahosts", name], seconds).output
    return [line.split()[0] for line in told.splitlines() if line]


def read_exports(seconds: float) -> tuple[list[str], bool]:
    """Return the addresses of machines that have our homes mounted, and whether there are other exports.

    Args:
        seconds: the time that looking up each name has.
    """
    files = [Path("/etc/exports"), *sorted(EXPORTS.glob("*.exports"))]
    texts = {path.name: path.read_text(errors="replace") for path in files if path.is_file()}
    ours = texts.pop(home_exports.NAME, "")
    infos = [path.read_text(errors="replace") for path in CLIENTS.glob("*/info")]
    clients = home_exports.clients_of(ours)
    connected = home_exports.connected(infos, clients, lambda name: addresses_of(name, seconds))
    return connected, home_exports.exports_something(texts.values())


def warnings_of_accounts(folder: str) -> list[str]:
    """Return a sentence about each account of the role user_accounts with a home elsewhere."""
    passwd, group, shadow = (
        Path("/etc", name).read_text(errors="replace") for name in ("passwd", "group", "shadow")
    )
    accounts, groups = accounts_plan.read_accounts(passwd, group, shadow)
    machine = accounts_plan.Machine(accounts, groups)
    used = [name for name, one in machine.ours().items() if one.access != accounts_plan.LOCKED]
    return elsewhere.sentences(passwd, used, folder)


def read_device(source: str, seconds: float) -> Device:
    """Return the disk that a source means, with what it holds."""
    tag, separator, value = source.partition("=")
    link = f"/dev/disk/by-{tag.lower()}/{value}" if separator and "/" not in tag else source
    path = os.path.realpath(link)
    if not Path(path).is_block_device():
        return Device("")
    probed = timed.run(["blkid", "--probe", "--match-tag", "TYPE", "--output", "value", path], seconds)
    kind = probed.output.strip()
    features: tuple[str, ...] = ()
    if kind == "ext4":
        features = shared_home_place.features_of(timed.run(["dumpe2fs", "-h", path], seconds).output)
    return Device(path, kind, features)


def look_inside(settings: Mapping[str, Any], kind: str, folder: str, seconds: float) -> Top | None:
    """Return the topmost folder of what is not mounted yet; None where it cannot be looked at.

    Args:
        settings: those of the role.
        kind: type of the file system.
        folder: an empty folder that it is mounted on, where nobody else sees it.
        seconds: the time that it has.
    """
    if kind not in _READ_ONLY or (kind == "nfs" and not shutil.which("mount.nfs")):
        return None
    # One attempt, where mount.nfs would try for two minutes (nfs(5), retry).
    given = (
        [option for option in settings["options"] if not option.startswith("retry=")] if kind == "nfs" else []
    )
    options = _READ_ONLY[kind] + given + (["retry=0"] if kind == "nfs" else [])
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _INSIDE, "sh"]
    done = timed.run([*words, kind, ",".join(options), settings["source"], folder], seconds)
    if done.status is None:
        return Top(error=f"no answer within {seconds:g} seconds")
    if done.status != 0:
        return Top(error=" ".join(done.errors.split()))
    uid, mode = done.output.split()
    return Top(int(uid), int(mode, 8))


def try_server(settings: Mapping[str, Any], seconds: float) -> Top | None:
    """Return why a server of NFS cannot be reached, where nothing is installed yet that mounts it."""
    server = shared_home_place.server_of(settings)
    if server is None or shutil.which("mount.nfs"):
        return None
    host, port = server
    done = timed.run([sys.executable, "-c", _CONNECT, host, str(port)], seconds)
    if done.status == 0:
        return None
    reason = f"no answer within {seconds:g} seconds" if done.status is None else done.errors.strip()
    return Top(error=f"{host} does not answer at port {port} ({reason})")


def read(module: AnsibleModule, settings: Mapping[str, Any], homes: list[str], connected: list[str]) -> Seen:
    """Return what there is on the machine."""
    path, seconds = settings["path"], module.params["timeout"]
    done = timed.run([sys.executable, "-c", _LOOK, path], seconds)
    mounts = mounts_now()
    if done.status != 0:
        return Seen(False, [], [], mounts)
    folders, entries = json.loads(done.output)
    device, top = None, None
    if settings["source"] and settings["kind"] == "local":
        device = read_device(settings["source"], seconds)
    if settings["source"] and module.params["look_inside"] and path not in mounts:
        folder = Path(module.tmpdir, "inside")
        folder.mkdir(exist_ok=True)
        kind = shared_home_place.file_system_of(settings, device)
        top = try_server(settings, seconds) or look_inside(settings, kind, str(folder), seconds)
    parts = shared_home_place.folders_from(folders)
    return Seen(True, parts, entries, mounts, homes, device, top, connected)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "dict", "required": True},
            "look_inside": {"type": "bool", "default": False},
            "timeout": {"type": "float", "default": 15},
        },
        supports_check_mode=True,
    )
    settings = home_exports.on_this_machine(module.params["settings"])
    try:
        for sentence in warnings_of_accounts(settings["path"]):
            module.warn(sentence)
        units = read_units()
        connected, exports_more = read_exports(module.params["timeout"])
        seen = read(module, settings, sorted(unit["path"] for unit in units), connected)
    except OSError as error:
        module.fail_json(msg=f"The machine cannot be looked at: {error}.")
    module.exit_json(
        changed=False,
        problems=shared_home_place.problems(settings, seen),
        file_system=shared_home_place.file_system_of(settings, seen.device),
        mounted=settings["path"] in seen.mounts,
        exists=any(one.path == settings["path"] and one.kind != "missing" for one in seen.folders),
        answers=seen.answers,
        units=units,
        connected=connected,
        exports_more=exports_more,
    )


if __name__ == "__main__":
    main()
