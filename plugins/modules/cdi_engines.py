#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: let the container engines of a machine read CDI specifications."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cdi_engines
short_description: Let container engines read CDI specifications
version_added: 0.1.0
description:
  - Switches the Container Device Interface (CDI) on in the configuration of the container engines that are
    installed, and restarts those whose configuration changed. All else in it stays. Podman needs no switch.
  - Docker is not restarted while it runs containers that would not outlive it, unless told so.
  - An engine that does not come up with its new configuration gets the former one back.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Shows the configuration before and after.
options:
  engines:
    description: The engines to see to; those that are not installed are left out.
    type: list
    elements: str
    choices: [containerd, docker, podman]
    required: true
  stop_containers:
    description: Whether Docker is restarted even if that stops containers.
    type: bool
    default: false
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Let Docker and Podman read specifications
  gpufarm.cluster.cdi_engines:
    engines: [docker, podman]
"""

RETURN = r"""
engines:
  description: Versions of the engines that are installed, by name.
  returned: success
  type: dict
  sample: {podman: 5.4.2}
"""

import contextlib
import http.client
import json
import shutil
import socket
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cdi import engines as cdi_engines
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.module_files import replace_file

DOCKER = Path("/etc/docker/daemon.json")
DOCKER_SOCKET = "/run/docker.sock"
CONTAINERD = Path("/etc/containerd/config.toml")
PROGRAMS = {"containerd": "containerd", "docker": "dockerd", "podman": "podman"}


class Problem(Exception):
    """The module cannot go on; the text is one sentence for a user."""


class DockerConnection(http.client.HTTPConnection):
    """A connection to the socket of the Docker daemon."""

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(DOCKER_SOCKET)


def docker_info() -> dict[str, Any] | None:
    """Return what the Docker daemon tells of itself (Engine API, GET /info); None when it does not run."""
    connection = DockerConnection("localhost", timeout=30)
    try:
        connection.request("GET", "/info")
        answer = connection.getresponse()
        if answer.status != 200:
            raise Problem(f"The Docker daemon answers {answer.status} to /info: look at its log.")
        info: dict[str, Any] = json.loads(answer.read())
        return info
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Problem(f"The Docker daemon does not tell its state ({error}): look at its log.") from error
    finally:
        connection.close()


class Engines:
    """The engines of this machine."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def run(self, *command: str) -> str:
        """Return what a command prints."""
        code, out, err = self.module.run_command(list(command), environ_update={"LC_ALL": "C"})
        if code:
            raise Problem(f"'{' '.join(command)}' failed: {(err or out).strip().rstrip('.')}.")
        return str(out)

    def versions(self) -> dict[str, str]:
        """Return the versions of the engines that are installed."""
        found = {}
        for engine in sorted(self.module.params["engines"]):
            program = shutil.which(PROGRAMS[engine], path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
            if program:
                found[engine] = cdi_engines.version(engine, self.run(program, "--version"))
        return found

    def docker(self) -> tuple[str, str, bool]:
        """Return Docker's configuration before and after, and whether the daemon must be started anew."""
        before = read(DOCKER)
        info = docker_info()
        if info is not None and info.get("CDISpecDirs"):
            return before, before, False
        try:
            after = cdi_engines.docker_with_cdi(before)
        except cdi_engines.EngineProblem as problem:
            raise Problem(f"{DOCKER} cannot be changed. {problem}") from problem
        if info is not None:
            count = info.get("ContainersRunning", 0)
            if count and not info.get("LiveRestoreEnabled") and not self.module.params["stop_containers"]:
                raise Problem(
                    f"Docker must be restarted to read CDI specifications, which stops the {count}"
                    f" containers that it runs: stop them, set live-restore in {DOCKER}, or allow it with"
                    " stop_containers."
                )
        # A run that was cut off may have left a daemon that does not know its configuration yet.
        return before, after, info is not None

    def containerd(self) -> tuple[str, str, bool]:
        """Return containerd's configuration before and after, and whether it must be started anew."""
        before = read(CONTAINERD)
        effective = (
            self.containerd_dump(str(CONTAINERD)) if before else self.run("containerd", "config", "default")
        )
        plugin = cdi_engines.containerd_plugin(effective)
        if not plugin:
            return before, before, False
        after = cdi_engines.containerd_with_cdi(before, plugin)
        trial = Path(self.module.tmpdir, "config.toml")
        trial.write_text(after, encoding="utf-8")
        if not cdi_engines.only_the_switch_differs(effective, self.containerd_dump(str(trial))):
            raise Problem(
                f"{CONTAINERD} is written in a way that cannot be edited safely: set enable_cdi = true in"
                f" [{plugin}] yourself."
            )
        return before, after, True

    def containerd_dump(self, file: str) -> str:
        """Return the effective configuration that a file makes."""
        return self.run("containerd", "--config", file, "config", "dump")

    def put(self, unit: str, path: Path, before: str, after: str) -> None:
        """Write a configuration and start the engine anew, with the former one if that fails."""
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o644
        self.write(path, after, mode)
        try:
            self.restart("try-restart", unit)
        except Problem as problem:
            if before:
                self.write(path, before, mode)
            else:
                path.unlink()
            with contextlib.suppress(Problem):
                self.restart("restart", unit)
            raise Problem(f"{problem} The former {path} was put back.") from problem

    def restart(self, command: str, unit: str) -> None:
        """Restart an engine, also one that has been restarted often in a short time."""
        # Docker's unit permits three starts in a minute, and systemd counts those of administrators too.
        with contextlib.suppress(Problem):
            self.run("systemctl", "reset-failed", unit)
        self.run("systemctl", command, unit)

    def write(self, path: Path, content: str, mode: int) -> None:
        """Replace a file as a whole."""
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        replace_file(self.module, path, content, mode)


def read(path: Path) -> str:
    """Return what a file holds; nothing when there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def main() -> None:
    """Run the module."""
    choices = sorted(PROGRAMS)
    module = AnsibleModule(
        argument_spec={
            "engines": {"type": "list", "elements": "str", "choices": choices, "required": True},
            "stop_containers": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    engines = Engines(module)
    changed = False
    diffs: list[dict[str, str]] = []
    try:
        versions = engines.versions()
        # All engines are looked at before any is touched.
        plans = [
            (name, path, plan())
            for name, path, plan in (
                ("containerd", CONTAINERD, engines.containerd),
                ("docker", DOCKER, engines.docker),
            )
            if name in versions
        ]
        for name, path, (before, after, restart) in plans:
            if before == after and not restart:
                continue
            changed = True
            shown = {"before_header": str(path), "after_header": str(path)}
            diffs.append({**shown, "before": before, "after": after})
            if not module.check_mode:
                engines.put(name + ".service", path, before, after)
    except (Problem, cdi_engines.EngineProblem, OSError) as problem:
        module.fail_json(msg=str(problem))
    module.exit_json(changed=changed, engines=versions, diff=diffs)


if __name__ == "__main__":
    main()
