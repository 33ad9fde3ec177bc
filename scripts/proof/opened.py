"""Note which files of the repository this process opens; every Python process of a job begins with this.

The environment says in PROOF_OPENED to which file the paths are added, one a line.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from types import FrameType

# Programs that open files which the job may not need. packed_modules.py reads all modules, ansible-galaxy
# and the lookup deployer all files, as they pack them, and digest.py all that decides what roles make.
UNTOLD = (
    "/molecule/shared/callback_plugins/packed_modules.py",
    "/ansible/galaxy/collection/",
    "/gpufarm/cluster/plugins/lookup/deployer.py",
    "/gpufarm/cluster/plugins/plugin_utils/digest.py",
)
# To find one filter Ansible loads all of the collection (Jinja2Loader in ansible/plugins/loader.py), and what
# they import. Imports of a filter that is called are needed.
LOADED = "/gpufarm/cluster/plugins/filter/"
# Where Ansible keeps the archives of modules in a run; of those that packed_modules.py kept there are links.
ARCHIVES = "/ansiballz_cache/"


def is_untold() -> bool:
    """Return whether the file is opened by, or for, what tells nothing about the job."""
    frame: FrameType | None = sys._getframe()
    while frame:
        name = frame.f_code.co_filename
        if any(part in name for part in UNTOLD) or (LOADED in name and frame.f_code.co_name == "<module>"):
            return True
        frame = frame.f_back
    return False


def watch(notes: str, root: str) -> None:
    """Note the path of each file below the root that is opened from now on, here and in forked processes.

    Args:
        notes: file that paths are added to.
        root: folder, with a slash at its end.
    """
    noted = {notes}
    installed = f"{root}.venv/"

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes):
            return
        path = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100  # links are followed later
        if ARCHIVES in path:
            path = os.path.realpath(path)  # the link goes when the run ends
        if not path.startswith(root) or path.startswith(installed):
            return
        if path not in noted and not is_untold():
            noted.add(path)
            with contextlib.suppress(PermissionError):  # tests run programs as other users
                descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                os.write(descriptor, os.fsencode(f"{path}\n"))
                os.close(descriptor)

    sys.addaudithook(hook)


watch(os.environ["PROOF_OPENED"], f"{Path(__file__).resolve().parents[2]}/")
