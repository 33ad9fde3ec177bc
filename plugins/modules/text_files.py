#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: many small text files at once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: text_files
short_description: Write several text files of a folder in one go
version_added: 0.1.0
description:
  - Writes text files whose contents are given.
  - One call for all of them, where C(ansible.builtin.copy) in a loop takes two round trips for each file.
  - Folders that are missing are made with mode 0755. A file is replaced as a whole, never seen half-written.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Returns the files before and after.
options:
  folder:
    description: Absolute path of the folder that the files are in.
    type: path
    required: true
  files:
    description: The files' contents by their names.
    type: dict
    required: true
  mode:
    description: The files' permissions in octal.
    type: str
    default: "0644"
  owner:
    description: Account that owns the files. Without it, new ones belong to the user that runs the module.
    type: str
  group:
    description: The group of the files, likewise.
    type: str
  remove_others:
    description:
      - Patterns of file names, such as V(*.py). Files in O(folder) and below it that match one and are
        not among O(files) are removed, such as those that an earlier version had installed.
    type: list
    elements: str
    default: []
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Write a service
  gpufarm.cluster.text_files:
    folder: /etc/systemd/system
    files:
      example.service: "{{ lookup('ansible.builtin.template', 'example.service.j2') }}"

- name: Write a package of Python
  gpufarm.cluster.text_files:
    folder: /opt/example
    files: "{{ dict(sources | map('basename') | zip(query('file', *sources, rstrip=false))) }}"
    remove_others: ["*.py"]
  vars:
    sources: "{{ query('fileglob', 'package/*.py') }}"
"""

RETURN = r"""
changed_files:
  description: Paths of the files that were written or removed, or whose permissions or owners were changed.
  returned: success
  type: list
  elements: str
  sample: [/etc/example/settings.json]
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.module_files import replace_file


def read(path: Path) -> bytes | None:
    """Return what the file holds; None when there is no file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def difference(
    path: Path, before: bytes | None, content: str, mode_before: int | None, mode: int
) -> dict[str, Any]:
    """Return the diff of one file: of its text, or of its permissions where the text is the same."""
    shown: dict[str, Any] = {"before_header": str(path), "after_header": str(path)}
    if before == content.encode() and mode_before is not None:
        return {**shown, "before": f"mode {mode_before:04o}\n", "after": f"mode {mode:04o}\n"}
    return {**shown, "before": (before or b"").decode("utf-8", "replace"), "after": content}


def give(module: AnsibleModule, path: Path) -> bool:
    """Set owner and group of a file; return whether that changes something."""
    if not path.exists():  # in check mode
        return False
    owned = module.set_owner_if_different(str(path), module.params["owner"], False)
    return bool(module.set_group_if_different(str(path), module.params["group"], owned))


def others(folder: Path, names: Iterable[str], patterns: Iterable[str]) -> list[Path]:
    """Return the files below a folder that match a pattern and have none of the names."""
    wanted = {folder / name for name in names}
    found = {path for pattern in patterns for path in folder.rglob(pattern)}
    return sorted(path for path in found - wanted if path.is_symlink() or path.is_file())


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "files": {"type": "dict", "required": True},
            "mode": {"type": "str", "default": "0644"},
            "owner": {"type": "str"},
            "group": {"type": "str"},
            "remove_others": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    changed, diffs = [], []
    try:
        mode = int(module.params["mode"], 8)
    except ValueError:
        module.fail_json(msg=f"The mode {module.params['mode']!r} is no octal number; give one such as 0644.")
    folder, files = Path(module.params["folder"]), module.params["files"]
    for name, content in sorted(files.items()):
        path = folder / name
        if not isinstance(content, str):
            module.fail_json(msg=f"The content of {path} is no text.")
        try:
            before = read(path)
            mode_before = stat.S_IMODE(path.stat().st_mode) if before is not None else None
            different = before != content.encode() or mode_before != mode
            if different:
                diffs.append(difference(path, before, content, mode_before, mode))
                if not module.check_mode:
                    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                    replace_file(module, path, content, mode)
            if give(module, path) or different:
                changed.append(str(path))
        except OSError as error:
            module.fail_json(msg=f"{path} cannot be written: {error.strerror}.")
    for path in others(folder, files, module.params["remove_others"]):
        changed.append(str(path))
        try:
            diffs.append(difference(path, read(path), "", None, mode))
            if not module.check_mode:
                path.unlink()
        except OSError as error:
            module.fail_json(msg=f"{path} cannot be removed: {error.strerror}.")
    module.exit_json(changed=bool(changed), changed_files=changed, diff=diffs)


if __name__ == "__main__":
    main()
