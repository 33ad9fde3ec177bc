#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what a machine has that modules are made of, and the tree that they go to."""

from __future__ import annotations

DOCUMENTATION = r"""
module: environment_modules_info
short_description: Tell what a machine has for environment modules
version_added: 0.1.0
description:
  - Tells whether installations are there, which CUDA toolkits and Python environments of notebooks the
    machine has, and whose a tree of module files is.
  - A file system that hangs is told in RV(silent), and does not hold the module up.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  folder:
    description: Folder of the tree.
    type: path
    required: true
  files:
    description: Paths of files below the folder that are to be written.
    type: list
    elements: str
    default: []
  prefixes:
    description: Folders of installations.
    type: list
    elements: path
    default: []
  toolkits:
    description: Patterns of folders with CUDA toolkits.
    type: list
    elements: str
    default: []
seealso:
  - module: gpufarm.cluster.environment_modules
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Find the CUDA toolkits
  gpufarm.cluster.environment_modules_info:
    folder: /srv/modules
    toolkits: [/usr/local/cuda-*]
"""

RETURN = r"""
silent:
  description: The folder and prefixes that do not answer.
  returned: success
  type: list
  elements: str
missing:
  description: Prefixes that are no folders.
  returned: success
  type: list
  elements: str
rival:
  description: Whether Environment Modules is installed, beside which Lmod cannot be.
  returned: success
  type: bool
tree:
  description: The tree; empty if its folder does not answer.
  returned: success
  type: dict
  contains:
    unsafe:
      description: The first part of the folder in which others than root can make files; empty for none.
      type: str
    foreign:
      description: Whether it has files, and is none of M(gpufarm.cluster.environment_modules).
      type: bool
    shared:
      description: Whether it is on a file system that other machines may have too.
      type: bool
    taken:
      description: Those of O(files) at which others have something.
      type: list
      elements: str
toolkits:
  description: Folders with a CUDA toolkit.
  returned: success
  type: list
  elements: str
environments:
  description: >-
    Python environments that all users of notebooks are offered, each with C(name), C(version), C(title) and
    C(folder).
  returned: success
  type: list
  elements: dict
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.patience import PATIENCE
from ansible_collections.gpufarm.cluster.plugins.module_utils._lmod.io import machine

# A file of Debian's package environment-modules.
ASKED = ("files", "prefixes", "toolkits")


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "files": {"type": "list", "elements": "str", "default": []},
            "prefixes": {"type": "list", "elements": "path", "default": []},
            "toolkits": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        found = machine.found(Path(module.params["folder"]), *map(module.params.get, ASKED), PATIENCE)
    except OSError as error:
        module.fail_json(msg=f"The machine cannot be inspected: {error}; see to that, and run again.")
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
