# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what the settings of a ZooKeeper ensemble come to, and what is wrong with them."""

from __future__ import annotations

DOCUMENTATION = r"""
name: zookeeper_plan
short_description: Tell what the settings of a ZooKeeper ensemble come to
version_added: 0.1.0
description:
  - Reads the variables of the role C(zookeeper) as the role does, on the controller.
positional: _input
options:
  _input:
    description:
      - The variables of the role without C(zookeeper_), and C(hosts), the addresses of the hosts of the play
        by their names, C(ids), the numbers that they have, and C(current), the C(zoo.cfg) of one of them.
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  ansible.builtin.assert:
    that: (settings | gpufarm.cluster.zookeeper_plan).problems | length == 0
"""

RETURN = r"""
_value:
  description: >-
    C(problems), each a sentence, and C(configured), addresses of the servers in C(current); if there are no
    problems, C(servers), each with C(id), C(name) and C(address), C(quorum), C(warning), empty for none,
    C(configuration), the text of C(zoo.cfg), and C(left_out), addresses of servers that it would drop.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils import _zookeeper


def zookeeper_plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what settings come to."""
    problems = _zookeeper.problems(settings)
    known = {"configured": list(_zookeeper.configured_servers(settings["current"]).values())}
    if problems:
        return {"problems": problems, **known}
    servers = _zookeeper.ensemble(settings)
    return {
        "problems": [],
        "servers": [server._asdict() for server in servers],
        "quorum": _zookeeper.quorum(len(servers)),
        "warning": _zookeeper.warning(len(servers)),
        "configuration": _zookeeper.configuration(settings),
        "left_out": _zookeeper.left_out(settings),
        **known,
    }


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
        """Return the filters by name."""
        return {"zookeeper_plan": zookeeper_plan}
