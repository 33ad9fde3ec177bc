# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what is wrong with the settings of a CernVM-FS client, before any machine is touched."""

from __future__ import annotations

DOCUMENTATION = r"""
name: cvmfs_client_problem
short_description: Tell what is wrong with the settings of a CernVM-FS client
version_added: 0.1.0
description:
  - Reads the variables of the role C(cvmfs_client) as the role does, on the controller.
  - With what a machine found out about servers and proxies, tells also which repository it could not have.
positional: _input, machine, host
options:
  _input:
    description: The variables of the role without C(cvmfs_client_).
    type: dict
    required: true
  machine:
    description: What M(gpufarm.cluster.cvmfs_info) returns when it is asked about servers and proxies.
    type: dict
  host:
    description: Name of the machine, for people.
    type: str
    default: ""
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  ansible.builtin.assert:
    that: settings | gpufarm.cluster.cvmfs_client_problem == ''
    fail_msg: "{{ settings | gpufarm.cluster.cvmfs_client_problem }}"
"""

RETURN = r"""
_value:
  description: One sentence that says what is wrong; empty when the settings can work.
  type: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._cvmfs import client, servers


def cvmfs_client_problem(
    settings: Mapping[str, Any], machine: Mapping[str, Any] | None = None, host: str = ""
) -> str:
    """Return what is wrong with settings, an empty text when nothing is."""
    found = client.problem(settings)
    return found or (servers.problem(machine, host) if machine else "")


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Return the filters by name."""
        return {"cvmfs_client_problem": cvmfs_client_problem}
