#!/usr/bin/python
"""Report what a module can see of its process."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import locale
import os
import resource
import signal
import sys
import tempfile
import threading
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule


def streams() -> dict[str, list[object]]:
    """Return how the standard streams were opened."""
    names = ("stdin", "stdout", "stderr")
    found = {name: getattr(sys, name) for name in names}
    assert all(found[name] is getattr(sys, f"__{name}__") for name in names)
    return {
        name: [stream.encoding, stream.errors, stream.line_buffering, stream.buffer.seekable(), stream.name]
        for name, stream in found.items()
    }


def main() -> None:
    before = {number.name: str(signal.getsignal(number)) for number in signal.valid_signals() if number < 32}
    module = AnsibleModule({}, supports_check_mode=True)
    mask = os.umask(0)
    os.umask(mask)
    limits = {
        name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if "RLIMIT_" in name
    }
    children_become_ours = signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
    main_names = sorted(name for name in vars(sys.modules["__main__"]) if name.startswith("__"))
    module.exit_json(
        arguments=[sys.orig_argv, sys.executable, sys.prefix, str(sys.flags)],
        path=[entry for entry in sys.path if "payload" not in entry],
        program=str(Path("/proc/self/exe").readlink()),
        folder=str(Path.cwd()),
        mask=mask,
        user=[os.getresuid(), os.getresgid(), os.getgroups()],
        environment=dict(os.environ),
        signals=before,
        children_become_ours=children_become_ours,
        limits=limits,
        nice=os.getpriority(os.PRIO_PROCESS, 0),
        groups=Path("/proc/self/cgroup").read_text(),
        streams=streams(),
        descriptors=sorted(path.name for path in Path("/proc/self/fd").iterdir() if path.exists()),
        locale=[locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), locale.getpreferredencoding()],
        temporary=tempfile.gettempdir(),
        main=main_names,
        threads=threading.active_count(),
        leads=[os.getpid() == os.getsid(0), os.getpid() == os.getpgrp()],
        spaces={space.name: str(space.readlink()) for space in Path("/proc/self/ns").iterdir()},
    )


if __name__ == "__main__":
    main()
