"""YAML files that are written from others."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import textwrap
from typing import Any

import yaml

WIDTH = 110
NOTE = "# Written by {}; do not edit."


class _Dumper(yaml.SafeDumper):
    """Lists are indented below their key, no anchor abbreviates, and expressions are easy to read."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        """Return a text, which as an expression of Jinja has quotes of the other kind in it."""
        style = (">" if len(data) > WIDTH - 20 else '"') if "{{" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.text)


def yaml_file(document: object, writer: str) -> str:
    """Return the text of a YAML file, as yamllint wants it.

    Args:
        document: what is in it.
        writer: path of the program that writes it, which the file names.
    """
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)
    return f"---\n{NOTE.format(writer)}\n{text}"


class _ReadableDumper(_Dumper):
    """Texts of several lines are folded, and lists of words or numbers are on one line."""

    def folded(self, data: str) -> yaml.ScalarNode:
        """Return a text, folded if it is long; one with backslashes is a pattern, which has no lines."""
        style = ">" if len(data) > WIDTH - 20 and "\\" not in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    def words(self, data: list[Any]) -> yaml.SequenceNode:
        """Return a list."""
        flow = not any(isinstance(entry, (dict, list)) for entry in data)
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flow)


_ReadableDumper.add_representer(str, _ReadableDumper.folded)
_ReadableDumper.add_representer(list, _ReadableDumper.words)


def yaml_block(document: object, indent: int) -> str:
    """Return a part of a YAML file that people read.

    Args:
        document: what is in it.
        indent: number of blanks before each line.
    """
    text = yaml.dump(document, Dumper=_ReadableDumper, sort_keys=False, width=WIDTH, allow_unicode=True)
    return textwrap.indent(text, " " * indent)
