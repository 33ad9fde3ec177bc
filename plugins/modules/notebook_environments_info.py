#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: versions of Python environments of notebooks, and what the machine has for new ones."""

from __future__ import annotations

DOCUMENTATION = r"""
module: notebook_environments_info
short_description: Tell which versions of Python environments of notebooks are there
version_added: 0.1.0
description:
  - Tells of each version that M(gpufarm.cluster.python_environment) has built below a folder whether it is
    complete and which processes use it, and what the machine has for new ones.
  - A process uses a version if it has loaded a file of it, or has its folder in a variable, as notebook
    servers have that offer its kernel.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  folder:
    description: Folder of the environments. A version is in the folder C(NAME/VERSION) below it.
    type: path
    required: true
  python:
    description: Interpreter that environments are made for.
    type: path
    default: /usr/bin/python3
seealso:
  - module: gpufarm.cluster.notebook_environments
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Tell which environments are there
  gpufarm.cluster.notebook_environments_info:
    folder: /opt/gpufarm/environments
"""

RETURN = r"""
versions:
  description: The versions that were found.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The environment.
      type: str
    version:
      description: Its version.
      type: str
    complete:
      description: Whether it was built to the end.
      type: bool
    users:
      description: Processes that use it, each as C(NAME (PID) of USER).
      type: list
      elements: str
python:
  description: Version of the interpreter, such as 3.11.
  returned: success
  type: str
processor:
  description: Kind of its processor, such as x86_64.
  returned: success
  type: str
driver:
  description: Version of the loaded driver of NVIDIA; empty for none.
  returned: success
  type: str
free:
  description: Bytes that are free in the folder.
  returned: success
  type: int
shared:
  description: Whether other machines may have the folder too, as it is on a file system of a network.
  returned: success
  type: bool
unsafe:
  description: The first part of O(folder) in which others than root can make files; empty for none.
  returned: success
  type: str
"""

import os
from dataclasses import asdict
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._environments.io import versions
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import kernel_module

VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "python": {"type": "path", "default": "/usr/bin/python3"},
        },
        supports_check_mode=True,
    )
    folder = Path(module.params["folder"])
    _rc, python, _err = module.run_command([module.params["python"], "-c", VERSION], check_rc=True)
    module.exit_json(
        changed=False,
        versions=[asdict(one) for one in versions.versions(folder)],
        python=python.strip(),
        processor=os.uname().machine,
        driver=kernel_module.loaded().version,
        free=versions.free(folder),
        shared=versions.is_shared(folder),
        unsafe=versions.unsafe(folder),
    )


if __name__ == "__main__":
    main()
