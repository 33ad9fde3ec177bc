#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the module files of a tree, which machines may share."""

from __future__ import annotations

DOCUMENTATION = r"""
module: environment_modules
short_description: Write the module files of a tree for Lmod
version_added: 0.1.0
description:
  - Writes module files, and removes those that it wrote before and that O(files) does not have. Files of
    others stay.
  - Machines may share a tree. All of them write the same, and each notes that it uses the tree; the last one
    that leaves removes what was written. A machine that cannot write there uses the tree as it is.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Returns the files before and after.
options:
  folder:
    description: Folder of the tree.
    type: path
    required: true
  machine:
    description: Name of this machine among those that share the tree.
    type: str
    required: true
  files:
    description: Texts of the files by their paths below the folder, as the filter C(plan) returns them.
    type: dict
    default: {}
  state:
    description: Whether the machine uses the tree.
    type: str
    choices: [absent, present]
    default: present
seealso:
  - module: gpufarm.cluster.environment_modules_info
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Write the modules
  gpufarm.cluster.environment_modules:
    folder: /srv/modules
    machine: "{{ inventory_hostname }}"
    files: "{{ (settings | gpufarm.cluster.plan('environment_modules')).files }}"
  vars:
    settings: "{{ lookup('gpufarm.cluster.role_variables', 'environment_modules') }}"
"""

RETURN = r"""
users:
  description: Other machines that use the tree.
  returned: success
  type: list
  elements: str
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.module_files import replace_file
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.patience import PATIENCE, answers
from ansible_collections.gpufarm.cluster.plugins.module_utils._lmod.io import tree


def inspect(folder: Path) -> dict[str, Any]:
    """Return what is in a tree, which machines use it, and whether this one can write there."""
    writable = not folder.is_dir() or os.access(folder, os.W_OK)
    return {"files": tree.read(folder), "users": tree.users(folder), "writable": writable}


def change(module: AnsibleModule, folder: Path, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Make the role's files those that are wanted."""
    for path, text in after.items():
        if before.get(path) != text:
            (folder / path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            replace_file(module, folder / path, text, 0o644)
    for path in before.keys() - after.keys():
        tree.remove(folder, path)


def leave(folder: Path, machine: str, last: bool) -> None:
    """Note that a machine uses the tree no longer, and remove what is left of it after the last one."""
    tree.remove(folder, f"{tree.USERS}/{machine}")
    if last and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "machine": {"type": "str", "required": True},
            "files": {"type": "dict", "default": {}},
            "state": {"type": "str", "choices": ["absent", "present"], "default": "present"},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    folder, machine = Path(module.params["folder"]), module.params["machine"]
    present = module.params["state"] == "present"
    try:
        there = answers({"tree": partial(inspect, folder)}, PATIENCE).get("tree")
    except OSError as error:
        module.fail_json(msg=f"{folder} cannot be read ({error}); mend that and run again.")
    if there is None:
        module.fail_json(msg=f"{folder} does not answer; mend or unmount its file system, and run again.")
    before, users, writable = there["files"], there["users"], there["writable"]
    others = [user for user in users if user != machine]
    after = module.params["files"] if present else before if others else {}
    if not writable and before != after:
        module.fail_json(
            msg=f"{folder} cannot be written and has other modules than are wanted; run the role on a machine"
            " that can write there first."
        )
    changed = before != after or (writable and (machine in users) != present)
    try:
        if changed and not module.check_mode:
            if present:
                (folder / tree.USERS).mkdir(mode=0o755, parents=True, exist_ok=True)
                (folder / tree.USERS / machine).touch(mode=0o644)
            change(module, folder, before, after)
            if not present:
                leave(folder, machine, last=not others)
    except OSError as error:
        module.fail_json(
            msg=f"{error.filename or folder} cannot be changed ({error.strerror}); mend that and run again."
        )
    module.exit_json(
        changed=changed,
        users=others,
        diff=[
            {
                "before_header": str(folder / path),
                "after_header": str(folder / path),
                "before": before.get(path, ""),
                "after": after.get(path, ""),
            }
            for path in sorted({*before, *after})
            if before.get(path) != after.get(path)
        ],
    )


if __name__ == "__main__":
    main()
