# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs Ansible: one process, its events passed on as they happen."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import ansible_runner

from gpufarm import collection
from gpufarm.errors import BadInput, GpufarmError

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def environment() -> dict[str, str]:
    """Environment in which Ansible finds its programs, its configuration and gpufarm.cluster.

    Returns:
        The variables to set beside the present ones.

    Raises:
        GpufarmError: the collection is not there.
    """
    collection.root()
    variables = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
        "ANSIBLE_COLLECTIONS_PATH": ":".join(collection.search_path()),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
        # a machine that loses its power says nothing: without this the run would wait for it forever
        "ANSIBLE_SSH_EXTRA_ARGS": os.environ.get(
            "ANSIBLE_SSH_EXTRA_ARGS", "-o ServerAliveInterval=10 -o ServerAliveCountMax=3"
        ),
    }
    # Ansible is not started in the user's directory, so it would not see the configuration there
    for configuration in (Path.cwd() / "ansible.cfg", collection.CHECKOUT / "ansible.cfg"):
        if "ANSIBLE_CONFIG" not in os.environ and configuration.is_file():
            variables["ANSIBLE_CONFIG"] = str(configuration)
            break
    return variables


def inventory(pool: Path) -> dict[str, dict[str, Any]]:
    """Read an inventory.

    Args:
        pool: file or folder of the inventory.

    Returns:
        The variables of every host, by host.

    Raises:
        BadInput: there is no such inventory, it cannot be read, or it names no host.
    """
    groups = _listed(pool)
    variables = groups.pop("_meta", {}).get("hostvars", {})
    hosts = {host for group in groups.values() for host in group.get("hosts", [])}
    if not hosts:
        raise BadInput(f"{pool}: names no machine")
    return {host: variables.get(host, {}) for host in sorted(hosts)}


def members(pool: Path) -> dict[str, list[str]]:
    """Tell which machines are in which group of an inventory.

    Args:
        pool: file or folder of the inventory.

    Returns:
        The hosts of each group and of the groups in it, in their order.

    Raises:
        BadInput: there is no such inventory, or it cannot be read.
    """
    groups = _listed(pool)
    groups.pop("_meta", None)

    def hosts(name: str) -> Iterator[str]:
        yield from groups.get(name, {}).get("hosts", [])
        for child in groups.get(name, {}).get("children", []):
            yield from hosts(child)

    return {name: list(dict.fromkeys(hosts(name))) for name in groups}


def _listed(pool: Path) -> dict[str, Any]:
    """Return what ansible-inventory says of an inventory."""
    if not pool.exists():
        example = collection.root() / "inventories" / "example"
        raise BadInput(f"{pool}: there is no such inventory; copy {example} and name your machines in it")
    done = subprocess.run(
        ["ansible-inventory", "-i", str(pool), "--list"],
        env=os.environ | environment() | {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BadInput(f"{pool}: the inventory cannot be read: {complaint(done.stderr)}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def complaint(text: str) -> str:
    """Find the sentence in what Ansible wrote when it could not start.

    Args:
        text: its output.

    Returns:
        The first error, on one line.
    """
    lines = [_COLOURS.sub("", line).strip() for line in text.splitlines()]
    for heading, line in itertools.pairwise(lines):
        # what a dynamic inventory says itself is worth more than what Ansible makes of it
        if heading == "Standard error from inventory script:":
            return line.removeprefix("Error: ")
    found = next((line for line in lines if line.startswith(("[ERROR]", "ERROR!"))), None)
    last = next((line for line in reversed(lines) if line), "it says nothing")
    return re.sub(r"^(\[ERROR\]:|ERROR!)\s*", "", found or last)


@contextlib.contextmanager
def signals() -> Iterator[threading.Event]:
    """Have SIGINT and SIGTERM stop what runs instead of ending the program.

    Yields:
        An event that they set. Only the main thread gets signals: nothing sets it in another one.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def remember(_number: int, _frame: Any) -> None:
        stop.set()

    previous = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def end_leftovers(directory: Path) -> bool:
    """End processes of a run that was killed: Ansible survives the death of the one who started it.

    Args:
        directory: of the run; it stands in the command line of every process that belongs to it.

    Returns:
        Whether there were any.

    Raises:
        GpufarmError: one belongs to another account.
    """
    mark = f"{directory}/".encode()
    found = False
    for number in (signal.SIGTERM, signal.SIGKILL):
        alive = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if (
                    entry.name.isdigit()
                    and int(entry.name) != os.getpid()
                    and mark in (entry / "cmdline").read_bytes()
                ):
                    alive.append(int(entry.name))
        if not alive:
            return found
        found = True
        for process in alive:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                continue
            except PermissionError as error:
                raise GpufarmError(
                    f"process {process} of a run that was killed is still there and belongs to another "
                    f"account; end it with that account, or as root: kill {process}"
                ) from error
        time.sleep(1)
    return found


# Letters of a result, beyond which ansible-runner tells nothing of it, not even of a change.
# Results hold what a module was given, and the sources of a Python project are larger than its default.
ANY_SIZE = str(2**40)


def play(
    playbook: Path,
    pools: Iterable[Path],
    directory: Path,
    on_event: Callable[[dict[str, Any]], None],
    stop: threading.Event,
    *,
    check: bool = False,
) -> str:
    """Run a playbook.

    Args:
        playbook: the file.
        pools: the inventories.
        directory: a private folder for the run; nothing in it is needed afterwards.
        on_event: called with every event of ansible-runner, in order.
        stop: ends the run when it is set.
        check: only say what would change, with differences.

    Returns:
        ``successful``, ``failed`` or ``canceled``.

    Raises:
        GpufarmError: Ansible cannot be started.
    """

    def handle(event: dict[str, Any]) -> bool:
        on_event(event)
        return False  # nothing is kept on disk

    run = ansible_runner.run(
        private_data_dir=str(directory),
        playbook=str(playbook),
        inventory=[str(pool.resolve()) for pool in pools],
        envvars=environment() | {"ANSIBLE_LOCAL_TEMP": str(directory / "tmp"), "MAX_EVENT_RES": ANY_SIZE},
        settings={"pexpect_timeout": 1, "suppress_output_file": True},
        cmdline="--check --diff" if check else None,
        quiet=True,
        event_handler=handle,
        cancel_callback=stop.is_set,
    )
    status = "canceled" if stop.is_set() else str(run.status)  # also when it came too late for this playbook
    if status == "canceled":
        end_leftovers(directory)
    if run.rc == 127:
        raise GpufarmError("ansible-playbook was not found; run `make setup` in the checkout")
    return status
