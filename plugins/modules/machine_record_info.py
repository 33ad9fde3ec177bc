#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what roles made on a machine, for whom, and what has changed since."""

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_record_info
short_description: Tell what roles made on a machine, for whom, and what has changed since
version_added: 0.1.0
description:
  - Reads the records of M(gpufarm.cluster.machine_record) and compares them with the machine.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options: {}
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Find out what was changed by hand
  gpufarm.cluster.machine_record_info:
  register: found
"""

RETURN = r"""
records:
  description:
    - An entry for each owner of each role. C(owns) tells whether the role set something up, or only verified
      it. C(complete) is false after a run that did not end. C(drift) has what differs from the record, and
      C(lost) why a record cannot be read. C(state) says all this for people, a phrase for each difference.
  returned: success
  type: list
  elements: dict
  sample:
    - role: gpu_health
      owner: a playbook
      owns: true
      complete: true
      at: "2026-11-25T10:11:12+00:00"
      operator: root
      inventory: /srv/site/hosts.yml
      drift: ["units gpufarm-health.timer: enabled, active -> disabled, inactive"]
      lost: ""
      state: ["units gpufarm-health.timer: enabled, active -> disabled, inactive"]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.entry import (
    Entry,
    LostRecord,
    drift,
    phrases,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.io.store import Store
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.io.things import states


def told(role: str, owner: str, entry: Entry, lost: str = "") -> dict[str, Any]:
    """Return an entry as the module tells it."""
    differences = drift(entry.made, states(entry.made))
    return {
        "role": role,
        "owner": owner,
        "owns": entry.owns,
        "complete": entry.complete,
        "at": entry.at,
        "operator": entry.operator,
        "inventory": entry.inventory,
        "drift": differences,
        "lost": lost,
        "state": phrases(entry, differences, lost),
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    store, records = Store(), []
    for role in store.roles():
        try:
            entries = store.entries(role)
            records += [told(role, owner, entry) for owner, entry in sorted(entries.items())]
        except LostRecord as error:
            records.append(told(role, "unknown", Entry(), str(error)))
    module.exit_json(changed=False, records=records)


if __name__ == "__main__":
    main()
