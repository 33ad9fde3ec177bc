#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the state of the servers of a ZooKeeper ensemble."""

from __future__ import annotations

DOCUMENTATION = r"""
module: zookeeper_info
short_description: Tell the state of the servers of a ZooKeeper ensemble
version_added: 0.1.0
description:
  - Asks each server with the four-letter word C(srvr), which has to be allowed there, and tells who leads and
    whether the ensemble serves.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  servers:
    description: Addresses of the servers, as the target reaches them, C(HOST) or C(HOST:PORT).
    type: list
    elements: str
    required: true
  port:
    description: Port for clients of those that are given without one.
    type: int
    default: 2181
  timeout:
    description: Seconds that each server may take.
    type: float
    default: 5
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Wait until the ensemble serves
  gpufarm.cluster.zookeeper_info:
    servers: [zk1.example.org, zk2.example.org, zk3.example.org]
  register: zookeeper
  until: zookeeper.serving
  retries: 10
  delay: 2
"""

RETURN = r"""
serving:
  description: Whether somebody leads a quorum of the servers, or a single server serves alone.
  returned: success
  type: bool
problem:
  description: >-
    Why a client that is given these servers cannot work with them; empty when nothing speaks against it. One
    server that serves is enough for a client, whether or not it leads.
  returned: success
  type: str
leader:
  description: Address of the server that leads or is alone; empty when there is none.
  returned: success
  type: str
servers:
  description: The servers, in the order of O(servers).
  returned: success
  type: list
  elements: dict
  contains:
    address:
      description: Its address.
      type: str
    mode:
      description: >-
        V(leader), V(follower), V(observer), V(standalone); V(electing) when it runs and does not serve,
        V(stopped) when the machine answers and no server does, V(unreachable) when nothing answers,
        V(unknown) when it does not tell.
      type: str
    reason:
      description: Why it is unreachable.
      type: str
    version:
      description: Its version.
      type: str
    connections:
      description: Number of its clients, this module included.
      type: int
    zxid:
      description: Last transaction that it has.
      type: str
    nodes:
      description: Number of nodes that it holds.
      type: int
"""

import socket
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils import _zookeeper

LONGEST_ANSWER = 1 << 16  # bytes


def ask(address: str, port: int, timeout: float) -> dict[str, Any]:
    """Return what one server says of itself."""
    silent = {**_zookeeper.read_status(""), "address": address, "reason": ""}
    try:
        with socket.create_connection(_zookeeper.place(address, port), timeout) as link:
            link.sendall(b"srvr")
            text = b""
            while len(text) < LONGEST_ANSWER:
                part = link.recv(4096)
                if not part:
                    break
                text += part
    except (ConnectionRefusedError, ConnectionResetError):
        return {**silent, "mode": "stopped"}
    except (socket.timeout, TimeoutError):
        return {**silent, "mode": "unreachable", "reason": f"no answer within {timeout:g} seconds"}
    except socket.gaierror:
        return {**silent, "mode": "unreachable", "reason": _zookeeper.UNRESOLVED}
    except OSError as error:
        return {**silent, "mode": "unreachable", "reason": error.strerror or str(error)}
    return {**silent, **_zookeeper.read_status(text.decode("utf-8", "replace"))}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "servers": {"type": "list", "elements": "str", "required": True},
            "port": {"type": "int", "default": 2181},
            "timeout": {"type": "float", "default": 5},
        },
        supports_check_mode=True,
    )
    servers = [
        ask(address, module.params["port"], module.params["timeout"]) for address in module.params["servers"]
    ]
    leader = next((one["address"] for one in servers if one["mode"] in ("leader", "standalone")), "")
    module.exit_json(
        changed=False,
        servers=servers,
        leader=leader,
        problem=_zookeeper.client_problem(servers),
        serving=_zookeeper.serving([one["mode"] for one in servers]),
    )


if __name__ == "__main__":
    main()
