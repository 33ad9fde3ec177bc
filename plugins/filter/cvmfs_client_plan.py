# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what the settings of a CernVM-FS client come to."""

from __future__ import annotations

DOCUMENTATION = r"""
name: cvmfs_client_plan
short_description: Tell what the settings of a CernVM-FS client come to
version_added: 0.1.0
description:
  - Makes the client's files and units, and the declarations for M(gpufarm.cluster.mount_validate), from the
    variables of the role C(cvmfs_client).
positional: _input, machine, host
options:
  _input:
    description: The variables of the role without C(cvmfs_client_).
    type: dict
    required: true
  machine:
    description: >-
      Result of M(gpufarm.cluster.cvmfs_info) about servers and proxies; without it, only the settings are
      checked.
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
    that: (settings | gpufarm.cluster.cvmfs_client_plan).problems | length == 0
"""

RETURN = r"""
_value:
  description:
    - C(problems), each a sentence; if there are none,
      C(repositories), names; C(files), texts by path below C(/etc/cvmfs); C(units), texts of units by name;
      C(started), the units to start; C(places) and C(mounts), what M(gpufarm.cluster.mount_validate) takes;
      C(servers), ways to repositories; C(proxy_hosts), hosts of proxies; C(key_paths), keys that
      must be on the machine.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._cvmfs import client, servers


def cvmfs_client_plan(
    settings: Mapping[str, Any], machine: Mapping[str, Any] | None = None, host: str = ""
) -> dict[str, Any]:
    """Return what settings come to as plain data."""
    problems = client.problems(settings)
    if machine and not problems:
        problems = list(servers.problems(machine, host))
    plan = {} if problems else client.plan(settings)
    return {"problems": problems, **plan}


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"cvmfs_client_plan": cvmfs_client_plan}
