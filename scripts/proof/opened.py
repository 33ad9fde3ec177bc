"""Note which files of the repository this process opens; Python processes run this while inputs are recorded.

The environment says in PROOF_OPENED to which file the paths are added, one a line.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

FILTERS = "/gpufarm/cluster/plugins/filter/"


def loads_filter() -> bool:
    """Return whether this is done to load a filter.

    To find one filter Ansible loads all of the collection (Jinja2Loader in ansible/plugins/loader.py). So
    what they import is opened in runs that use other filters.
    """
    frame: FrameType | None = sys._getframe()
    while frame and FILTERS not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


def watch(notes: str, root: str) -> None:
    """Note the path of each file below the root that is opened from now on, here and in forked processes.

    Args:
        notes: file that paths are added to.
        root: folder, with a slash at its end.
    """
    noted = {notes}

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes):
            return
        path = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100  # links are followed later
        if path.startswith(root) and path not in noted and not loads_filter():
            noted.add(path)
            descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(descriptor, f"{path}\n".encode())
            os.close(descriptor)

    sys.addaudithook(hook)


watch(os.environ["PROOF_OPENED"], f"{Path(__file__).resolve().parents[2]}/")
