#!/usr/bin/python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the program of Lustre that this file is called as, or, as lustre-fake, do what a test wants."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, "/usr/lib/lustre-fake")

from fake import ask, disk, lnet, mmp, mounts, network, state

PROGRAMS = {
    "mount.lustre": mounts.mount,
    "lnetctl": lnet.lnetctl,
    "lctl": ask.lctl,
    "lfs": ask.lfs,
    "mkfs.lustre": disk.mkfs,
    "tunefs.lustre": disk.tunefs,
    "lustre_rmmod": lambda _words: state.unload(),
}
USAGE = """\
usage: lustre-fake serve ADDRESS FILE_SYSTEM...   be the servers of file systems, at port 988 of an address
       lustre-fake hang|resume PATH               stop and continue who serves a mounted file system
       lustre-fake hang|resume PROGRAM            have lnetctl, lctl, lfs or mount.lustre wait forever
       lustre-fake fail PROGRAM STATUS WORDS      have it fail until `resume`
       lustre-fake flag TARGET [FLAGS|inactive]   what `lfs df` and `lfs check` say of a target
       lustre-fake modprobe MODULE                for the unit of LNet
       lustre-fake hold DEVICE PATH               for targets that several servers can mount"""


def fake(words: list[str]) -> None:
    action, rest = (words[0], words[1:]) if words else ("", [])
    if action == "serve" and rest:
        network.serve(*rest)
    elif action == "hold" and len(rest) == 2:
        mmp.hold(*rest)
    elif action == "modprobe" and rest:
        state.load(rest[0])
    elif action in ("hang", "resume") and rest and rest[0].startswith("/"):
        mounts.hang(rest[0], action == "hang")
    elif action == "hang" and rest and rest[0] in PROGRAMS:
        tell(rest[0], "hang")
    elif action == "resume" and rest and rest[0] in PROGRAMS:
        (state.TOLD / rest[0]).unlink(missing_ok=True)
    elif action == "fail" and len(rest) == 3 and rest[0] in PROGRAMS:
        tell(rest[0], {"status": int(rest[1]), "words": rest[2]})
    elif action == "flag" and rest:
        file = state.TOLD / "flags"
        flags = json.loads(file.read_text()) if file.exists() else {}
        flags.pop(rest[0], None)
        tell("flags", {**flags, **({rest[0]: rest[1]} if rest[1:] else {})})
    else:
        state.fail(2, USAGE)


def tell(name: str, what: object) -> None:
    state.TOLD.mkdir(exist_ok=True)
    (state.TOLD / name).write_text(json.dumps(what))


def main() -> None:
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"  # mount(8) passes on less
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    with state.LOG.open("a") as log:
        log.write(f"{time.time():.3f} {name} {' '.join(words)}\n")
    if name in PROGRAMS:
        mounts.told(name)
        PROGRAMS[name](words)
    else:
        fake(words)


if __name__ == "__main__":
    main()
