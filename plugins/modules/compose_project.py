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
  - Brings the containers of a project in line with its Compose file, and waits until all of them run, are
    healthy if they have a health check, or have ended with 0.
  - Nothing is done if they are in line. Images that are there are not pulled again.
  - Containers of a project of the same name that were made from another file are left alone, and refused.
  - Removal takes the containers and networks of the project. Its named volumes stay.
  - It takes Compose's plug-in of Docker, or else the program C(docker-compose).
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Shows which services are changed, and why.
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
services:
  description: Each service with its image, its state and the ports of the machine that lead to it.
  returned: success
  type: dict
  sample: {web: {image: "nginx:1.27", state: running, ports: ["0.0.0.0:8080->80/tcp"]}}
"""

import json
import shutil
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._compose import project

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"


class Problem(Exception):
    """The module cannot go on; the text is one sentence for a user."""


class Project:
    """The project on this machine."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.name: str = module.params["name"]
        self.file: str = module.params["file"]
        self.docker = shutil.which("docker", path=PATH)

    def run(self, *command: str, **environment: str) -> str:
        """Return what a command prints."""
        variables = {"LC_ALL": "C", "PATH": PATH, **environment}
        code, out, err = self.module.run_command(list(command), environ_update=variables)
        if code:
            lines = (err or out).strip().splitlines() or ["no reason given"]
            raise Problem(
                f"'{' '.join(command[:2])}' of the project {self.name} failed: {lines[-1].rstrip('.')}."
            )
        return str(out)

    def compose(self, *arguments: str) -> str:
        """Return what Compose prints."""
        plugin = self.docker and self.module.run_command([self.docker, "compose", "version"])[0] == 0
        program = (
            [str(self.docker), "compose"] if plugin else [shutil.which("docker-compose", path=PATH) or ""]
        )
        if not program[0]:
            raise Problem("There is no Compose on this machine: install docker-compose, or Docker's plug-in.")
        environment = {name: str(value) for name, value in self.module.params["secret_env"].items()}
        return self.run(*program, "--project-name", self.name, "--file", self.file, *arguments, **environment)

    def listed(self, kind: str, *options: str) -> list[str]:
        """Return the ids of the project's containers or networks."""
        if not self.docker:
            return []
        mark = f"label={project.LABEL}.project={self.name}"
        return self.run(self.docker, kind, "ls", *options, "--quiet", "--filter", mark).split()

    def containers(self) -> list[project.Container]:
        """Return the containers of the project."""
        ids = self.listed("container", "--all")
        return project.containers(json.loads(self.run(str(self.docker), "inspect", *ids)) if ids else [])

    def own(self) -> list[project.Container]:
        """Return the containers; refuse those of others."""
        found = self.containers()
        others = sorted({one.files for one in found} - {self.file})
        if others:
            raise Problem(
                f"Containers of a project {self.name} are there that were made from "
                f"{others[0] or 'another file'}: take another name, or remove them."
            )
        return found

    def differences(self) -> list[str]:
        """Return what `up` would change."""
        if not (self.docker and Path(self.file).exists()):  # in check mode on a new machine
            return [f"{self.name} is missing"]
        return project.differences(project.digests(self.compose("config", "--hash", "*")), self.own())

    def wait(self) -> list[project.Container]:
        """Wait until all containers are well, and return them."""
        end = time.monotonic() + self.module.params["timeout"]
        while True:
            found = self.own()
            failed = [one.told() for one in found if one.has_failed and one.status != "created"]
            if not failed and all(one.is_well for one in found):
                return found
            if failed or time.monotonic() > end:
                told = failed or [one.told() for one in found if not one.is_well]
                raise Problem(f"The project {self.name} does not run: {', '.join(told)}; look at its log.")
            time.sleep(1)

    def remove(self) -> list[str]:
        """Return what is removed, and remove it unless in check mode."""
        found = self.own()
        networks = self.listed("network")
        if not self.module.check_mode:
            if found:
                self.run(str(self.docker), "rm", "--force", *(one.id for one in found))
            if networks:
                self.run(str(self.docker), "network", "rm", *networks)
        return [f"{one.service} is removed" for one in found] + ["networks are removed"] * bool(networks)


def apply(module: AnsibleModule) -> dict[str, Any]:
    """Bring the project in line, and return the result."""
    found = Project(module)
    if module.params["state"] == "absent":
        changes = found.remove()
        containers: list[project.Container] = []
    else:
        changes = found.differences()
        if changes and not module.check_mode:
            found.compose("up", "--detach", "--remove-orphans")
        containers = found.containers() if module.check_mode else found.wait()
    services = {
        one.service: {"image": one.image, "state": one.health or one.status, "ports": list(one.ports)}
        for one in containers
    }
    diff = {"before": "", "after": "".join(f"{line}\n" for line in changes)}
    return {"changed": bool(changes), "services": services, "diff": diff if changes else {}}


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
