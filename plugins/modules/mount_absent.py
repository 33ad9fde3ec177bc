#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: unmount what nobody uses."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mount_absent
short_description: Unmount what nobody uses, or tell who does
version_added: 0.1.0
description:
  - Unmounts paths, neither by force nor lazily. When somebody uses one of them, nothing is unmounted, and the
    processes are named.
  - Each C(umount) is given up after a while, so that a mount that hangs does not hang the module.
attributes:
  check_mode:
    support: full
    description: Tells what would be unmounted, and fails when somebody uses it.
  diff_mode:
    support: full
    description: Shows the mounts before and after.
  idempotent:
    support: full
    description: Paths that are not mounted are left alone.
options:
  paths:
    description: Absolute paths of mount points. Of several mounts on a path the topmost is unmounted.
    type: list
    elements: path
    required: true
  timeout:
    description: Seconds that each C(umount) may take.
    type: float
    default: 30
seealso:
  - module: gpufarm.cluster.mount_validate
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Unmount a file system that is no longer wanted
  gpufarm.cluster.mount_absent:
    paths: [/scratch]
"""

RETURN = r"""
unmounted:
  description: Paths that were unmounted, or would be in check mode.
  returned: success
  type: list
  elements: str
users:
  description: The processes in the way, by mount point.
  returned: failure
  type: dict
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts.io import users as mounts_users

MOST_NAMED = 5


def mounted() -> list[str]:
    """Return the mount points of the machine."""
    return list(mount_table.parse(Path("/proc/self/mountinfo").read_text(errors="replace")))


def named(users: list[str]) -> str:
    """Return processes in words."""
    words = ", ".join(users[:MOST_NAMED])
    return words + (f" and {len(users) - MOST_NAMED} more" if len(users) > MOST_NAMED else "")


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "paths": {"type": "list", "elements": "path", "required": True},
            "timeout": {"type": "float", "default": 30},
        },
        supports_check_mode=True,
    )
    seconds = module.params["timeout"]
    try:
        there = mounted()
        # Mounts inside another mount go first.
        paths = sorted({one.rstrip("/") for one in module.params["paths"]} & set(there), reverse=True)
        users: dict[str, list[str]] = {path: mounts_users.users_of(path) for path in paths}
    except OSError as error:
        module.fail_json(msg=f"The mounts cannot be read: {error.strerror}.")
    inside = {
        path: [one for one in there if one.startswith(path + "/") and one not in paths] for path in paths
    }
    busy = [f"{path} is used by {named(found)}" for path, found in users.items() if found]
    busy += [f"{path} has {' and '.join(found)} mounted inside" for path, found in inside.items() if found]
    if busy:
        module.fail_json(
            msg=f"Nothing is unmounted, as {'; '.join(busy)}; end that and run this again.",
            users={path: found for path, found in users.items() if found},
        )
    done: list[str] = []
    for path in paths if not module.check_mode else []:
        answer = timed.run(["umount", path], seconds)
        if answer.status != 0:
            why = f"no answer within {seconds:g} seconds" if answer.status is None else answer.errors.strip()
            found = mounts_users.users_of(path)
            who = f"; it is used by {named(found)}" if found else ""
            module.fail_json(
                msg=(
                    f"{path} cannot be unmounted: {why}{who}. Unmounted before it:"
                    f" {' and '.join(done) or 'nothing'}."
                ),
                users={path: found},
            )
        done.append(path)
    module.exit_json(
        changed=bool(paths),
        unmounted=paths,
        diff={"before": "".join(path + "\n" for path in paths), "after": ""},
    )


if __name__ == "__main__":
    main()
