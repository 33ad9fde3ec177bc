#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: which processes listen on TCP ports."""

from __future__ import annotations

DOCUMENTATION = r"""
module: listening_ports_info
short_description: Tell which processes listen on TCP ports
version_added: 0.1.0
description:
  - Lists the processes that listen on the given TCP ports, with the systemd unit each belongs to.
  - Reads F(/proc) only, so it needs no program on the target. Other users' processes are seen by root only.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  ports:
    description: The ports.
    type: list
    elements: int
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: See who listens on the hub's port
  gpufarm.cluster.listening_ports_info:
    ports: [8888]
  register: who
"""

RETURN = r"""
listeners:
  description: One entry per port and process.
  returned: success
  type: list
  elements: dict
  contains:
    port:
      description: The port.
      type: int
      sample: 8888
    pid:
      description: The process; 0 when it is not visible.
      type: int
      sample: 4711
    process:
      description: The process's name; empty when it is not visible.
      type: str
      sample: node
    unit:
      description: The process's systemd unit; empty when it belongs to none.
      type: str
      sample: jupyterhub-proxy.service
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils import _ports as tables


def sockets() -> dict[int, set[int]]:
    """Return the inodes of all listening sockets by port."""
    found: dict[int, set[int]] = {}
    for name in ("tcp", "tcp6"):
        table = Path("/proc/net") / name
        if table.exists():  # no tcp6 without IPv6
            for port, inodes in tables.parse_listeners(table.read_text(encoding="ascii")).items():
                found.setdefault(port, set()).update(inodes)
    return found


def holders(inodes: set[int]) -> dict[int, list[Path]]:
    """Return the processes, as folders of /proc, that hold sockets of these inodes."""
    inode_of = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[int, list[Path]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        held = set()
        try:
            for descriptor in (process / "fd").iterdir():
                try:
                    held.add(str(descriptor.readlink()))
                except OSError:  # closed meanwhile
                    continue
        except OSError:  # ended meanwhile, or somebody else's
            continue
        for name in held & inode_of.keys():
            found.setdefault(inode_of[name], []).append(process)
    return found


def describe(port: int, process: Path) -> dict[str, Any]:
    """Return one entry of the result."""
    try:
        name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
        unit = tables.parse_unit((process / "cgroup").read_text(encoding="utf-8", errors="replace"))
    except OSError:  # ended meanwhile
        name, unit = "", ""
    return {"port": port, "pid": int(process.name), "process": name, "unit": unit}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"ports": {"type": "list", "elements": "int", "required": True}},
        supports_check_mode=True,
    )
    wanted = {port: inodes for port, inodes in sockets().items() if port in module.params["ports"]}
    processes = holders({inode for inodes in wanted.values() for inode in inodes}) if wanted else {}
    listeners = []
    for port, inodes in sorted(wanted.items()):
        found = {process for inode in inodes for process in processes.get(inode, [])}
        listeners += [describe(port, process) for process in sorted(found)]
        if not found:
            listeners.append({"port": port, "pid": 0, "process": "", "unit": ""})
    module.exit_json(changed=False, listeners=listeners)


if __name__ == "__main__":
    main()
