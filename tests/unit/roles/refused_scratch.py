"""Refusals of the role scratch."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from refused import Refused

WAY = "gpufarm.cluster.path_info"
FOLDER = {"kind": "folder", "mode": "0755", "owner": "root", "group": "root", "size": 0}

REFUSED = {
    "scratch": [
        Refused("scratch_day is no variable of the role", {"scratch_day": 3}),
        Refused("is on the file system of the machine's root", {"scratch_path": "/var/scratch"}),
        Refused("is no plain absolute path", {"scratch_path": "scratch"}),
        Refused("is no plain absolute path", {"scratch_path": "/scratch/../etc"}),
        Refused("is no plain absolute path", {"scratch_path": "/scratch/$(id)"}),
        Refused("is no plain absolute path", {"scratch_path": "/scratch/a b"}),
        Refused("scratch_days is -1", {"scratch_days": -1}),
        Refused("give fewer days than that", {"scratch_days": 7, "scratch_warning_days": 7}),
        Refused("'1 TB' is no size", {"scratch_quota": "1 TB"}),
        Refused("scratch_quota_files is -1", {"scratch_quota_files": -1}),
        Refused(
            "/scratch can be changed by others than root (owner root, mode 1777)",
            {},
            {WAY: {"found": {"/scratch": {**FOLDER, "mode": "1777"}}}},
        ),
        Refused("(owner ada, mode 0755)", {}, {WAY: {"found": {"/scratch": {**FOLDER, "owner": "ada"}}}}),
        Refused("or a symbolic link", {}, {WAY: {"found": {"/scratch": {**FOLDER, "kind": "link"}}}}),
        Refused(
            "where it cannot be set from this machine",
            {},
            {
                "Validate | Read the mounts of the machine": {
                    "rc": 0,
                    "stdout": "1 0 8:2 / / rw - ext4 /dev/sda2 rw\n2 1 0:9 / /scratch rw - nfs4 nas:/s rw\n",
                }
            },
        ),
    ],
}
