#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the removal of old versions of Python environments of notebooks."""

from __future__ import annotations

DOCUMENTATION = r"""
module: notebook_environments
short_description: Remove versions of Python environments of notebooks that nobody wants
version_added: 0.1.0
description:
  - Removes versions that M(gpufarm.cluster.python_environment) has built below a folder and that O(keep) does
    not name. Those that a process uses stay, and so do all on a network file system, where other machines may
    use them; RV(kept) names them.
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
    description: Versions that stay, each as C(NAME/VERSION).
    type: list
    elements: str
    required: true
seealso:
  - module: gpufarm.cluster.notebook_environments_info
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Remove all versions but one
  gpufarm.cluster.notebook_environments:
    folder: /opt/gpufarm/environments
    keep: [scientific/0f3a9c51d2e7]
"""

RETURN = r"""
kept:
  description: Versions that O(keep) does not name and that stay, each as C(NAME/VERSION) by the reason.
  returned: success
  type: dict
  sample: {scientific/0f3a9c51d2e7: python3 (812) of alice uses it}
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._environments.io import versions


def kept(found: dict[str, versions.Version], wanted: list[str], shared: bool) -> dict[str, str]:
    """Return the versions that stay though nobody wants them, and why."""
    stay = {}
    for name, version in found.items():
        if name not in wanted and version.users:
            stay[name] = f"{', '.join(version.users[:3])} uses it"
        elif name not in wanted and shared:
            stay[name] = "other machines may use it"
    return stay


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "keep": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    folder, wanted = Path(module.params["folder"]), module.params["keep"]
    found = {f"{one.name}/{one.version}": one for one in versions.versions(folder)}
    stay = kept(found, wanted, versions.is_shared(folder))
    old = [name for name in found if name not in wanted and name not in stay]
    try:
        for name in [] if module.check_mode else old:
            versions.remove(folder, found[name])
    except OSError as error:
        module.fail_json(
            msg=f"{error.filename or folder} cannot be removed ({error.strerror}): remove what is in the way,"
            " and run again."
        )
    module.exit_json(
        changed=bool(old),
        kept=stay,
        diff={
            "before_header": str(folder),
            "after_header": str(folder),
            "before": "".join(f"{name}\n" for name in found),
            "after": "".join(f"{name}\n" for name in found if name not in old),
        },
    )


if __name__ == "__main__":
    main()
