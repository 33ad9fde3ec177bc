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

import json
from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._environments.io import versions
from ansible_collections.gpufarm.cluster.plugins.module_utils._environments.plan import KERNELS
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.patience import PATIENCE, answers
from ansible_collections.gpufarm.cluster.plugins.module_utils._lmod.io import tree

# A file of Debian's package environment-modules.
RIVAL = Path("/usr/share/modules/init/bash")
# The role notebook_environments writes it.
ENVIRONMENTS = Path("/etc/gpufarm/environments.json")


def inspect(folder: Path, files: list[str]) -> dict[str, Any]:
    """Return whose a tree is."""
    return {
        "unsafe": versions.unsafe(folder),
        "foreign": tree.is_foreign(folder),
        "shared": versions.is_shared(folder),
        "taken": tree.taken(folder, files),
    }


def toolkits(patterns: list[str]) -> list[str]:
    """Return folders with the compiler of CUDA, each once: a link beside it has its version shortened."""
    found = {path for pattern in patterns for path in Path("/").glob(pattern.lstrip("/"))}
    folders: dict[Path, str] = {}
    for path in sorted(found, key=lambda path: (path.is_symlink(), path)):
        if (path / "bin" / "nvcc").is_file():
            folders.setdefault(path.resolve(), str(path))
    return sorted(folders.values())


def environments() -> list[dict[str, str]]:
    """Return the environments of notebooks that are for all users; groups of a hub mean nothing here."""
    if not ENVIRONMENTS.is_file():
        return []
    told = json.loads(ENVIRONMENTS.read_text(encoding="utf-8"))["environments"]
    offered = [(one, Path(one["path"])) for one in told if not one["groups"]]
    return [
        {"name": one["name"], "title": one["title"], "version": path.parent.name, "folder": str(path.parent)}
        for one, path in offered
        if path.name == KERNELS and (path.parent / "bin" / "python").exists()
    ]


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
    folder, prefixes = module.params["folder"], set(module.params["prefixes"])
    questions = {
        "tree": lambda: inspect(Path(folder), module.params["files"]),
        "toolkits": lambda: toolkits(module.params["toolkits"]),
        "environments": environments,
    }
    try:
        there = answers({prefix: partial(Path(prefix).is_dir) for prefix in sorted(prefixes)}, PATIENCE)
        rest = answers(questions, PATIENCE)
    except OSError as error:
        module.fail_json(msg=f"The machine cannot be inspected: {error}; see to that, and run again.")
    silent = sorted(prefixes - there.keys())
    silent += [
        name
        for name, key in ((folder, "tree"), ("The folder of CUDA toolkits", "toolkits"))
        if key not in rest
    ]
    module.exit_json(
        changed=False,
        silent=silent,
        missing=sorted(prefix for prefix, found in there.items() if not found),
        rival=RIVAL.is_file(),
        tree=rest.get("tree", {}),
        toolkits=rest.get("toolkits", []),
        environments=rest.get("environments", []),
    )


if __name__ == "__main__":
    main()
