#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of an action: the record of what a role made on a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: role_record
short_description: Compare a machine with the record of what a role made, and keep that record
version_added: 0.1.0
description:
  - A role compares the machine with its record first, claims the machine before its first change, and records
    at its end what it made. All roles of this collection do so by themselves.
  - If a role has run on this machine with the same variables and the same version of the collection, and all
    that it made is unchanged, it has nothing to do, and its result is what it returned then. The variable
    C(gpufarm_full_run) makes it run in any case.
  - A role that another owner has set up with other settings is refused, and a removal removes only what its
    owner made. The variable C(gpufarm_take_over) allows both. The variable C(gpufarm_owner) names the owner.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: none
    description: A record is no setting of the machine.
options:
  step:
    description:
      - V(probe) tells which of several roles have nothing to do, and changes nothing. Playbooks of this
        collection register the result as C(gpufarm_record), and leave these roles out.
      - V(compare) tells what one role has to do, or refuses it.
      - V(claim) notes that the role begins to change the machine.
      - V(record) notes what it made, and removes files that it made earlier and makes no longer, unless
        somebody has changed them.
      - V(forget) removes the record, after what the role made is removed.
    type: str
    required: true
    choices: [probe, compare, claim, record, forget]
  role:
    description: The role, without the name of the collection. For all steps but V(probe).
    type: str
  instance:
    description: Name of what the role sets up, if a machine may have several; by default that of the role.
    type: str
  roles:
    description:
      - For V(probe), the roles. The value of each is a dictionary of its variables that the play has not, or
        empty.
    type: dict
  state:
    description: For V(compare), the state that the role is applied with.
    type: str
    choices: [absent, present]
    default: present
  made:
    description:
      - Things that the role makes, by kind, as in O(gpufarm.cluster.machine_record#module:requests[].made).
        For V(compare) of a removal, for V(record), and for V(claim) with O(before).
    type: dict
    default: {}
  before:
    description:
      - For V(claim), settings of the machine that the role changes, as texts by name. The record keeps them
        as they were before the role's first run on the machine, so that the removal can bring them back. It
        keeps nothing if O(made) is there without a record, as the role has changed the settings then. No
        secret may be among them.
      - With O(divided), give only settings that the role has not changed.
    type: dict
    default: {}
  beside:
    description:
      - Settings of O(before) that other roles change, too, each with a list of all roles that do. A setting
        counts as one of them remembers it, whatever is found now, so that the last one that is removed can
        bring it back.
    type: dict
    default: {}
  result:
    description: For V(record), what the role returns.
    type: dict
    default: {}
  owns:
    description: Whether the role sets something up with its variables, instead of verifying what is there.
    type: bool
    default: true
  divided:
    description: Whether the role itself divides the machine among owners.
    type: bool
    default: false
  alone:
    description:
      - Whether all that the role depends on is in its variables and on this machine. Otherwise it runs each
        time.
      - For V(probe), the record says so, too.
    type: bool
    default: true
author:
  - gpufarm maintainers (@gpufarm)
seealso:
  - module: gpufarm.cluster.machine_record
"""

EXAMPLES = r"""
- name: Compare the machine with the record
  gpufarm.cluster.role_record:
    step: compare
    role: zookeeper
    state: "{{ zookeeper_state }}"
  register: zookeeper_record

- name: Set up the server
  ansible.builtin.include_tasks: set_up.yml
  when: zookeeper_record.run == 'present'
"""

RETURN = r"""
run:
  description: Which steps are needed; V(present), V(absent), or empty if none is.
  returned: for V(compare)
  type: str
  sample: present
unchanged:
  description:
    - Whether variables, version and all that the role made are as the record says, so that at most other
      machines have changed. For roles that depend on these.
  returned: for V(compare)
  type: bool
made:
  description:
    - Whether the role made something for this owner before; of a role that is switched off, whether nobody
      else needs that, either.
  returned: for V(compare)
  type: bool
drift:
  description: Differences between the machine and the record.
  returned: for V(compare)
  type: list
  elements: str
  sample: ["units gpufarm-health.timer: enabled, active -> disabled, inactive"]
before:
  description: Settings of the machine before the first run of the role, by name, as far as they are known.
  returned: for V(compare) and V(claim)
  type: dict
  sample: {haproxy.service: enabled}
gone:
  description: Paths of files that the role made earlier and makes no longer, which were removed.
  returned: for V(record)
  type: list
  elements: str
done:
  description: Results of the roles that have nothing to do, by role.
  returned: for V(probe) and V(compare)
  type: dict
"""
