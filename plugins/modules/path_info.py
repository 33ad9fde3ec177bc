#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what is at several paths."""

from __future__ import annotations

DOCUMENTATION = r"""
module: path_info
short_description: Tell which of several paths are there, and what they are
version_added: 0.1.0
description:
  - Looks at all paths in one call, where C(ansible.builtin.stat) in a loop takes a round trip for each.
  - Links are not followed, and files are not read.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  paths:
    description: Absolute paths to look at. They are taken as they are, C($) and C(~) too.
    type: list
    elements: str
    required: true
seealso:
  - module: gpufarm.cluster.paths
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Look at the machine
  gpufarm.cluster.path_info:
    paths: [/usr/bin/docker, /etc/example/key.pem]
  register: looked

- name: Refuse a machine without Docker
  ansible.builtin.assert:
    that: "'/usr/bin/docker' in looked.found"
"""

RETURN = r"""
found:
  description:
    - Facts about each existing path, by the path as it was given. A path that does not exist has no key.
    - C(kind) is one of V(file), V(folder), V(link) and V(other), C(mode) the permissions in octal. C(owner)
      and C(group) are names, or numbers where the machine has no such account. C(size) is in bytes.
  returned: success
  type: dict
  sample:
    /usr/bin/docker: {kind: file, mode: "0755", owner: root, group: root, size: 42500000}
"""

import grp
import os
import pwd
import stat
from typing import Any

from ansible.module_utils.basic import AnsibleModule


def kind(mode: int) -> str:
    """Return what something is, of its mode."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def owner(number: int) -> str:
    """Return the name of an account."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def group(number: int) -> str:
    """Return the name of a group."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def look(path: str) -> dict[str, Any] | None:
    """Return what is at a path; None when there is nothing."""
    try:
        # With a slash at its end a link would be followed.
        seen = os.lstat(path.rstrip("/") or path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return {
        "kind": kind(seen.st_mode),
        "mode": f"{stat.S_IMODE(seen.st_mode):04o}",
        "owner": owner(seen.st_uid),
        "group": group(seen.st_gid),
        "size": seen.st_size,
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"paths": {"type": "list", "elements": "str", "required": True}},
        supports_check_mode=True,
    )
    found = {}
    for path in module.params["paths"]:
        try:
            there = look(path)
        except OSError as error:
            module.fail_json(msg=f"{path} cannot be looked at: {error.strerror}.")
        if there is not None:
            found[path] = there
    module.exit_json(changed=False, found=found)


if __name__ == "__main__":
    main()
