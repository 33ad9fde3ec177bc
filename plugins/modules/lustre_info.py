#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the state of Lustre on a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lustre_info
short_description: Tell the state of Lustre on a machine
version_added: 0.1.0
description:
  - Tells for which kernels there are modules, how LNet is set up, which file systems are mounted, and how
    their targets are.
  - Everything that could hang is asked by a process of its own that is given up after a while, so a server
    that is gone is a finding and does not hang the module.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  kernels:
    description: Releases of kernels to tell about; if empty, the running one and those that can be booted.
    type: list
    elements: str
    default: []
  servers:
    description:
      - Addresses to try a connection to, at the port of LNet. Names are looked up.
    type: list
    elements: str
    default: []
  names:
    description: Names of hosts whose IPv4 addresses are looked up.
    type: list
    elements: str
    default: []
  targets:
    description: Whether to ask how the targets of mounted file systems are.
    type: bool
    default: true
  timeout:
    description: Seconds that each question may take.
    type: float
    default: 10
requirements:
  - PyYAML, for what is told of LNet
seealso:
  - module: gpufarm.cluster.mount_validate
  - module: gpufarm.cluster.lnet_configuration
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Ask how Lustre is
  gpufarm.cluster.lustre_info:
  register: lustre

- name: Refuse to go on without a full file system
  ansible.builtin.assert:
    that: lustre.mounts | map(attribute='healthy') is all
"""

RETURN = r"""
installed:
  description: Whether Lustre's programs are installed.
  returned: success
  type: bool
kernels:
  description: The kernels.
  returned: success
  type: list
  elements: dict
  contains:
    release:
      description: Its release.
      type: str
    running:
      description: Whether it runs.
      type: bool
    version:
      description: Version of Lustre's module for it; empty when it has none.
      type: str
    built_for:
      description: Release of the kernel that the module was built for.
      type: str
    fits:
      description: Whether there is a module that was built for it.
      type: bool
    headers:
      description: Whether a module could be built for it.
      type: bool
    drivers:
      description: Modules of LNet's networks for it, such as V(ksocklnd) and V(ko2iblnd).
      type: list
      elements: str
    infiniband:
      description:
        - Where its modules of InfiniBand are from, V(kernel), or V(other) such as a vendor's; empty without
          any.
      type: str
loaded_version:
  description: Version of the module that is loaded; empty when none is.
  returned: success
  type: str
interfaces:
  description: Network interfaces of the machine.
  returned: success
  type: dict
  contains:
    addresses:
      description: IPv4 addresses.
      type: list
    infiniband:
      description: Whether it is one of InfiniBand.
      type: bool
    up:
      description: Whether it has a carrier.
      type: bool
lnet:
  description: LNet.
  returned: success
  type: dict
  contains:
    running:
      description: Whether it runs.
      type: bool
    answers:
      description: Whether lnetctl told in time how LNet is, or that it does not run.
      type: bool
    written_by:
      description:
        - The role that has written C(/etc/lnet.conf), V(other) when somebody else has, empty when it says
          nothing.
      type: str
    networks:
      description: Network, interface, NID and status of each interface.
      type: list
      elements: dict
names:
  description: For each of O(names) its addresses, none when it is not known.
  returned: success
  type: dict
services:
  description: States of the targets that the machine serves, by name, V(UP) when all is well.
  returned: success
  type: dict
quotas:
  description: Kinds of quota that these targets enforce, such as V(ugp), by name.
  returned: success
  type: dict
servers:
  description: For each of O(servers) an empty text when it takes connections, or why it does not.
  returned: success
  type: dict
mounts:
  description: Mounted file systems.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: Where it is mounted.
      type: str
    unit:
      description: Name that systemd gives the mount.
      type: str
    source:
      description: Mounted file system.
      type: str
    file_system:
      description: Name of the file system.
      type: str
    answers:
      description: Whether its servers answered in time; null when they were not asked.
      type: bool
    healthy:
      description: Whether it answers, all its targets are active and none has a complaint.
      type: bool
    targets:
      description: Its targets with C(name), C(kind), C(state), C(total_kb), C(free_kb), C(complaints).
      type: list
      elements: dict
"""

import errno
import json
import os
import shutil
import socket
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.io import machine
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import (
    drivers,
    lnet,
    nid,
    read,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import (
    machine as lustre_machine,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table

try:
    import yaml
except ImportError:
    YAML_PROBLEM = traceback.format_exc()
else:
    YAML_PROBLEM = ""

PORT = 988  # Lustre Operations Manual, "Configuring LNet": accept_port
FOLDERS = "/usr/sbin:/usr/bin:/sbin:/bin"


def program(name: str) -> str:
    """Return the path of a program; empty when it is not installed."""
    return shutil.which(name, path=FOLDERS) or ""


def read_kernels(releases: list[str], seconds: float) -> list[dict[str, Any]]:
    """Return what there is for kernels."""
    running = os.uname().release
    found = releases or list(dict.fromkeys([*machine.installed_kernels(Path("/")), running]))
    modinfo = program("modinfo")

    def told(release: str, field: str, module: str) -> str:
        """Return the first word that modinfo tells of a module; empty when there is none."""
        done = timed.run([modinfo, "-k", release, "-F", field, module], seconds) if modinfo else None
        return (done.output.split() or [""])[0] if done and done.status == 0 else ""

    result = []
    for release in found:
        vermagic = told(release, "vermagic", "lustre")
        core = told(release, "filename", "ib_core")
        result.append(
            {
                "release": release,
                "running": release == running,
                "version": told(release, "version", "lustre"),
                "built_for": vermagic,
                "fits": vermagic == release,
                "headers": (Path("/lib/modules") / release / "build" / "Makefile").exists(),
                "drivers": [one for one in drivers.MODULES if told(release, "vermagic", one) == release],
                "infiniband": core and ("kernel" if f"/{release}/kernel/" in core else "other"),
            }
        )
    return result


def read_interfaces(seconds: float) -> dict[str, dict[str, Any]]:
    """Return the network interfaces."""
    found: dict[str, dict[str, Any]] = {}
    for folder in sorted(Path("/sys/class/net").iterdir()):
        kind, carrier = folder / "type", folder / "operstate"
        found[folder.name] = {
            "addresses": [],
            # Linux, include/uapi/linux/if_arp.h: ARPHRD_INFINIBAND
            "infiniband": kind.exists() and kind.read_text().strip() == "32",
            "up": carrier.exists() and carrier.read_text().strip() in ("up", "unknown"),
        }
    done = timed.run([program("ip") or "ip", "-json", "-4", "address", "show"], seconds)
    for link in json.loads(done.output or "[]") if done.status == 0 else []:
        if link.get("ifname") in found:
            found[link["ifname"]]["addresses"] = [one["local"] for one in link.get("addr_info", [])]
    return found


def look_up(name: str, seconds: float) -> list[str]:
    """Return the IPv4 addresses of a host, sorted."""
    done = timed.run([program("getent") or "getent", "ahostsv4", name], seconds)
    # getent(1): 2 when the name is not known
    if done.status not in (0, 2):
        raise OSError(errno.EIO, f"{name} cannot be looked up")
    return sorted(read.parse_hosts(done.output))


def written_by() -> str:
    """Return who has written what LNet starts with."""
    path = Path(lustre_machine.LNET_FILE)
    return lustre_machine.writer(path.read_text(errors="replace") if path.exists() else "")


def read_lnet(seconds: float) -> dict[str, Any]:
    """Return how LNet is set up."""
    lnetctl = program("lnetctl")
    if not lnetctl:
        return {"running": False, "answers": True, "networks": []}
    done = timed.run([lnetctl, "net", "show"], seconds)
    if done.status is None:
        return {"running": False, "answers": False, "networks": []}
    if done.status != 0:
        return {"running": False, "answers": lnet.is_down(done.output + done.errors), "networks": []}
    networks = [
        {
            "network": net["net type"],
            "interface": next(iter((one.get("interfaces") or {}).values()), ""),
            "nid": one["nid"],
            "status": one.get("status", ""),
        }
        for net in (yaml.safe_load(done.output) or {}).get("net") or []
        for one in net.get("local NI(s)") or []
        if net.get("net type") != "lo"
    ]
    return {"running": True, "answers": True, "networks": networks}


def try_server(address: str, seconds: float) -> str:
    """Connect to LNet's port of a server; return why that does not work."""
    try:
        with socket.create_connection((address, PORT), seconds):
            return ""
    except OSError as error:
        return error.strerror or str(error) or "no answer"


def read_mount(mount: mount_table.Mount, asked: bool, seconds: float) -> dict[str, Any]:
    """Return how a mounted file system is."""
    device = nid.parse_device(mount.source)
    told: dict[str, Any] = {
        "path": mount.path,
        "unit": mount_table.unit_name(mount.path, "mount"),
        "source": mount.source,
        "file_system": device.file_system,
        "answers": None,
        "healthy": None,
        "targets": [],
    }
    lfs = program("lfs")
    if not asked or not lfs:
        return told
    df = timed.run([lfs, "df", mount.path], seconds)
    if df.status is None:
        return {**told, "answers": False, "healthy": False}
    targets = read.parse_df(df.output, device.file_system)
    check = timed.run([lfs, "check", "all", mount.path], seconds)
    states = read.parse_check(check.output + check.errors)
    targets = [
        one._replace(state=states.get(one.name, one.state)) if one.state == "active" else one
        for one in targets
    ]
    fine = bool(targets) and all(one.state == "active" and not one.complaints for one in targets)
    answers = df.status == 0 and check.status is not None
    return {
        **told,
        "answers": answers,
        "healthy": answers and fine,
        "targets": [one._asdict() for one in targets],
    }


def read_services(seconds: float) -> dict[str, dict[str, str]]:
    """Return the targets that the machine serves, and the quotas that they enforce."""
    lctl = program("lctl")
    if not lctl:
        return {"services": {}, "quotas": {}}
    devices = timed.run([lctl, "dl"], seconds)
    services = read.parse_devices(devices.output) if devices.status == 0 else {}
    quotas = timed.run([lctl, "get_param", "osd-*.*.quota_slave.info"], seconds) if services else devices
    return {"services": services, "quotas": read.parse_quotas(quotas.output) if services else {}}


def loaded_version() -> str:
    """Return the version of the loaded module."""
    for path in (Path("/sys/fs/lustre/version"), Path("/sys/module/lustre/version")):
        if path.exists():
            return path.read_text().strip()
    return ""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kernels": {"type": "list", "elements": "str", "default": []},
            "servers": {"type": "list", "elements": "str", "default": []},
            "names": {"type": "list", "elements": "str", "default": []},
            "targets": {"type": "bool", "default": True},
            "timeout": {"type": "float", "default": 10},
        },
        supports_check_mode=True,
    )
    seconds = module.params["timeout"]
    installed = bool(program("lnetctl") and program("lctl"))
    if YAML_PROBLEM and installed:
        module.fail_json(msg=missing_required_lib("PyYAML"), exception=YAML_PROBLEM)
    try:
        table = mount_table.parse(Path("/proc/self/mountinfo").read_text(errors="replace"))
        mounts = [one for one in table.values() if nid.is_device(one.source)]
        with ThreadPoolExecutor(max_workers=8) as pool:
            asking = pool.submit(read_lnet, seconds)
            telling = [pool.submit(read_mount, one, module.params["targets"], seconds) for one in mounts]
            trying = {one: pool.submit(try_server, one, seconds) for one in module.params["servers"]}
            looking = {one: pool.submit(look_up, one, seconds) for one in module.params["names"]}
            told: list[dict[str, Any]] = [one.result() for one in telling]
            servers: dict[str, str | None] = {name: one.result() for name, one in trying.items()}
            module.exit_json(
                changed=False,
                installed=installed,
                kernels=read_kernels(module.params["kernels"], seconds),
                loaded_version=loaded_version(),
                interfaces=read_interfaces(seconds),
                lnet={**asking.result(), "written_by": written_by()},
                names={name: one.result() for name, one in looking.items()},
                servers=servers,
                mounts=told,
                **read_services(seconds),
            )
    except OSError as error:
        module.fail_json(msg=f"Lustre cannot be asked: {error}.")


if __name__ == "__main__":
    main()
