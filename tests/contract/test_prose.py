"""Names of tasks can be read alone, as a log shows them: each names its subject and its object."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path
    for pattern in ("roles/*/tasks/**/*.yml", "roles/*/handlers/*.yml", "playbooks/**/*.yml")
    for path in ROOT.glob(pattern)
)
# Words that stand for something which the name does not say.
PRONOUNS = re.compile(
    r"\b(it|they|them|he|she|who|whom|whose|what|whatever|nothing|nobody|somebody|anybody|everybody|one|ones|those|these|else)\b",
    re.IGNORECASE,
)


class YAML(yaml.SafeLoader):
    """As Ansible reads it, with its own tags."""


YAML.add_multi_constructor("!", lambda _loader, _tag, _node: None)


def names(value: Any) -> Iterator[str]:
    """Return the names of plays, blocks, tasks and handlers."""
    for entry in value if isinstance(value, list) else []:
        yield str(entry.get("name", ""))
        for part in ("block", "rescue", "always", "pre_tasks", "tasks", "post_tasks", "handlers"):
            yield from names(entry.get(part))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_name_of_a_task_has_no_pronoun(path: Path) -> None:
    found = list(names(yaml.load(path.read_text(), YAML)))
    assert [name for name in found if PRONOUNS.search(name)] == []
