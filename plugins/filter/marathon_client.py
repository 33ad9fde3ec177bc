# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what a client needs to know of a Marathon."""

from __future__ import annotations

DOCUMENTATION = r"""
name: marathon_client
short_description: Tell how a Marathon is reached
version_added: 0.1.0
description:
  - Reads the files of the role C(marathon), so that its clients need not be told by hand.
positional: _input, environments, secrets
options:
  _input:
    description: Names of the machines.
    type: list
    elements: str
    required: true
  environments:
    description: F(/etc/marathon/environment) of each; empty for one that is not there yet.
    type: list
    elements: str
    default: []
  secrets:
    description: F(/etc/marathon/secrets/environment) of one of them.
    type: str
    default: ""
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Tell where Marathon answers
  ansible.builtin.debug:
    msg: "{{ (['master1', 'master2'] | gpufarm.cluster.marathon_client(environments)).urls }}"
"""

RETURN = r"""
_value:
  description: C(urls) of the servers, and C(user) and C(password), empty when they are not known.
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.client import client


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"marathon_client": client}
