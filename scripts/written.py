"""YAML files that are written from others."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import yaml

WIDTH = 110


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
    return f"---\n# Written by {writer}; do not edit.\n{text}"
