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
positional: _input
options:
  _input:
    description: The variables of the role without C(cvmfs_client_).
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Show what would be written
  ansible.builtin.debug:
    msg: "{{ (settings | gpufarm.cluster.cvmfs_client_plan).files }}"
"""

RETURN = r"""
_value:
  description:
    - C(repositories), names; C(files), texts by path below C(/etc/cvmfs); C(units), texts of units by name;
      C(started), the units to start; C(places) and C(mounts), what M(gpufarm.cluster.mount_validate) takes;
      C(servers), ways to repositories; C(proxy_hosts), hosts of proxies; C(key_paths), keys that
      must be on the machine.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufarm.cluster.plugins.module_utils._cvmfs import client


def cvmfs_client_plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what settings come to as plain data."""
    try:
        return client.plan(settings)
    except client.SettingsError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
        """Return the filters by name."""
        return {"cvmfs_client_plan": cvmfs_client_plan}
