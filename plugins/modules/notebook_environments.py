#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: versions of Python environments of notebooks, and the removal of old ones."""

from __future__ import annotations

DOCUMENTATION = r"""
module: notebook_environments
short_description: Tell which versions of Python environments are there, and remove old ones
version_added: 0.1.0
description:
  - Tells of each version that M(gpufarm.cluster.python_environment) has built below a folder whether it is
    complete and which processes use it, and what the machine has for new ones.
  - With O(keep), versions that it does not name are removed. Those that a process uses stay, and so do all
    on a network file system, where other machines may use them; RV(kept) names them.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Shows the versions before and after.
options:
  folder:
    description: Folder of the environments. A version is in the folder C(NAME/VERSION) below it.
    type: path
    required: true
  keep:
    description: Versions that stay, each as C(NAME/VERSION). Without the option nothing is removed.
    type: list
    elements: str
  python:
    description: Interpreter that environments are made for.
    type: path
    default: /usr/bin/python3
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Tell which environments are there
  gpufarm.cluster.notebook_environments:
    folder: /opt/gpufarm/environments

- name: Remove all versions but one
  gpufarm.cluster.notebook_environments:
    folder: /opt/gpufarm/environments
    keep: [scientific/0f3a9c51d2e7]
"""

RETURN = r"""
versions:
  description: The versions that were found, before a removal.
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
kept:
  description: Versions that O(keep) does not name and that stay, each as C(NAME/VERSION) by the reason.
  returned: success
  type: dict
  sample: {scientific/0f3a9c51d2e7: python3 (812) of alice uses it}
python:
  description: Version of the interpreter, such as 3.11.
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
"""

from dataclasses import asdict
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._environments.io import versions
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import kernel_module

VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def kept(found: list[versions.Version], wanted: list[str], shared: bool) -> dict[str, str]:
    """Return the versions that stay though nobody wants them, and why."""
    stay = {}
    for one in found:
        key = f"{one.name}/{one.version}"
        if key in wanted:
            continue
        if one.users:
            stay[key] = f"{', '.join(one.users[:3])} uses it"
        elif shared:
            stay[key] = "other machines may use it"
    return stay


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "keep": {"type": "list", "elements": "str"},
            "python": {"type": "path", "default": "/usr/bin/python3"},
        },
        supports_check_mode=True,
    )
    folder, wanted = Path(module.params["folder"]), module.params["keep"]
    _rc, python, _err = module.run_command([module.params["python"], "-c", VERSION], check_rc=True)
    found = versions.versions(folder)
    stay = {} if wanted is None else kept(found, wanted, versions.is_shared(folder))
    old = (
        []
        if wanted is None
        else [one for one in found if (key := f"{one.name}/{one.version}") not in wanted and key not in stay]
    )
    try:
        for one in [] if module.check_mode else old:
            versions.remove(folder, one)
    except OSError as error:
        module.fail_json(
            msg=f"{error.filename or folder} cannot be removed ({error.strerror}): remove what is in the way,"
            " and run again."
        )
    lines = [f"{one.name}/{one.version}\n" for one in found]
    module.exit_json(
        changed=bool(old),
        versions=[asdict(one) for one in found],
        kept=stay,
        python=python.strip(),
        driver=kernel_module.loaded().version,
        free=versions.free(folder),
        diff={
            "before_header": str(folder),
            "after_header": str(folder),
            "before": "".join(lines),
            "after": "".join(line for line, one in zip(lines, found, strict=True) if one not in old),
        },
    )


if __name__ == "__main__":
    main()
