#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the record of what roles made on a machine, and for whom."""

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_record
short_description: Compare a machine with the record of what roles made on it, and keep that record
version_added: 0.1.0
description:
  - The part of M(gpufarm.cluster.role_record) that runs on the machine. Roles use that one.
  - The records are in C(/var/lib/gpufarm/record), a file for each role, which only root reads.
  - A lost record costs a full run of the role, and never leads to the removal of something.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: none
    description: A record is no setting of the machine.
options:
  step:
    description:
      - V(probe) tells which roles have nothing to do, and changes nothing.
      - V(compare) tells what a role has to do, or refuses it.
      - V(claim) notes that the role begins to change the machine.
      - V(record) notes what it made, and removes files that it made earlier and makes no longer, unless
        somebody has changed them.
      - V(forget) removes the record, after what the role made is removed.
    type: str
    required: true
    choices: [probe, compare, claim, record, forget]
  owner:
    description: For whom the roles are applied.
    type: str
    required: true
  version:
    description: Digest of the collection.
    type: str
    required: true
  inventory:
    description: Inventory of the run, for those who read the record.
    type: str
    default: ""
  operator:
    description: Account of the run on the controller, for those who read the record.
    type: str
    default: ""
  take_over:
    description: Whether what other owners made may be changed and removed.
    type: bool
    default: false
  full_run:
    description: Whether roles run in any case.
    type: bool
    default: false
  withdraw:
    description: Whether a removal only takes its owner off the record, and without a record does nothing.
    type: bool
    default: false
  requests:
    description: The roles; one, except for V(probe).
    type: list
    elements: dict
    required: true
    suboptions:
      role:
        description: The role, without the name of the collection; with an instance, that in addition.
        type: str
        required: true
      state:
        description: The state that the role is applied with.
        type: str
        choices: [absent, present]
        default: present
      variables:
        description: Digest of the role's variables; empty if the role has to run in any case.
        type: str
        default: ""
      owns:
        description: Whether the role sets something up, instead of verifying what is there.
        type: bool
        default: true
      divided:
        description: Whether the role itself divides the machine among owners.
        type: bool
        default: false
      alone:
        description:
          - Whether all that the role depends on is in its variables and on this machine. Otherwise it
            runs each time.
          - For V(probe), the record says so, too.
        type: bool
        default: true
      made:
        description:
          - Things that the role makes, by kind. C(paths), where a folder stands for all that is below it,
            C(units) of systemd, C(packages), which may be patterns of a shell, C(users), C(groups),
            C(mounts), C(reads), which are paths that others write too and the role depends on,
            C(answers), which are command lines whose exit status counts, and C(outputs), of which also
            counts what they print.
        type: dict
        default: {}
      before:
        description:
          - Settings of the machine that the role changes, as texts by name, for V(claim). The record keeps
            them as they were before the role's first run; it keeps nothing if O(requests[].made) is there
            without a record, as the role has changed the settings then. No secret may be among them.
          - With O(requests[].divided), the role gives only settings that it has not changed.
        type: dict
        default: {}
      beside:
        description:
          - Settings of O(requests[].before) that other roles change, too, each with a list of all roles that
            do. A setting counts as the record of one of them has it. It is unknown if they have records, and
            none has the setting.
        type: dict
        default: {}
      result:
        description: The result of the role.
        type: dict
        default: {}
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Find out whether the checks of the GPUs are as they were made
  gpufarm.cluster.machine_record:
    step: probe
    owner: a playbook
    version: 8f7c
    requests:
      - role: gpu_health
        variables: 52a1
  register: probed
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
note:
  description: A sentence that the operator has to know; may be empty.
  returned: for V(compare)
  type: str
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

import contextlib
import itertools
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._record import decide
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.decide import Refused, Request
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.dropped import dropped
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.entry import Entry, LostRecord, drift
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.io.remove import remove
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.io.store import Store
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.io.things import (
    KINDS,
    are_there,
    states,
)

REQUEST = {
    "role": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["absent", "present"], "default": "present"},
    "variables": {"type": "str", "default": "", "no_log": True},
    "owns": {"type": "bool", "default": True},
    "divided": {"type": "bool", "default": False},
    "alone": {"type": "bool", "default": True},
    "made": {"type": "dict", "default": {}},
    "before": {"type": "dict", "default": {}},
    "beside": {"type": "dict", "default": {}},
    "result": {"type": "dict", "default": {}},
}


SHARED = ("owner", "version", "take_over", "withdraw", "full_run")


class Records:
    """The records of this machine, for one run. They are no settings: who writes only them changes nothing.

    Args:
        module: the module that runs.
    """

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.store = Store()

    def request(self, given: Mapping[str, Any]) -> Request:
        """Return a request of the arguments."""
        shared = {name: self.module.params[name] for name in SHARED}
        own = {name: given[name] for name in ("role", "state", "variables", "owns", "divided", "alone")}
        return Request(**own, **shared)

    def entries(self, role: str) -> dict[str, Entry]:
        """Return the record of a role; a broken one counts as lost."""
        try:
            return self.store.entries(role)
        except LostRecord as error:
            self.module.warn(f"The record of the role {role} is lost: {error}.")
            return {}

    def probe(self) -> dict[str, Any]:
        """Return which roles have nothing to do."""
        done = {}
        for given in self.module.params["requests"]:
            request = self.request(given)
            entries = self.entries(request.role)
            entry = decide.candidate(request, entries) if request.owner in entries else None
            skippable = request.state == "present" and request.alone
            if skippable and entry and entry.alone and not drift(entry.made, states(entry.made)):
                done[request.role] = entry.result
        return {"changed": False, "done": done}

    def compare(self) -> dict[str, Any]:
        """Return what a role has to do.

        Raises:
            Refused: another owner has set it up.
            OSError: the record cannot be written.
        """
        [given] = self.module.params["requests"]
        request = self.request(given)
        found: list[str] = []
        # Another run may join or leave meanwhile.
        with contextlib.nullcontext() if self.module.check_mode else self.store.locked():
            entries = self.entries(request.role)
            if request.state == "present":
                entry = decide.candidate(request, entries)
                found = drift(entry.made, states(entry.made)) if entry else []
                decision = decide.present(request, entries, bool(found))
            else:
                left = bool(entries) or are_there(given["made"])
                decision = decide.absent(request, entries, left)
            if decision.entries is not None and not self.module.check_mode:
                self.store.replace(request.role, decision.entries)
        return {
            "changed": False,
            "run": decision.run,
            "unchanged": decision.unchanged,
            "made": decide.made(request, entries),
            "before": decide.remembered(entries),
            "note": decision.note,
            "drift": found,
            "done": {request.role: decision.by.result} if decision.by else {},
        }

    def write(self, step: str) -> dict[str, Any]:
        """Write the record of a role.

        Raises:
            Refused: another owner has set it up meanwhile.
            OSError: the record cannot be written.
        """
        [given] = self.module.params["requests"]
        request = self.request(given)
        check = self.module.check_mode
        with contextlib.nullcontext() if check else self.store.locked():
            entries = self.entries(request.role)
            left = bool(given["before"]) and are_there(given["made"])
            beside = {name: map(self.entries, roles) for name, roles in given["beside"].items()}
            found = decide.found_beside(given["before"], beside)
            before = decide.to_remember(request, entries, found, left)
            told = {"before": before} if step == "claim" else {}
            if check:
                return {"changed": False, **told}
            if step == "forget":
                after = decide.forgotten(request, entries)
            else:
                after = decide.claimed(request, entries, self.about(), before)
            gone: list[str] = []
            if step == "record":
                gone = self.remove_dropped(request, after, given["made"]) if request.owns else []
                made = states(given["made"])
                own = replace(after[request.owner], made=made, result=given["result"], complete=True)
                after = {**after, request.owner: own}
            self.store.replace(request.role, after)
        return {"changed": bool(gone), "gone": gone, **told}

    def remove_dropped(
        self, request: Request, entries: Mapping[str, Entry], made: Mapping[str, list[str]]
    ) -> list[str]:
        """Remove files that the role made for this owner and makes no longer. Return their paths."""
        others = [entry.made for owner, entry in entries.items() if owner != request.owner]
        for role in self.store.roles():
            if role != request.role:
                others += [entry.made for entry in self.entries(role).values()]
        gone, kept = remove(dropped(entries[request.owner].made, made, others))
        for sentence in kept:
            self.module.warn(sentence)
        return gone

    def about(self) -> Entry:
        """Return an entry that tells of this run."""
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return Entry(
            inventory=self.module.params["inventory"], operator=self.module.params["operator"], at=at
        )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "step": {
                "type": "str",
                "required": True,
                "choices": ["probe", "compare", "claim", "record", "forget"],
            },
            "owner": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
            "inventory": {"type": "str", "default": ""},
            "operator": {"type": "str", "default": ""},
            "take_over": {"type": "bool", "default": False},
            "withdraw": {"type": "bool", "default": False},
            "full_run": {"type": "bool", "default": False},
            "requests": {"type": "list", "elements": "dict", "required": True, "options": REQUEST},
        },
        supports_check_mode=True,
    )
    step, records = module.params["step"], Records(module)
    for given in module.params["requests"]:
        for name, roles in given["beside"].items():
            if not isinstance(roles, list):
                module.fail_json(msg=f"The roles beside for the setting {name} are {roles!r}; give a list.")
        for role in (given["role"], *itertools.chain(*given["beside"].values())):
            if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,200}", str(role)):
                module.fail_json(msg=f"{role!r} is no name for a record; use letters, digits, '_', '.', '-'.")
    unknown = {kind for given in module.params["requests"] for kind in given["made"]} - {*KINDS}
    if unknown:
        module.fail_json(msg=f"{', '.join(sorted(unknown))} is no kind of thing; {', '.join(KINDS)} are.")
    for given in module.params["requests"]:
        for name, text in given["before"].items():
            if not isinstance(text, str):
                module.fail_json(
                    msg=f"The setting {name} was {text!r} before, which is no text; give a text."
                )
    if step != "probe" and len(module.params["requests"]) != 1:
        module.fail_json(msg=f"{step} is for one role, and {len(module.params['requests'])} are given.")
    try:
        result = (
            records.probe()
            if step == "probe"
            else records.compare()
            if step == "compare"
            else records.write(step)
        )
    except Refused as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"The record {error.filename or ''} cannot be written: {error.strerror}.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
