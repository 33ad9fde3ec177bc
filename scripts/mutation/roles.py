"""Mistakes in the tasks, handlers, variables and defaults of roles."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml

from mutation.jinja import EXPRESSION, expression_edits
from mutation.mutant import Edit

# Keys whose values are expressions without braces.
CONDITIONS = {"when", "that", "until", "failed_when", "changed_when"}
# Switches that say how Ansible reports or repeats a task; tests without hosts cannot see them.
UNSEEN = {"changed_when", "failed_when", "check_mode", "diff", "quiet", "run_once", "no_log", "get_checksum"}
# Numbers that only say how long Ansible waits.
WAITING = {"async", "cache_valid_time", "delay", "poll", "retries", "timeout"}
STATES = {"started": "stopped", "restarted": "started", "present": "absent", "absent": "present"}


def edits(text: str, others: Mapping[str, str]) -> Iterator[Edit]:
    """Return the mistakes that a YAML file of a role may have, in the order of their places.

    Args:
        text: the file.
        others: for variables of the role another one of the same type.
    """
    document = yaml.compose(text, yaml.CSafeLoader)
    found = _Finder(text, others)
    if document:
        found.node(document)
    yield from sorted(found.edits, key=lambda edit: (edit.start, edit.end, edit.text))


class _Finder:
    """Collects edits.

    Args:
        text: the file.
        others: for variables of the role another one of the same type.
    """

    def __init__(self, text: str, others: Mapping[str, str]) -> None:
        self.text = text
        self.others = others
        self.edits: list[Edit] = []

    def node(self, node: yaml.Node) -> None:
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                if isinstance(item, yaml.MappingNode):
                    self.item(item)
                self.node(item)
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                self.entry(key, value)
                self.node(value)
        elif isinstance(node, yaml.ScalarNode):
            for match in EXPRESSION.finditer(self.text, node.start_mark.index, node.end_mark.index):
                self.edits += expression_edits(self.text, *match.span(), self.others)

    def item(self, item: yaml.MappingNode) -> None:
        """Remove a task, or a check from a list of checks."""
        keys = {key.value for key, _ in item.value}
        if item.flow_style:
            return
        if "name" in keys and keys & {"block", "when", "register"} | {key for key in keys if "." in key}:
            self.edits.append(Edit("task removed", *self.lines(item.start_mark, item.end_mark), ""))
        elif keys == {"valid", "problem"}:
            self.edits.append(Edit("check removed", *self.lines(item.start_mark, item.end_mark), ""))

    def entry(self, key: yaml.Node, value: yaml.Node) -> None:
        """Change the value of a key."""
        name, lines = str(key.value), self.lines(key.start_mark, value.end_mark)
        start, end = value.start_mark.index, value.end_mark.index
        scalar, plain = None, False
        if isinstance(value, yaml.ScalarNode):
            scalar, plain = str(value.value), not value.style
        alone = not self.text[lines[0] : key.start_mark.index].strip()
        if name in ("when", "notify", "no_log") and alone:
            self.edits.append(Edit(f"{name} removed", *lines, ""))
        if name == "when" and scalar and plain and "\n" not in self.text[start:end]:
            self.edits.append(Edit("condition negated", start, end, f"not ({scalar})"))
        if name in CONDITIONS:
            for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                span = (one.start_mark.index, one.end_mark.index)
                self.edits += expression_edits(self.text, *span, self.others)
        if scalar is None:
            return
        if name == "mode" and scalar.isdigit():
            self.edits.append(Edit("mode", start, end, f'"{_more(int(scalar, 8)):04o}"'))
        elif name == "state" and scalar in STATES:
            self.edits.append(Edit("state", start, end, STATES[scalar]))
        elif value.tag == "tag:yaml.org,2002:bool" and name not in UNSEEN:
            self.edits.append(Edit("switch", start, end, "false" if scalar == "true" else "true"))
        elif value.tag == "tag:yaml.org,2002:int" and name not in WAITING:
            self.edits.append(Edit("number", start, end, str(int(scalar, 0) + 1)))

    def lines(self, start: yaml.Mark, end: yaml.Mark) -> tuple[int, int]:
        """Return the whole lines from one mark to another, without blank lines and comments after them."""
        first = self.text.rfind("\n", 0, start.index) + 1
        piece = self.text[first : end.index]
        kept = piece.splitlines(keepends=True)
        while len(kept) > 1 and (not kept[-1].strip() or kept[-1].lstrip().startswith("#")):
            kept.pop()
        last = first + sum(map(len, kept))
        if not self.text[:last].endswith("\n"):
            last = self.text.find("\n", last) + 1 or len(self.text)
        return first, last


def _more(mode: int) -> int:
    """Let others read what only its owner may, or write what they may read."""
    return mode | (0o044 | (mode & 0o100) >> 3 | (mode & 0o100) >> 6 if mode & 0o077 == 0 else 0o002)
