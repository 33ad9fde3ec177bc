# SPDX-License-Identifier: GPL-3.0-or-later
"""One attempt at a run, in a process of its own, which talks with its worker over standard input and output.

The order is the first line; secrets in it are in no file and in no list of processes. When the input ends, as
the worker closes it or is killed, the attempt stops like after Ctrl-C, and the next one can continue.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from gpufarm import hours, template
from gpufarm.answers import Machine
from gpufarm.api import Deployer
from gpufarm.errors import GpufarmError, Interrupted, Locked
from gpufarm.instances import parsed
from gpufarm.state import now

# Seconds for which an attempt waits until the one before it has stopped.
PATIENCE = 120.0
_FILE = re.compile(r" \(log: [^)]*\)")


class Teller:
    """Writes progress and the end as lines of JSON; also a listener of the deployer."""

    def __init__(self, stream: TextIO) -> None:
        """Take the stream.

        Args:
            stream: to the worker.
        """
        self._stream = stream
        self._lock = threading.Lock()

    def tell(self, **what: Any) -> None:
        """Write a line.

        Args:
            what: its entries.
        """
        with self._lock:
            self._stream.write(json.dumps(what) + "\n")
            self._stream.flush()

    def say(self, sentence: str) -> None:
        """Write a line of progress.

        Args:
            sentence: for the owner of the deployment.
        """
        self.tell(log=f"{now()} {sentence}\n")

    def started(self, step: Any) -> None:
        """A step begins.

        Args:
            step: the step.
        """
        self.say(f"{step.name} on {step.host} ...")

    def task(self, step: Any, name: str) -> None:
        """A task begins.

        Args:
            step: the step.
            name: of the task.
        """

    def finished(self, step: Any, done: Any) -> None:
        """A step is done.

        Args:
            step: the step.
            done: what it did.
        """
        self.say(f"{step.name} on {step.host}: ok, {len(done.tasks)} changed, {done.seconds:.0f} s")

    def failed(self, step: Any, failure: str, done: Any) -> None:
        """A step has failed.

        Args:
            step: the step.
            failure: a sentence.
            done: what it did before.
        """
        self.say(f"{step.name} on {step.host}: failed: {failure}")


def resources(
    path: Path, machines: Mapping[str, dict[str, str]], looked_at: Mapping[str, Machine]
) -> list[dict[str, Any]]:
    """List the nodes of a deployment for clients.

    Args:
        path: of the template.
        machines: ``host`` and ``address`` of each Compute node.
        looked_at: what the machines of these nodes have, as far as it is known.

    Returns:
        An entry for each machine, and for each other node of the template.
    """
    nodes = template.read(path)[1].nodes
    found = []
    for name in [*machines, *(name for name, node in nodes.items() if not node.is_machine)]:
        base = parsed(name)[0]
        entry: dict[str, Any] = {"node": name, "type": nodes[base].type, "state": "STARTED"}
        entry["required_by"] = [
            other for other, node in nodes.items() if base in (node.host, *node.needs) and other != base
        ]
        if name in machines:
            entry["host"] = machines[name]["host"]
        if name in looked_at:
            properties = {"vmProperties": _properties(looked_at[name])}
            entry["metadata"] = {"VirtualMachineInfo": json.dumps(properties)}
        found.append(entry)
    return found


def _properties(machine: Machine) -> list[dict[str, Any]]:
    """A machine in the words of Infrastructure Manager; the dashboard shows no machine without these."""
    system = {
        "class": "system",
        "instance_name": machine.host,
        "cpu.count": machine.cpus,
        "memory.size": machine.memory,
        "disk.0.free_size": machine.disk,
        "disk.0.os.flavour": machine.distribution,
        "disk.0.os.version": machine.version,
        "net_interface.0.ip": machine.address,
    }
    return [system, {"class": "network", "id": "pub_network"}]


def carry_out(order: dict[str, Any], deployer: Any, teller: Teller) -> dict[str, Any]:
    """Do what an order says.

    Args:
        order: ``kind``, ``name``, ``template``, ``pool``, ``inputs`` and ``group``; for a removal ``force``;
            for hours ``since``; for output ``name`` and ``pool`` alone.
        deployer: a `gpufarm.api.Deployer`.
        teller: told how it goes.

    Returns:
        Outputs and resources, the hours, or the output of tasks.

    Raises:
        GpufarmError: it failed, or was stopped.
    """
    if order["kind"] == "HOURS":
        return _hours(order, deployer)
    # Never the pool that the deployment was made with: the operator may have moved it since.
    name, pool = order["name"], Path(order["pool"])
    if order["kind"] == "CONSOLE":
        return _console(name, pool, deployer)
    if order["kind"] == "DELETE":
        reason = _remove(name, pool, deployer, teller, force=order["force"])
        return {"outputs": {}, "resources": [], "reason": reason}
    if order["kind"] == "UPDATE":
        done = deployer.update(name, inputs=order["inputs"], pool=pool, listener=teller)
    else:
        done = deployer.deploy(
            order["template"],
            pool,
            name=name,
            inputs=order["inputs"],
            group=order["group"],
            listener=teller,
        )
    return {
        "outputs": deployer.outputs(name, indigo=True),
        "resources": resources(Path(order["template"]), done.deployment.machines, done.machines),
    }


def _remove(name: str, pool: Path, deployer: Any, teller: Teller, *, force: bool) -> str:
    """Remove a deployment; say what was given up with it. Only an administrator forces that."""
    if name not in deployer.names():
        return ""
    gone = deployer.removal(name, pool=pool).gone if force else []
    reason = f"given up with their machines: {', '.join(f'{one.step} on {one.host}' for one in gone)}"
    if gone:
        teller.say(reason)
    deployer.undeploy(name, pool=pool, forget=sorted({one.host for one in gone}), listener=teller)
    return reason if gone else ""


def _hours(order: dict[str, Any], deployer: Any) -> dict[str, Any]:
    try:
        found = deployer.hours(pool=Path(order["pool"]), since=order["since"], by=hours.FIELDS)
    except hours.NoSources:
        return {"rows": [], "machines": {}, "silent": {}}
    return {"rows": found.rows, "machines": found.machines, "silent": found.silent}


def _console(name: str, pool: Path, deployer: Any) -> dict[str, Any]:
    if name not in deployer.names():
        raise GpufarmError("nothing of this deployment has been set up yet")
    found = deployer.console(name, pool=pool)
    return {"tasks": [vars(task) for task in found.tasks], "silent": found.silent}


def _patiently(order: dict[str, Any], deployer: Any, teller: Teller) -> dict[str, Any]:
    """Do it when the attempt before, whose worker was lost, has stopped."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return carry_out(order, deployer, teller)
        except Locked:
            if time.monotonic() > until:
                raise
            time.sleep(1)


def ended(order: dict[str, Any], deployer: Any, teller: Teller) -> dict[str, Any]:
    """Carry out an order, however it ends.

    Args:
        order: as for `carry_out`.
        deployer: a `gpufarm.api.Deployer`.
        teller: told how it goes.

    Returns:
        Whether all is done: then the answer too, else ``reason``, a sentence.
    """
    try:
        return {"well": True, **_patiently(order, deployer, teller)}
    except (KeyboardInterrupt, Interrupted):
        return {"well": False, "reason": "the run was stopped", "stopped": True}
    except GpufarmError as error:
        return {"well": False, "reason": _FILE.sub("", error.message)}
    except OSError as error:
        return {"well": False, "reason": f"{error.filename or 'the system'}: {error.strerror or error}"}


def held(order: dict[str, Any], deployer: Any) -> list[str] | None:
    """Tell which machines a removal that failed has not freed.

    Args:
        order: that was carried out.
        deployer: a `gpufarm.api.Deployer`.

    Returns:
        Their nodes; None if that is not known.
    """
    try:
        return [*deployer.show(order["name"]).machines]
    except GpufarmError:
        return None


def _watch(stream: TextIO) -> None:
    while stream.read(4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(make: Callable[..., Any] = Deployer) -> None:
    """Carry out the order on standard input.

    Args:
        make: makes the deployer.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    teller = Teller(os.fdopen(os.dup(1), "w"))
    os.dup2(2, 1)  # whatever prints something does not disturb the answers
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_watch, args=(sys.stdin,), daemon=True).start()
    password_file = order["password_file"] and Path(order["password_file"])
    deployer = make(Path(order["state"]), password_file, lambda text: teller.say(f"warning: {text}"))
    ending = ended(order, deployer, teller)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if order["kind"] == "DELETE" and not ending["well"]:
        ending["held"] = held(order, deployer)
    teller.tell(ending=ending)
    os._exit(0)  # a thread that still waits for input holds nothing up


if __name__ == "__main__":
    main()
