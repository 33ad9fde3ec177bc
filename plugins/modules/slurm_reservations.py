#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the reservations of a Slurm cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_reservations
short_description: Reservations of a Slurm cluster
version_added: 0.1.0
description:
  - Makes, changes and deletes reservations with C(scontrol), so that the cluster has those of a list.
  - The list is the whole truth of what this module made, which it knows by the comments of reservations.
    No others are ever changed.
  - Users and end of a reservation change while jobs use it. Other changes make it anew, which Slurm refuses
    while jobs use it.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Returns the reservations of this module before, and the calls that change them.
options:
  cluster:
    description: Name of the cluster, C(ClusterName) in C(slurm.conf).
    type: str
    required: true
  reservations:
    description: The reservations. The role P(gpufarm.cluster.slurm_accounts#role) describes them.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {description: Its name., type: str, required: true}
      start: {description: "Local time, such as C(2026-12-01T09:00).", type: str, required: true}
      end: {description: Local time at which it ends., type: str, required: true}
      repeat: {description: "C(once), C(daily), C(weekly) and so on.", type: str, default: once}
      accounts: {description: Accounts that may use it., type: list, elements: str}
      users: {description: Logins that may use it., type: list, elements: str}
      partition: {description: Partition whose nodes or slices are taken., type: str}
      nodes: {description: Names of the nodes., type: list, elements: str}
      node_count: {description: Number of nodes., type: int}
      slices: {description: Number of slices by profile., type: dict}
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Keep eight slices for a course, each Tuesday morning
  gpufarm.cluster.slurm_reservations:
    cluster: farm
    reservations:
      - name: ml_course
        start: "2026-12-01T09:00"
        end: "2026-12-01T13:00"
        repeat: weekly
        accounts: [course]
        partition: gpu
        slices: {1g.10gb: 8}
"""

RETURN = r"""
commands:
  description: Arguments of scontrol, call by call, that were used or, in check mode, would be.
  returned: success
  type: list
  elements: list
  sample: [[delete, ReservationName=ml_course]]
"""

import shlex
from datetime import datetime

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.reservations import (
    OLDEST_RELEASE,
    Reservation,
    ReservationsProblem,
    Shown,
    commands,
    misfits,
    read_machines,
    read_release,
    read_request,
    read_shown,
)

NAMES = {"type": "list", "elements": "str"}
RESERVATION = {
    "name": {"type": "str", "required": True},
    "start": {"type": "str", "required": True},
    "end": {"type": "str", "required": True},
    "repeat": {"type": "str", "default": "once"},
    "accounts": NAMES,
    "users": NAMES,
    "partition": {"type": "str"},
    "nodes": NAMES,
    "node_count": {"type": "int"},
    "slices": {"type": "dict"},
}


class Slurm:
    """The controller of a cluster.

    Args:
        module: runs the commands.
    """

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def run(self, *words: str) -> str:
        """Return what a program of Slurm printed; end the module when it fails."""
        code, printed, complaint = self.module.run_command([*words], environ_update={"LC_ALL": "C.UTF-8"})
        if code:
            reason = " ".join((complaint + printed).split()) or f"it ended with {code}"
            self.module.fail_json(
                msg=f"'{shlex.join(words)}' failed: {reason}. Correct that and run again; a reservation in "
                "use can change its end and users only. Changes before that stay."
            )
        return str(printed)

    def shown(self) -> dict[str, Shown]:
        """Return the reservations that are there."""
        return read_shown(self.run("scontrol", "show", "reservations", "--oneliner"))

    def refuse_old(self) -> None:
        """Refuse a release that cannot keep the reservations apart."""
        printed = self.run("scontrol", "--version").strip()
        if read_release(printed) < OLDEST_RELEASE:
            raise ReservationsProblem(
                f"This is {printed}, whose reservations have no comments or slices; leave the reservations "
                f"out, or use Slurm {'.'.join(map(str, OLDEST_RELEASE))} or later."
            )


def carry_out(slurm: Slurm, request: list[Reservation], cluster: str) -> tuple[list[list[str]], str, str]:
    """Return the calls that were made, and our reservations before and after as texts of a diff.

    Raises:
        ReservationsProblem: the cluster cannot have them.
    """
    shown = slurm.shown()
    if request:
        slurm.refuse_old()
        there = read_machines(slurm.run("sinfo", "--all", "--noheader", "--Node", "--format=%N|%R|%G"))
        wrong = misfits(request, shown, there, cluster)
        if wrong:
            raise ReservationsProblem(wrong)
    now = datetime.now().replace(microsecond=0)  # as scontrol, which takes and tells local time
    calls = commands(request, shown, now, cluster)
    before = text(shown, cluster)
    if slurm.module.check_mode:
        return calls, before, before + "".join(f"{shlex.join(words)}\n" for words in calls)
    for words in calls:
        slurm.run("scontrol", *words)
    shown = slurm.shown() if calls else shown
    left = commands(request, shown, now, cluster)
    if left:
        raise ReservationsProblem(
            f"Slurm did not take over all changes: 'scontrol {shlex.join(left[0])}' is still needed; look "
            "into the log of slurmctld."
        )
    return calls, before, text(shown, cluster)


def text(shown: dict[str, Shown], cluster: str) -> str:
    """Return our reservations as the text of a diff."""
    return "".join(f"{one.line}\n" for _name, one in sorted(shown.items()) if one.is_ours(cluster))


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "cluster": {"type": "str", "required": True},
            "reservations": {"type": "list", "elements": "dict", "required": True, "options": RESERVATION},
        },
        supports_check_mode=True,
    )
    try:
        request = read_request(module.params["reservations"])
        calls, before, after = carry_out(Slurm(module), request, module.params["cluster"])
    except ReservationsProblem as problem:
        module.fail_json(msg=str(problem))
    module.exit_json(changed=bool(calls), commands=calls, diff={"before": before, "after": after})


if __name__ == "__main__":
    main()
