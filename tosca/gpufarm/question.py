# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks machines something with a playbook of the collection, which changes nothing on them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufarm import ansible, collection, run
from gpufarm.errors import GpufarmError, Interrupted
from gpufarm.pool import reason


@dataclass(frozen=True)
class Told:
    """Answers of machines.

    Attributes:
        answer: what the playbook wrote.
        silent: why machines did not answer, by name.
    """

    answer: dict[str, Any]
    silent: dict[str, str]


def ask(
    name: str,
    pools: Sequence[Path],
    hosts: Collection[str],
    variables: Mapping[str, Any],
    folder: Path | None,
    subject: str,
) -> Told:
    """Ask machines.

    Args:
        name: of the playbook, which takes the variable ``NAME_folder`` and writes ``NAME.json`` there.
        pools: the inventories.
        hosts: the machines that are asked.
        variables: of the playbook; they are data, whatever they begin with.
        folder: gets the files; None for none.
        subject: what is asked for, such as ``the hours``, for messages.

    Returns:
        The answers of those that have answered.

    Raises:
        GpufarmError: no machine has answered.
        Interrupted: a signal stopped it.
    """
    silent: dict[str, str] = {}
    output: list[str] = []

    def on_event(event: dict[str, Any]) -> None:
        data = event.get("event_data", {})
        output.append(event.get("stdout") or "")
        if event["event"] in ("runner_on_unreachable", "runner_on_failed") and data["host"] != "localhost":
            silent[data["host"]] = reason(data.get("res", {}))

    with tempfile.TemporaryDirectory(prefix="gpufarm-") as directory, ansible.signals() as stop:
        playbook, kept = Path(directory) / "playbook.yml", folder or Path(directory) / "kept"
        given = run.Data({**variables, f"{name}_folder": str(kept.absolute())})
        asked = collection.root() / "playbooks" / f"{name}.yml"
        playbook.write_text(run.dump([{"import_playbook": str(asked), "vars": given}]))
        status = ansible.play(playbook, pools, Path(directory), on_event, stop)
        if status == "canceled":
            raise Interrupted(f"interrupted while {subject} were read; nothing was changed")
        if set(hosts) <= silent.keys() or not (status == "successful" or silent):
            why = next(iter(silent.values()), None) or ansible.complaint("\n".join(output))
            raise GpufarmError(f"{subject} cannot be read: {why}")
        return Told(json.loads((kept / f"{name}.json").read_text()), silent)
