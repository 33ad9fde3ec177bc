# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that modules write: Ansible keeps the owner and the SELinux label of what a file replaces."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule


def temporary_file(module: AnsibleModule, content: str) -> str:
    """Write a file that only its owner reads, and that is gone after the module, and return its path."""
    handle, path = tempfile.mkstemp(dir=module.tmpdir, suffix=".txt")
    module.add_cleanup_file(path)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(content)
    return path


def replace_file(
    module: AnsibleModule, path: Path, content: str, mode: int, check: Callable[[str], object] | None = None
) -> None:
    """Replace a file as a whole.

    Args:
        module: the module that runs.
        path: the file; its folder must be there.
        content: what it has to hold.
        mode: its permissions.
        check: is given the path of the new file before it takes its place.
    """
    new = temporary_file(module, content)
    Path(new).chmod(mode)
    if check:
        check(new)
    # A new file first gets the mode of the umask, even if only its owner may read it later.
    umask = os.umask(0o777 & ~mode)
    try:
        module.atomic_move(new, str(path))
    finally:
        os.umask(umask)
    path.chmod(mode)
