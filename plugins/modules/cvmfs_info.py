#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the state of a CernVM-FS client and its repositories."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cvmfs_info
short_description: Tell the state of CernVM-FS repositories
version_added: 0.1.0
description:
  - Tells of each repository whether it is mounted, at which revision, through which proxy, and whether it
    runs with what the files in F(/etc/cvmfs) say now.
  - Everything is asked through the programs of the client, each of which is given up after a while, so that a
    repository that hangs does not hang the module.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
attributes:
  check_mode:
    support: full
    description: Only reads. O(probe) makes an automounter mount the repositories.
options:
  repositories:
    description: Names of repositories. Those that are mounted are told of as well.
    type: list
    elements: str
    default: []
  probe:
    description: Whether to ask each of O(repositories) for its contents with C(cvmfs_config probe).
    type: bool
    default: false
  caches:
    description:
      - Folders of caches to look into. V(managed) is one that the client cleans, V(alien) one that it does
        not.
    type: dict
    default: {}
  servers:
    description:
      - Ways to repositories, each with C(repository), the C(url) of its manifest and C(proxy), empty for
        none. They are tried in this order until one works, for each repository.
    type: list
    elements: dict
    default: []
  hosts:
    description: Names of hosts whose addresses are looked for.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds that each question may take.
    type: float
    default: 60
requirements:
  - the client, for what is told of mounted repositories
seealso:
  - module: gpufarm.cluster.mount_validate
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Ask how two repositories are
  gpufarm.cluster.cvmfs_info:
    repositories: [sft.cern.ch, software.eessi.io]
    probe: true
"""

RETURN = r"""
installed:
  description: Whether the client is installed.
  returned: success
  type: bool
autofs:
  description: Whether an automounter serves F(/cvmfs).
  returned: success
  type: bool
repositories:
  description: The repositories.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
    path:
      description: Where it is or would be mounted.
      type: str
    unit:
      description: The unit of systemd that would be its mount.
      type: str
    mounted:
      description: Whether it is mounted.
      type: bool
    responds:
      description: Whether the client that serves it answers; false when it is not mounted.
      type: bool
    revision:
      description: Its revision; null when it is not told.
      type: int
    proxy:
      description: The proxy in use, V(DIRECT) for none; empty when it is not told.
      type: str
    cache_bytes:
      description: Size of its cache in bytes, which all share by default; null when it is not told.
      type: int
    stale:
      description: Parameters that differ between what it runs with and what the files say.
      type: list
      elements: str
    remount:
      description: Those of RV(repositories[].stale) that a reload does not bring into force.
      type: list
      elements: str
    probe:
      description: V(ok), V(failed), V(late) when there was no answer in time, or V(skipped).
      type: str
caches:
  description: The folders of O(caches), by the same names.
  returned: success
  type: dict
  contains:
    managed:
      description: >-
        C(path); C(exists); C(foreign), names of what belongs to no cache; C(total_mb) and C(free_mb) of the
        file system; C(answers), whether it answered in time.
      type: dict
servers:
  description: Those of O(servers) that were tried.
  returned: success
  type: list
  elements: dict
  contains:
    repository:
      description: The repository.
      type: str
    url:
      description: Address of its manifest.
      type: str
    proxy:
      description: The proxy; empty for none.
      type: str
    status:
      description: Status of the answer by HTTP; null when there was none.
      type: int
    error:
      description: Why the manifest cannot be had this way; empty when it can.
      type: str
nameless:
  description: Those of O(hosts) that have no address.
  returned: success
  type: list
  elements: str
"""

import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cvmfs import read
from ansible_collections.gpufarm.cluster.plugins.module_utils._cvmfs.client import FUSE, ROOT, SOURCE
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table

# Run by a process of its own: what a folder holds, and how large its file system is, or that it would be on.
_LOOK = """\
import json, os, sys
path = sys.argv[1]
exists = os.path.isdir(path)
names = os.listdir(path) if exists else []
while not os.path.isdir(path):
    path = os.path.dirname(path)
size = os.statvfs(path)
print(json.dumps([exists, names, size.f_blocks * size.f_frsize, size.f_bavail * size.f_frsize]))
"""
# Run by a process of its own, as names are looked up without a limit of time: asks for URL through PROXY.
_FETCH = """\
import json, sys
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener
url, proxy = sys.argv[1:]
try:
    with build_opener(ProxyHandler({"http": proxy, "https": proxy} if proxy else {})).open(url) as answer:
        print(json.dumps([answer.status, ""]))
except HTTPError as error:
    print(json.dumps([error.code, f"{error.code} {error.reason}"]))
except (OSError, ValueError) as error:
    print(json.dumps([None, str(getattr(error, "reason", error))]))
"""
_RESOLVE = "import socket, sys; socket.getaddrinfo(sys.argv[1], None)"


class Client:
    """The programs of the client, each asked for a limited time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.config = shutil.which("cvmfs_config") or ""
        self.talk = shutil.which("cvmfs_talk") or ""

    def mounted(self, name: str) -> dict[str, Any]:
        """Ask the client of a mounted repository. After a timeout it is not asked again."""
        answers = []
        for question in ("revision", "proxy info", "cache size", "parameters"):
            done = timed.run([self.talk, "-i", name, *question.split()], self.seconds)
            if done.status != 0:
                return {"responds": False}
            answers.append(done.output)
        files = timed.run([self.config, "showconfig", "-s", name], self.seconds)
        if files.status != 0:
            return {"responds": False}
        running, configured = (read.parse_parameters(text) for text in (answers[3], files.output))
        stale, remount = read.stale(running, configured)
        return {
            "responds": True,
            "revision": read.parse_revision(answers[0]),
            "proxy": read.parse_proxy(answers[1]),
            "cache_bytes": read.parse_cache_size(answers[2]),
            "stale": stale,
            "remount": remount,
        }

    def probe(self, name: str) -> str:
        """Ask for a repository's contents."""
        done = timed.run([self.config, "probe", name], self.seconds)
        return "late" if done.status is None else "failed" if done.status else "ok"


def mounted_repositories(mounts: dict[str, mount_table.Mount]) -> list[str]:
    """Return the names of the repositories that are mounted below /cvmfs."""
    return [
        path[len(ROOT) + 1 :]
        for path, mount in mounts.items()
        if path.startswith(ROOT + "/") and mount.source == SOURCE and mount.kind.split(".")[0] == FUSE
    ]


def fetch(url: str, proxy: str, seconds: float) -> tuple[int | None, str]:
    """Ask for a manifest; return the status of the answer, and why it cannot be had."""
    done = timed.run([sys.executable, "-c", _FETCH, url, proxy], seconds)
    if done.status is None:
        return None, f"no answer within {seconds:g} seconds"
    if done.status != 0:
        return None, (done.errors.strip().splitlines() or ["no answer"])[-1]
    status, error = json.loads(done.output)
    return status, error


def try_ways(ways: list[dict[str, str]], seconds: float) -> list[dict[str, Any]]:
    """Try the ways to one repository until one works, none through a proxy that does not answer."""
    tried: list[dict[str, Any]] = []
    for way in ways:
        if way["proxy"] and any(one["proxy"] == way["proxy"] and one["status"] is None for one in tried):
            continue
        status, error = fetch(way["url"], way["proxy"], seconds)
        tried.append({**way, "status": status, "error": error})
        if not error:
            break
    return tried


def has_address(host: str, seconds: float) -> bool:
    """Tell whether a host has an address. Without a timely answer of the name server it has none."""
    return timed.run([sys.executable, "-c", _RESOLVE, host], seconds).status == 0


def read_cache(path: str, alien: bool, seconds: float) -> dict[str, Any]:
    """Look into the folder of a cache."""
    done = timed.run([sys.executable, "-c", _LOOK, path], seconds)
    if done.status != 0:
        return {"path": path, "answers": False}
    exists, names, total, free = json.loads(done.output)
    return {
        "path": path,
        "answers": True,
        "exists": exists,
        "foreign": read.foreign(names, alien),
        "total_mb": total // 1000000,
        "free_mb": free // 1000000,
    }


def mounts_now() -> dict[str, mount_table.Mount]:
    """Return the mounts of the machine."""
    return mount_table.parse(Path("/proc/self/mountinfo").read_text(errors="replace"))


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "repositories": {"type": "list", "elements": "str", "default": []},
            "probe": {"type": "bool", "default": False},
            "caches": {"type": "dict", "default": {}},
            "servers": {"type": "list", "elements": "dict", "default": []},
            "hosts": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "float", "default": 60},
        },
        supports_check_mode=True,
    )
    client = Client(module.params["timeout"])
    ways: dict[str, list[dict[str, str]]] = {}
    for way in module.params["servers"]:
        ways.setdefault(way["repository"], []).append(way)
    asked = module.params["repositories"]
    installed = bool(client.config and client.talk)
    try:
        with ThreadPoolExecutor(max_workers=4) as pool:
            probes: dict[str, str] = {}
            if module.params["probe"] and installed:
                asking = {name: pool.submit(client.probe, name) for name in asked}
                probes = {name: answer.result() for name, answer in asking.items()}
            mounts = mounts_now()
            there = mounted_repositories(mounts)
            telling = {name: pool.submit(client.mounted, name) for name in there if installed}
            details = {name: answer.result() for name, answer in telling.items()}
            trying = [pool.submit(try_ways, each, client.seconds) for each in ways.values()]
            looking = {
                host: pool.submit(has_address, host, client.seconds) for host in module.params["hosts"]
            }
            servers = [way for answer in trying for way in answer.result()]
            nameless = [host for host, answer in looking.items() if not answer.result()]
        caches = {
            name: read_cache(str(path), name == "alien", client.seconds)
            for name, path in module.params["caches"].items()
        }
    except OSError as error:
        module.fail_json(msg=f"The client cannot be asked: {error}.")
    unknown: dict[str, Any] = {"responds": False, "revision": None, "proxy": "", "cache_bytes": None}
    module.exit_json(
        changed=False,
        installed=installed,
        autofs=ROOT in mounts and mounts[ROOT].kind == "autofs",
        repositories=[
            {
                "name": name,
                "path": f"{ROOT}/{name}",
                "unit": mount_table.unit_name(f"{ROOT}/{name}", "mount"),
                "mounted": name in there,
                **unknown,
                "stale": [],
                "remount": [],
                **details.get(name, {}),
                "probe": probes.get(name, "skipped"),
            }
            for name in dict.fromkeys([*asked, *there])
        ],
        caches=caches,
        servers=servers,
        nameless=nameless,
    )


if __name__ == "__main__":
    main()
