#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the accounts and qualities of service of a Slurm cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_accounts
short_description: Accounts, limits and fair shares of a Slurm cluster
version_added: 0.1.0
description:
  - Makes the accounts and qualities of service of a list in slurmdbd, with the users that may compute for
    them, in as few calls of C(sacctmgr) as there are differences.
  - The lists are the whole truth of what this module made. Accounts, users and qualities of earlier runs that
    are no longer declared are deleted; Slurm refuses that for accounts with jobs.
  - Accounts have the organization C(made by gpufarm.cluster for CLUSTER), and qualities of service have that
    description. No others are ever changed.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Returns accounts and qualities of service before and after.
options:
  cluster:
    description: Name of the cluster, C(ClusterName) in C(slurm.conf). It is made if slurmdbd has none.
    type: str
    required: true
  accounts:
    description:
      - The accounts. The role P(gpufarm.cluster.slurm_accounts#role) describes limits and fair shares.
      - Groups are those that the machine knows (getent(1)). Users need not be accounts of the machine.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {description: Its name., type: str, required: true}
      parent: {description: Account above this one., type: str}
      fairshare: {description: Shares among those with the same parent., type: str}
      users: {description: Logins., type: list, elements: str}
      groups: {description: Groups whose members are users., type: list, elements: str}
      qos: {description: "Qualities of service, the default one first.", type: list, elements: str}
      limits: {description: The most that all of its jobs may use., type: dict}
      user_limits: {description: The most that the jobs of one user may use., type: dict}
  qos:
    description: The qualities of service.
    type: list
    elements: dict
    default: []
    suboptions:
      name: {description: Its name., type: str, required: true}
      priority: {description: A larger number comes first., type: int}
      longest_job: {description: Hours after which a job is ended., type: int}
      limits: {description: The most that all of its jobs may use., type: dict}
      user_limits: {description: The most that the jobs of one user may use., type: dict}
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Admit two groups, one with at most four slices at a time
  gpufarm.cluster.slurm_accounts:
    cluster: farm
    accounts:
      - name: physics
        groups: [physicists]
        fairshare: 10
      - name: course
        users: [ada, ben]
        limits: {slices: {1g.10gb: 4}, gpu_hours: 200}
        user_limits: {gpus: 1}
"""

RETURN = r"""
commands:
  description: Arguments of sacctmgr, call by call, that were used or, in check mode, would be.
  returned: success
  type: list
  elements: list
  sample: [[add, account, name=physics, cluster=farm, description=physics, organization=gpufarm, parent=root]]
users:
  description: Logins of each account.
  returned: success
  type: dict
  sample: {physics: [ada, ben]}
"""

import grp
import json
import pwd

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.accounts import (
    CLUSTER,
    AccountsProblem,
    Request,
    read_request,
    wrong_cluster,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.associations import (
    ACCOUNTS,
    ASSOCIATIONS,
    QUALITIES,
    RESOURCES,
    USERS,
    Books,
    commands,
    read_books,
    wanted,
)

# The complaint of sacctmgr, which it takes for a failure, when all is as it shall be.
NOTHING = "Request didn't affect anything"
LIMITED = {"limits": {"type": "dict"}, "user_limits": {"type": "dict"}}
NAMES = {"type": "list", "elements": "str"}
ACCOUNT = {
    "name": {"type": "str", "required": True},
    "parent": {"type": "str"},
    "fairshare": {"type": "str"},
    **dict.fromkeys(("users", "groups", "qos"), NAMES),
    **LIMITED,
}
QUALITY = {
    "name": {"type": "str", "required": True},
    "priority": {"type": "int"},
    "longest_job": {"type": "int"},
    **LIMITED,
}


class Slurm:
    """slurmdbd, as sacctmgr tells of it.

    Args:
        module: runs the commands.
        cluster: name of the cluster.
    """

    def __init__(self, module: AnsibleModule, cluster: str) -> None:
        self.module = module
        self.cluster = cluster

    def call(self, *words: str) -> str:
        """Return what sacctmgr printed; end the module when it fails."""
        code, printed, complaint = self.module.run_command(
            ["sacctmgr", "--immediate", "--quiet", *words], environ_update={"LC_ALL": "C.UTF-8"}
        )
        if code and NOTHING not in complaint:
            reason = " ".join((complaint + printed).split())
            self.module.fail_json(
                msg=f"'sacctmgr {' '.join(words)}' failed: {reason or f'it ended with {code}'}. "
                "Correct that and run again; what was done before stays."
            )
        return str(printed)

    def show(self, what: str, columns: str) -> str:
        """Return rows of a table."""
        return self.call("--noheader", "--parsable2", "show", what, f"format={columns}")

    def books(self) -> Books:
        """Return what slurmdbd has."""
        return read_books(
            {
                ASSOCIATIONS: self.show("association", ASSOCIATIONS),
                ACCOUNTS: self.show("account", ACCOUNTS),
                QUALITIES: self.show("qos", QUALITIES),
                USERS: self.show("user", USERS),
                RESOURCES: self.show("tres", RESOURCES),
            },
            self.cluster,
        )


def members(request: Request) -> dict[str, list[str]]:
    """Return the logins of the groups that are named, also of users whose own group it is.

    Raises:
        AccountsProblem: the machine does not know a group.
    """
    found = {}
    for name in sorted({name for one in request.accounts for name in one.groups}):
        try:
            group = grp.getgrnam(name)
        except KeyError:
            raise AccountsProblem(
                f"The machine does not know the group {name}; correct it, or connect the machine to the "
                "directory that has it."
            ) from None
        own = [one.pw_name for one in pwd.getpwall() if one.pw_gid == group.gr_gid]
        found[name] = sorted({*group.gr_mem, *own})
    return found


def text(books: Books) -> str:
    """Return a state as the text of a diff."""
    return json.dumps(books.shown(), indent=2) + "\n"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "cluster": {"type": "str", "required": True},
            "accounts": {"type": "list", "elements": "dict", "required": True, "options": ACCOUNT},
            "qos": {"type": "list", "elements": "dict", "default": [], "options": QUALITY},
        },
        supports_check_mode=True,
    )
    cluster: str = module.params["cluster"]
    slurm = Slurm(module, cluster)
    try:
        if not CLUSTER.fullmatch(cluster):
            raise AccountsProblem(wrong_cluster(cluster))
        request = read_request(module.params["accounts"], module.params["qos"])
        people = members(request)
        is_known = cluster in slurm.show("cluster", "Cluster").split()
        before = slurm.books()
        after = wanted(request, before, people)
    except AccountsProblem as problem:
        module.fail_json(msg=str(problem))
    calls = commands(before, after, cluster)
    if calls and not is_known:
        calls.insert(0, ["add", "cluster", cluster])
    if calls and not module.check_mode:
        for words in calls:
            slurm.call(*words)
        left = commands(slurm.books(), after, cluster)
        if left:
            module.fail_json(
                msg=f"Slurm did not take over all changes: 'sacctmgr {' '.join(left[0])}' is still needed; "
                "look into the log of slurmdbd."
            )
    users: dict[str, list[str]] = {name: [] for name in sorted(after.ours)}
    for account, user in sorted(after.users):
        if account in users:
            users[account].append(user)
    module.exit_json(
        changed=bool(calls),
        commands=calls,
        users=users,
        diff={"before": text(before), "after": text(after)},
    )


if __name__ == "__main__":
    main()
