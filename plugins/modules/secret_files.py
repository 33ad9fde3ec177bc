#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: secrets that are made once and kept in files."""

from __future__ import annotations

DOCUMENTATION = r"""
module: secret_files
short_description: Make secrets once, keep them in files, and hand them on
version_added: 0.1.0
description:
  - Makes random secrets in files that only the owner may read, and returns them, so that machines which share
    them can get them from the one that made them.
  - Secrets that are there stay as they are.
notes:
  - Tasks that use this module have to say C(no_log), as it returns secrets.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  check_mode:
    support: full
    description: Returns empty texts for secrets that would be made.
  diff_mode:
    support: none
    description: Secrets are not shown.
options:
  folder:
    description: Absolute path of the folder that the files are in. It is made with mode 0700.
    type: path
    required: true
  names:
    description: Names of the secrets, which are the names of their files.
    type: list
    elements: str
    required: true
  create:
    description: Whether secrets that are missing are made. If not, a missing one is an error.
    type: bool
    default: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Have one secret for all servers
  gpufarm.cluster.secret_files:
    folder: /etc/zookeeper/secrets
    names: [quorum]
  delegate_to: zk1.example.org
  run_once: true
  register: shared
  no_log: true
"""

RETURN = r"""
secrets:
  description: The secrets by their names, 43 letters, digits, hyphens and underscores when this module made
      them.
  returned: success
  type: dict
"""

import os
import re
import secrets
import stat
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

SECRET_BYTES = 32


def make(path: Path) -> str:
    """Write a new secret and return it."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    handle, new = tempfile.mkstemp(dir=str(path.parent))
    # A link fails where a file is, so that of two runs at once the first one wins and both return its secret.
    try:
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(secret)
        os.link(new, str(path))
    except FileExistsError:
        return path.read_text(encoding="utf-8")
    finally:
        Path(new).unlink()
    return secret


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "names": {"type": "list", "elements": "str", "required": True, "no_log": False},
            "create": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    folder = Path(module.params["folder"])
    changed, found = False, {}
    for name in module.params["names"]:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            module.fail_json(msg=f"The name {name!r} of a secret is no plain name of a file.")
    try:
        for name in module.params["names"]:
            path = folder / name
            if path.exists():
                found[name] = path.read_text(encoding="utf-8").strip()
                if not found[name]:
                    module.fail_json(msg=f"{path} is empty; write the secret, or remove the file.")
                if stat.S_IMODE(path.stat().st_mode) & 0o077:
                    changed = True
                    if not module.check_mode:
                        path.chmod(0o600)
            elif not module.params["create"]:
                module.fail_json(msg=f"{path} is missing; run the role that makes it first.")
            else:
                changed = True
                found[name] = ""
                if not module.check_mode:
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                    found[name] = make(path)
    except OSError as error:
        module.fail_json(msg=f"The secrets in {folder} cannot be had: {error.strerror}.")
    module.exit_json(changed=changed, secrets=found)


if __name__ == "__main__":
    main()
