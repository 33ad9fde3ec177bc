#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: compare the mounts of a machine with what is declared about them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mount_validate
short_description: Check that mounts are as declared and answer
version_added: 0.1.0
description:
  - Compares the mounts of a machine with what is declared about them, and fails with all violations at once.
  - Each path is looked into by a process of its own that is given up after a while, so that a mount that
    hangs is a finding and does not hang the module.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
attributes:
  check_mode:
    support: full
    description: Only reads. Looking into a path makes an automounter mount what belongs there.
options:
  mounts:
    description: Declared mounts.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Absolute path of the mount point.
        type: path
        required: true
      state:
        description:
          - V(mounted) is mounted and answers, V(unmounted) is not mounted.
          - V(possible) is mounted as declared, or is missing or an empty folder, where a mount hides nothing.
        type: str
        choices: [mounted, unmounted, possible]
        default: mounted
      types:
        description: Types of file system that will do; if empty, any.
        type: list
        elements: str
        default: []
      source:
        description: Source of the mount, as the kernel names it.
        type: str
      writable:
        description: Whether the mount can be written to, as the kernel says.
        type: bool
      propagation:
        description: How the mount passes on what is mounted below it, to containers for example.
        type: str
        choices: [shared, slave, private]
  timeout:
    description: Seconds that a path has to answer.
    type: float
    default: 10
seealso:
  - module: gpufarm.cluster.cvmfs_info
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Check that users find their home folders and software
  gpufarm.cluster.mount_validate:
    mounts:
      - path: /home
        types: [nfs4]
        writable: true
      - path: /cvmfs/software.eessi.io
        types: [fuse]
        source: cvmfs2
        writable: false
        propagation: shared
    timeout: 30
"""

RETURN = r"""
checks:
  description: Comparisons, also when the module fails.
  returned: always
  type: list
  elements: dict
  contains:
    path:
      description: The mount point.
      type: str
    name:
      description: Compared property, V(state), V(type), V(source), V(writable), V(propagation) or V(answers).
      type: str
    ok:
      description: Whether it is as declared.
      type: bool
    detail:
      description: The finding, in words.
      type: str
      sample: does not answer within 10 seconds
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table

# Run by a process of its own: tells how many entries a folder has.
_LOOK = """\
import os, sys
try:
    print("ok", len(os.listdir(sys.argv[1])))
except FileNotFoundError:
    print("missing")
except OSError as error:
    print(error.strerror)
"""


def look(path: str, seconds: float) -> mount_table.Look:
    """Look into a folder for a limited time."""
    done = timed.run([sys.executable, "-c", _LOOK, path], seconds)
    if done.status is None:
        return mount_table.Look("late")
    if done.status != 0:
        return mount_table.Look("it could not be looked into")
    words = done.output.strip()
    return mount_table.Look("ok", int(words[3:])) if words.startswith("ok ") else mount_table.Look(words)


def main() -> None:
    """Run the module."""
    item = {
        "path": {"type": "path", "required": True},
        "state": {"type": "str", "choices": ["mounted", "unmounted", "possible"], "default": "mounted"},
        "types": {"type": "list", "elements": "str", "default": []},
        "source": {"type": "str"},
        "writable": {"type": "bool"},
        "propagation": {"type": "str", "choices": list(mount_table.PROPAGATIONS)},
    }
    module = AnsibleModule(
        argument_spec={
            "mounts": {"type": "list", "elements": "dict", "required": True, "options": item},
            "timeout": {"type": "float", "default": 10},
        },
        supports_check_mode=True,
    )
    seconds = module.params["timeout"]
    table = Path("/proc/self/mountinfo")
    try:
        declared = [mount_table.Declared(**entry) for entry in module.params["mounts"]]
        paths = mount_table.to_look_at(declared, mount_table.parse(table.read_text(errors="replace")))
        with ThreadPoolExecutor(max_workers=8) as pool:
            looking = {path: pool.submit(look, path, seconds) for path in paths}
            looks = {path: seen.result() for path, seen in looking.items()}
        # After the look, which may have made an automounter mount it.
        mounts = mount_table.parse(table.read_text(errors="replace"))
    except OSError as error:
        module.fail_json(msg=f"The mounts cannot be read: {error.strerror}.", checks=[])
    checks = [
        check
        for one in declared
        for check in mount_table.compare(one, mounts.get(one.path), looks.get(one.path), seconds)
    ]
    wrong = [f"{check.path}: {check.detail}" for check in checks if not check.ok]
    result = [check._asdict() for check in checks]
    if wrong:
        module.fail_json(
            msg=(
                f"The mounts are not as declared: {'; '.join(wrong)}. Correct the machine or the declaration."
            ),
            checks=result,
        )
    module.exit_json(changed=False, checks=result)


if __name__ == "__main__":
    main()
