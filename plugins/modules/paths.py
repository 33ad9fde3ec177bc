#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: several folders that are there, and paths that are not."""

from __future__ import annotations

DOCUMENTATION = r"""
module: paths
short_description: Make several folders, and remove what shall not be there
version_added: 0.1.0
description:
  - Makes folders and removes files, links and folders in one call, where C(ansible.builtin.file) in a loop
    takes a round trip for each.
  - All entries are checked before the first one is changed.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  check_mode:
    support: full
    description: Tells what would be changed. An account that is missing may be one that a task before makes.
  diff_mode:
    support: full
    description: Shows state, owner and permissions before and after, and what is in a folder that goes.
options:
  paths:
    description: The paths, which are worked on one after the other.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Absolute path.
        type: path
        required: true
      state:
        description:
          - With V(directory) it is a folder, or a link to one. A link in a folder of another account than
            root is refused. Parents that are missing are made with the same
            owner, group and permissions. A file in its place is refused.
          - With V(absent) a file, a link or a whole folder is removed. The target of a link stays.
          - With V(absent_if_empty) a folder is removed that has nothing in it by then, such as one that
            several services share. Anything else stays.
        type: str
        choices: [directory, absent, absent_if_empty]
        default: directory
      owner:
        description: Name or number of the account that the folder belongs to.
        type: str
      group:
        description: Name or number of the group that the folder belongs to.
        type: str
      mode:
        description: Permissions of the folder in octal, as a text such as V("0755").
        type: raw
seealso:
  - module: gpufarm.cluster.path_info
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Make the folders
  gpufarm.cluster.paths:
    paths:
      - {path: /etc/example, owner: root, group: root, mode: "0755"}
      - {path: /etc/example/secrets, owner: example, group: root, mode: "0700"}

- name: Remove unit and configuration
  gpufarm.cluster.paths:
    paths:
      - {path: /etc/systemd/system/example.service, state: absent}
      - {path: /etc/example, state: absent}
      - {path: /etc/shared-with-others, state: absent_if_empty}
"""

RETURN = r"""
changed_paths:
  description: The paths that were made, changed or removed.
  returned: success
  type: list
  elements: str
  sample: [/etc/example]
"""

import grp
import os
import pwd
import re
import shutil
import stat
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

Entry = dict[str, Any]


def state_of(path: Path) -> str:
    """Return what is at a path, in words of ansible.builtin.file."""
    if path.is_symlink():
        return "link"
    if path.is_dir():
        return "directory"
    return "file" if os.path.lexists(path) else "absent"


def missing_accounts(entry: Entry) -> list[str]:
    """Return those that an entry names and the machine does not have."""
    missing = []
    for kind, look_up in (("owner", pwd.getpwnam), ("group", grp.getgrnam)):
        name = entry[kind]
        try:
            if name is not None and not name.isdigit():
                look_up(name)
        except KeyError:
            missing.append(f"{kind} {name}")
    return missing


def obstacle(path: Path) -> Path | None:
    """Return what is in the way of a folder: something else at its path, or at a parent's."""
    there = next(one for one in (path, *path.parents) if os.path.lexists(one))
    return None if there.is_dir() else there


def strange_link(path: Path) -> Path | None:
    """Return a link on the way to a folder, if another account than root and this one has put it there."""
    for one in (path, *path.parents):
        if one.is_symlink():
            there = one.parent.stat()
            if there.st_uid not in (0, os.geteuid()) or there.st_mode & stat.S_IWOTH:
                return one
    return None


def problem(entry: Entry, check: bool) -> str | None:
    """Return why an entry cannot be had; None when nothing speaks against it."""
    path, mode = Path(entry["path"]), entry["mode"]
    if not path.is_absolute():
        return f"The path {entry['path']!r} is not absolute; give one that begins with a slash."
    if entry["state"] != "directory":
        return "The path / cannot be removed; name what is below it." if path == Path("/") else None
    if isinstance(mode, str) and not re.fullmatch("[0-7]{1,4}", mode):
        return f"The mode {mode!r} of {path} is no octal number; give one such as 0755."
    there = obstacle(path)
    if there:
        return f"{path} cannot be a folder, as {there} is none; move it away, or choose another path."
    link = strange_link(path)
    if link:
        return (
            f"{path} is reached by the link {link}, which is in a folder of another account than root; "
            "remove the link."
        )
    missing = missing_accounts(entry)
    if missing and not check:
        return (
            f"{path} needs the {' and the '.join(missing)}, which the machine does not have; make it first."
        )
    return None


def difference(path: Path, before: str, after: str) -> dict[str, Any]:
    """Return the diff of one path."""
    shown: dict[str, Any] = {"before": {"path": str(path)}, "after": {"path": str(path)}}
    if before != after:
        shown["before"]["state"], shown["after"]["state"] = before, after
    if before == "directory" and after == "absent":
        tree = list(os.walk(path))
        shown["before"]["path_content"] = {
            "directories": [str(Path(folder, name)) for folder, names, _files in tree for name in names],
            "files": [str(Path(folder, name)) for folder, _names, files in tree for name in files],
        }
    return shown


def make(module: AnsibleModule, entry: Entry) -> dict[str, Any] | None:
    """Have a folder with its owner and permissions; return the diff when something changed."""
    path = Path(entry["path"]).resolve()
    before = state_of(path)
    shown = difference(path, before, "directory")
    if module.check_mode and (before == "absent" or missing_accounts(entry)):
        return shown
    missing = [one for one in (path, *path.parents) if not one.is_dir()][::-1]
    for folder in missing:
        folder.mkdir()
    changed = bool(missing)
    for folder in missing or [path]:
        request = module.load_file_common_arguments(entry, str(folder))
        changed = module.set_fs_attributes_if_different(request, changed, shown)
    return shown if changed else None


def remove(module: AnsibleModule, entry: Entry) -> dict[str, Any] | None:
    """Remove what is at a path; return the diff when something was there."""
    path = Path(entry["path"])
    before = state_of(path)
    if before == "absent":
        return None
    if entry["state"] == "absent_if_empty" and (before != "directory" or any(path.iterdir())):
        return None
    shown = difference(path, before, "absent")
    if not module.check_mode:
        if before == "directory":
            shutil.rmtree(path)
        else:
            path.unlink()
    return shown


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "paths": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "path": {"type": "path", "required": True},
                    "state": {
                        "type": "str",
                        "choices": ["directory", "absent", "absent_if_empty"],
                        "default": "directory",
                    },
                    "owner": {"type": "str"},
                    "group": {"type": "str"},
                    "mode": {"type": "raw"},
                },
            },
        },
        supports_check_mode=True,
    )
    entries = module.params["paths"]
    for entry in entries:
        # With a slash at its end a link would be followed.
        entry["path"] = entry["path"].rstrip("/") or entry["path"][:1]
    problems = [found for found in (problem(entry, module.check_mode) for entry in entries) if found]
    if problems:
        module.fail_json(msg=" ".join(problems))
    changed, diffs = [], []
    for entry in entries:
        try:
            shown = (make if entry["state"] == "directory" else remove)(module, entry)
        except OSError as error:
            verb = "made" if entry["state"] == "directory" else "removed"
            module.fail_json(msg=f"{entry['path']} cannot be {verb}: {error.strerror}.")
        if shown:
            changed.append(entry["path"])
            diffs.append(shown)
    module.exit_json(changed=bool(changed), changed_paths=changed, diff=diffs)


if __name__ == "__main__":
    main()
