# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what is wrong with the settings of a Lustre client, before any machine is touched."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lustre_client_problem
short_description: Tell what is wrong with the settings of a Lustre client
version_added: 0.1.0
description:
  - Reads the variables of the role C(lustre_client) as the role does, on the controller.
positional: _input, machine, host
options:
  _input:
    description: The variables of the role without C(lustre_client_).
    type: dict
    required: true
  machine:
    description: What M(gpufarm.cluster.lustre_info) returns, to judge the machine in place of the variables.
    type: dict
  host:
    description: Name of the machine.
    type: str
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  ansible.builtin.assert:
    that: settings | gpufarm.cluster.lustre_client_problem == ''
    fail_msg: "{{ settings | gpufarm.cluster.lustre_client_problem }}"
"""

RETURN = r"""
_value:
  description: A sentence for everything that is wrong; empty when the settings can work.
  type: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import client


def lustre_client_problem(
    settings: Mapping[str, Any], machine: Mapping[str, Any] | None = None, host: str = "the machine"
) -> str:
    """Return what is wrong with settings, or with a machine for them; an empty text when nothing is."""
    if machine is not None:
        return client.machine_problem(settings, machine, host)
    return client.problem(settings)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Return the filters by name."""
        return {"lustre_client_problem": lustre_client_problem}
