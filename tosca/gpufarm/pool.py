# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of an Ansible inventory: which there are and what they have."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpufarm import ansible
from gpufarm.errors import GpufarmError, Interrupted

# Text that Ansible wraps around the reason: the plugin, and how to see more.
_WRAPPING = re.compile(
    r"Task failed: (?!Module)|Failed to connect to the host via ssh: (ssh: )?"
    r"|Finalization of task args for '[^']*' failed: "
    r"|Error while resolving value for '[^']*': |The lookup plugin '[^']*' failed: | Use -v+ to see .*$"
)
_PROBE = Path(__file__).parent / "probe"


@dataclass(frozen=True)
class Gpu:
    """A GPU. Facts that need the driver are None before it is installed.

    Attributes:
        model: name, such as "NVIDIA A100-SXM4-80GB".
        memory: in bytes.
        mig_capable: whether it supports Multi-Instance GPU.
    """

    model: str | None
    memory: int | None
    mig_capable: bool | None


@dataclass(frozen=True)
class Machine:
    """A machine that was looked at.

    Attributes:
        host: its name in the inventory.
        address: under which Ansible reaches it.
        cpus: number of CPUs.
        memory: in bytes.
        disk: size of the root file system in bytes.
        distribution: ID of os-release, such as "debian".
        version: VERSION_ID of os-release.
        gpus: the NVIDIA GPUs.
        architecture: of its processors, such as "x86_64"; empty if it did not say.
    """

    host: str
    address: str
    cpus: int
    memory: int
    disk: int
    distribution: str
    version: str
    gpus: tuple[Gpu, ...]
    architecture: str = ""


@dataclass(frozen=True)
class Pool:
    """Facts gathered from an inventory.

    Attributes:
        path: the inventory.
        machines: those that answered, by host.
        silent: why each of the others did not answer, by host.
        hosts: variables of every host of the inventory.
        asked: hosts that were asked now; what is said about the others is remembered.
    """

    path: Path
    machines: dict[str, Machine]
    silent: dict[str, str]
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()

    @property
    def remembered(self) -> bool:
        """Whether anything about it was not asked now."""
        return not self.asked.issuperset({*self.machines, *self.silent})


def address(host: str, variables: dict[str, Any]) -> str:
    """Find the address of a host.

    Args:
        host: its name in the inventory.
        variables: of the host.

    Returns:
        ``ansible_host``, or the name.
    """
    return str(variables.get("ansible_host") or host)


def machine(host: str, reached: str, answer: str) -> Machine:
    """Read what a machine says of itself.

    Args:
        host: its name in the inventory.
        reached: its address.
        answer: what probe.py printed; its JSON is the last line, after any greeting of the machine.

    Returns:
        The machine.

    Raises:
        ValueError: that is something else.
    """
    lines = [line for line in answer.splitlines() if line.startswith("{")]
    try:
        found = json.loads(lines[-1])
        gpus = tuple(Gpu(**gpu) for gpu in found.pop("gpus"))
        return Machine(host=host, address=reached, gpus=gpus, **found)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(answer) from error


def look(path: Path, hosts: Mapping[str, dict[str, Any]]) -> Pool:
    """Look at machines of an inventory, with one run of Ansible that changes nothing.

    Args:
        path: the inventory.
        hosts: variables of each host to look at.

    Returns:
        The gathered facts.

    Raises:
        GpufarmError: Ansible fails as a whole.
        Interrupted: a signal stopped it.
    """
    machines: dict[str, Machine] = {}
    silent: dict[str, str] = {}
    output: list[str] = []

    def on_event(event: dict[str, Any]) -> None:
        data = event.get("event_data", {})
        host, result = data.get("host"), data.get("res", {})
        output.append(event.get("stdout") or "")
        if event["event"] == "runner_on_ok":
            try:
                machines[host] = machine(host, address(host, hosts[host]), str(result.get("stdout", "")))
            except ValueError:
                silent[host] = f"it answers {str(result.get('stdout', ''))[-200:]!r} to what it has"
        elif event["event"] in ("runner_on_unreachable", "runner_on_failed"):
            silent[host] = reason(result)

    with tempfile.TemporaryDirectory(prefix="gpufarm-") as directory:
        playbook = Path(directory) / "look.yml"
        playbook.write_text(
            yaml.safe_dump(
                [
                    {
                        "import_playbook": str(_PROBE / "probe.yml"),
                        "vars": {"gpufarm_hosts": sorted(hosts), "gpufarm_probe": str(_PROBE / "probe.py")},
                    }
                ]
            )
        )
        with ansible.signals() as stop:
            status = ansible.play(playbook, [path], Path(directory), on_event, stop)
    if status == "canceled":
        raise Interrupted("interrupted while looking at the pool; nothing was changed")
    if not machines and not silent:
        raise GpufarmError(
            f"{path}: the machines cannot be looked at: {ansible.complaint(chr(10).join(output))}"
        )
    return Pool(path, machines, silent)


def reason(result: dict[str, Any]) -> str:
    """Reduce the result of a failed task to one line.

    Args:
        result: as the module returned it.

    Returns:
        The error, without a full stop at the end.
    """
    if "censored" in result:
        return "the output is hidden because it carries secrets"
    items = [item for item in result.get("results", []) if isinstance(item, dict) and item.get("failed")]
    if items:
        return reason(items[0])
    text = str(result.get("msg") or "").strip()
    detail = [
        str(result.get(key) or "").strip() for key in ("stderr", "module_stderr", "stdout", "module_stdout")
    ]
    if not text or text.startswith(("non-zero return code", "MODULE FAILURE", "Task failed: Module failed")):
        lines = next((found.splitlines() for found in detail if found), [])
        text = (
            f"{text}: {lines[-1]}" if text and lines else text or (lines[-1] if lines else "no reason given")
        )
    return _WRAPPING.sub("", " ".join(text.split())).rstrip(".")
