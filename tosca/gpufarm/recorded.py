# SPDX-License-Identifier: GPL-3.0-or-later
"""Knows which operations run a role that keeps a record on the machine of what it made, and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpufarm.errors import BadInput

# The operation leaves its role out if this variable of Ansible says that all is as recorded.
VARIABLE = "gpufarm_record"
# Of a removal that only takes its owner off the record: without a record there is nothing to do.
WITHDRAW = "gpufarm_withdraw"
# The variable that names the owner.
OWNER = "gpufarm_owner"
_TAKE_OVER = "gpufarm_take_over"
_COLLECTION = "gpufarm.cluster."


@dataclass(frozen=True)
class Claim:
    """For whom roles make something.

    Attributes:
        owner: as the records name it.
        take_over: whether roles may replace what was made for others with other settings.
    """

    owner: str
    take_over: bool = False

    def variables(self) -> dict[str, Any]:
        """Return the variables of Ansible that say so."""
        return {OWNER: self.owner, **({_TAKE_OVER: True} if self.take_over else {})}


class Lenient(yaml.SafeLoader):
    """Reads a playbook without knowing Ansible's own tags."""


Lenient.add_multi_constructor("!", lambda _loader, _suffix, _node: None)


def keeps(playbook: Path) -> bool:
    """Whether the role of an operation notes down for whom it makes something.

    Args:
        playbook: the implementation of the operation.

    Raises:
        BadInput: it is not exactly one play.
    """
    return OWNER in _play(playbook).get("vars", {})


def role(playbook: Path) -> str:
    """Return the role that the playbook of an operation leaves out if its record holds; empty if none.

    Args:
        playbook: the implementation of the operation.

    Raises:
        BadInput: it is not exactly one play.
    """
    for task in _play(playbook).get("tasks", []):
        if VARIABLE in str(task.get("when", "")):
            return str(task["ansible.builtin.include_role"]["name"]).removeprefix(_COLLECTION)
    return ""


def _play(playbook: Path) -> dict[str, Any]:
    """Return the play of a playbook; what happens is told apart by counting the plays."""
    content = yaml.load(playbook.read_text(), Loader=Lenient)  # noqa: S506  (a SafeLoader)
    if not isinstance(content, list) or len(content) != 1:
        raise BadInput(f"{playbook}: the implementation of an operation has to be exactly one play")
    return dict(content[0])
