#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the containers of a Compose project."""

from __future__ import annotations

DOCUMENTATION = r"""
module: compose_project
short_description: Start, change or remove the containers of a Compose project
version_added: 0.1.0
description:
  - Brings the containers of a project in line with its Compose file, and waits until all of them run and are
    healthy, if they have a health check, or have ended with 0 and are not to be started again.
  - Nothing is done if they are in line. Images that are there are not pulled again.
  - A digest of what was applied is written down beside the Compose file.
  - Containers of a project of the same name that were made from another file are left alone, and refused.
  - Removal stops the containers, gives them time to end, and takes them and the networks of the project. Its
    named volumes stay.
  - It takes Compose's plug-in of Docker, or else the program C(docker-compose).
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Shows what is changed, and why.
options:
  name:
    description: Name of the project.
    type: str
    required: true
  file:
    description: Absolute path of the Compose file.
    type: path
    required: true
  state:
    description: Whether the containers are there.
    type: str
    choices: [present, absent]
    default: present
  secret_env:
    description: Values of the variables in the file, which are shown nowhere.
    type: dict
    default: {}
  timeout:
    description: Seconds to wait for the containers.
    type: int
    default: 300
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Start the project
  gpufarm.cluster.compose_project:
    name: tracking
    file: /etc/tracking/compose.yaml
    secret_env: {PASSWORD: "{{ vault_tracking_password }}"}
"""

RETURN = r"""
containers:
  description: Each container with its service, its image, its state and the ports that lead to it.
  returned: success
  type: dict
  sample:
    tracking-web-1: {service: web, image: "nginx:1.27", state: running, ports: ["0.0.0.0:8080->80/tcp"]}
"""

import functools
import json
import os
import shutil
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._compose import project
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.module_files import (
    replace_file,
    temporary_file,
)

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
# Seconds in which a container that ends at once is started again; Docker waits 100 ms at first.
STEADY = 3


class Problem(Exception):
    """The module cannot go on; the text is one sentence for a user."""


class Project:
    """The project on this machine."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.name: str = module.params["name"]
        self.file = Path(module.params["file"])
        self.memory = self.file.with_name("applied.json")
        self.docker = shutil.which("docker", path=PATH)
        if self.docker and module.check_mode and module.run_command([self.docker, "version"])[0]:
            self.docker = None  # the role starts it later
        self.mark = f"label={project.LABEL}.project={self.name}"

    def run(self, *command: str, without: Collection[str] = ()) -> str:
        """Return what a command prints; variables in `without` are not in its environment."""
        for name in without:
            os.environ.pop(name, None)
        environment = {"LC_ALL": "C", "PATH": PATH}.items()
        code, out, err = self.module.run_command(
            list(command), environ_update={name: value for name, value in environment if name not in without}
        )
        if code:
            lines = (err or out).strip().splitlines() or ["no reason given"]
            raise Problem(
                f"'{command[0]}' of the project {self.name} failed: {lines[-1].strip().rstrip('.')}."
            )
        return str(out)

    @functools.cached_property
    def program(self) -> tuple[list[str], int]:
        """The command of Compose and its major version."""
        plugin = self.docker and self.module.run_command([self.docker, "compose", "version"])[0] == 0
        command = (
            [str(self.docker), "compose"] if plugin else [shutil.which("docker-compose", path=PATH) or ""]
        )
        if not command[0]:
            raise Problem("There is no Compose on this machine: install docker-compose, or Docker's plug-in.")
        version = self.run(*command, "version", "--short").strip().lstrip("v")
        return command, int(version.partition(".")[0])

    def compose(self, *arguments: str) -> str:
        """Return what Compose prints."""
        command, major = self.program
        values = {name: str(value) for name, value in self.module.params["secret_env"].items()}
        # In a file and not in its environment, where some names would change what the program itself does.
        # Variables of its environment, such as USER, would go before those of the file.
        file = temporary_file(self.module, project.dotenv(values, major))
        options = ["--project-name", self.name, "--file", str(self.file), "--env-file", file]
        return self.run(*command, *options, *arguments, without=values.keys())

    def listed(self, kind: str, *options: str) -> list[str]:
        """Return the ids of the project's containers or networks."""
        if not self.docker:
            return []
        return self.run(self.docker, kind, "ls", *options, "--quiet", "--filter", self.mark).split()

    def inspected(self, *ids: str) -> list[dict[str, Any]]:
        """Return what Docker tells of containers or networks."""
        told: list[dict[str, Any]] = json.loads(self.run(str(self.docker), "inspect", *ids)) if ids else []
        return told

    def containers(self) -> list[project.Container]:
        """Return the containers of the project; refuse those of others."""
        found = project.containers(self.inspected(*self.listed("container", "--all")))
        others = sorted({one.files for one in found} - {str(self.file)})
        if others:
            raise Problem(
                f"Containers of a project {self.name} are there that were made from "
                f"{others[0] or 'another file'}: take another name, or remove them."
            )
        return found

    def differences(self) -> list[str]:
        """Return what is not as it was applied, or has to be applied anew."""
        if not (self.docker and self.file.exists()):  # in check mode on a new machine
            return ["nothing was applied"]
        before = self.memory.read_text(encoding="utf-8") if self.memory.exists() else ""
        return project.differences(self.compose("config"), before, self.containers())

    def apply(self) -> None:
        """Have Compose make what is missing, wait for it, and write down what was applied."""
        self.compose("up", "--detach", "--remove-orphans")
        found = self.wait()
        replace_file(self.module, self.memory, project.applied(self.compose("config"), found), 0o600)

    def wait(self) -> list[project.Container]:
        """Wait until all containers are well and are not started again and again; return them."""
        end = time.monotonic() + self.module.params["timeout"]
        before: list[tuple[str, int]] = []
        while True:
            found = [one for one in self.containers() if not one.is_single]
            failed = [one.told() for one in found if one.has_failed]
            starts = [(one.id, one.restarts) for one in found]
            is_well = all(one.is_well for one in found)
            if is_well and starts == before:
                return found
            if failed or time.monotonic() > end:
                ill = (
                    failed
                    or [one.told() for one in found if not one.is_well]
                    or ["containers end again and again"]
                )
                raise Problem(f"The project {self.name} does not run: {', '.join(ill)}; look at its log.")
            before = starts if is_well else []
            time.sleep(STEADY if is_well else 1)

    def remove(self) -> list[str]:
        """Return what is removed, and remove it unless in check mode."""
        found = self.containers()
        networks = self.inspected(*self.listed("network"))
        if not self.module.check_mode:
            own = {one.id for one in found}
            # The role looks for containers of others in check mode; a proxy in the network may not stop it.
            for network in networks:
                others = [one["Name"] for id, one in network["Containers"].items() if id not in own]
                if others:
                    raise Problem(
                        f"The network {network['Name']} of the project {self.name} is used by {others[0]}: "
                        "disconnect that container first."
                    )
            if found:
                self.run(str(self.docker), "stop", *(one.id for one in found))
                self.run(str(self.docker), "rm", "--force", *(one.id for one in found))
            if networks:
                self.run(str(self.docker), "network", "rm", *(network["Id"] for network in networks))
            self.memory.unlink(missing_ok=True)
        return [f"{one.name} is removed" for one in found] + [f"{one['Name']} is removed" for one in networks]


def apply(module: AnsibleModule) -> dict[str, Any]:
    """Bring the project in line, and return the result."""
    found = Project(module)
    if module.params["state"] == "absent":
        changes, there = found.remove(), []
    else:
        changes = found.differences()
        if changes and not module.check_mode:
            found.apply()
        there = found.containers()
    containers = {
        one.name: {
            "service": one.service,
            "image": one.image,
            "state": one.health or one.status,
            "ports": list(one.ports),
        }
        for one in there
    }
    diff = {"before": "", "after": "".join(f"{line}\n" for line in changes)}
    return {"changed": bool(changes), "containers": containers, "diff": diff if changes else {}}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "file": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "secret_env": {"type": "dict", "default": {}, "no_log": True},
            "timeout": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**apply(module))
    except Problem as problem:
        module.fail_json(msg=str(problem))


if __name__ == "__main__":
    main()
