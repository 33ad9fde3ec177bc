# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells the result of a run that set up a site."""

from __future__ import annotations

DOCUMENTATION = r"""
name: site_summary
short_description: Tell addresses, users, slices and the next step of a site
version_added: 0.1.0
description:
  - Used at the end of the playbook C(site).
positional: _input
options:
  _input:
    description:
      - For each host the results of the roles P(gpufarm.cluster.jupyterhub#role) and
        P(gpufarm.cluster.mig#role), as C(jupyterhub) and C(mig), where the role was run.
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Tell the result of a host
  ansible.builtin.debug:
    msg: "{{ results | gpufarm.cluster.site_summary }}"
  vars:
    results: "{{ {inventory_hostname: {'jupyterhub': jupyterhub_result, 'mig': mig_result}} }}"
"""

RETURN = r"""
_value:
  description: Some lines; empty if no host has a hub or slices.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._site_summary import summary


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Any], str]]:
        """Return the filters by name."""
        return {"site_summary": summary}
