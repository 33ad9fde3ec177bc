# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that reads the layout of partitions that is made at boot."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mig_stored
short_description: Divide the stored layout of MIG partitions by owner, or put more into it
version_added: 0.1.0
description:
  - Reads the file from which the role C(mig) makes partitions at boot.
positional: _input
options:
  _input:
    description: Content of the file; empty if there is none.
    type: str
    required: true
  owner:
    description: Owner of the partitions.
    type: str
    required: true
  chosen:
    description: RV(ignore:layout) of M(gpufarm.cluster.mig_partition), to put it into the stored layout.
    type: list
    elements: dict
    default: []
  machine:
    description: UUIDs of all GPUs of the machine. Entries of other GPUs are left out.
    type: list
    elements: str
    default: []
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Show which GPUs a playbook had partitioned
  ansible.builtin.debug:
    msg: "{{ (content | gpufarm.cluster.mig_stored('a playbook')).own }}"
"""

RETURN = r"""
_value:
  description: Content of the file, and its new content.
  type: dict
  contains:
    own:
      description: UUIDs of the GPUs whose partitions RV(ignore:owner) had made.
      type: list
      elements: str
    others:
      description: Entries of other owners.
      type: list
      elements: dict
    owners:
      description: Names of the other owners, for a sentence.
      type: str
    layout:
      description: The entries with what was chosen among them.
      type: list
      elements: dict
"""

from collections.abc import Callable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.stored import divided, merged, read
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError


def mig_stored(
    content: str, owner: str, chosen: Sequence[dict[str, Any]] = (), machine: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the stored layout by owner, and with what was chosen.

    Raises:
        AnsibleFilterError: the content is no layout.
    """
    try:
        stored = read(content) if content else []
    except GpuError as error:
        raise AnsibleFilterError(str(error)) from error
    own, others = divided(stored, owner)
    return {
        "own": own,
        "others": others,
        "owners": " and ".join(sorted({entry["owner"] for entry in others})),
        "layout": merged(stored, chosen, machine, owner),
    }


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"mig_stored": mig_stored}
