"""Texts of argument specs of roles, for READMEs and TOSCA types: their texts are in Ansible's markup."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from antsibull_docs_parser import dom
from antsibull_docs_parser.format import Formatter, LinkProvider, format_paragraphs
from antsibull_docs_parser.parser import Context, parse

ROOT = Path(__file__).resolve().parent.parent


@cache
def roles() -> tuple[str, ...]:
    """Return the names of the roles that are used by themselves."""
    return tuple(sorted(path.parent.parent.name for path in ROOT.glob("roles/[!_]*/meta/argument_specs.yml")))


@cache
def specs(role: str) -> dict[str, Any]:
    """Return what the argument spec of a role says of its entry point `main`."""
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
    return dict(yaml.safe_load(path.read_text())["argument_specs"]["main"])


def options(role: str) -> dict[str, dict[str, Any]]:
    """Return the options of a role by the names of its variables."""
    return dict(specs(role)["options"])


class Plain(Formatter):
    """Text without markup; values are in quotation marks."""

    def value(self, text: str) -> str:
        """Return how a value is written."""
        return f'"{text}"'

    def name(self, text: str) -> str:
        """Return how a name of a variable, file, program or module is written."""
        return text

    def format_text(self, part: dom.TextPart) -> str:
        return part.text

    def format_option_value(self, part: dom.OptionValuePart) -> str:
        return self.value(part.value)

    def format_code(self, part: dom.CodePart) -> str:
        return self.name(part.text)

    def format_option_name(self, part: dom.OptionNamePart, url: str | None) -> str:
        return self.name(part.name if part.value is None else f"{part.name}={part.value}")

    def format_module(self, part: dom.ModulePart, url: str | None) -> str:
        return self.name(part.fqcn)

    def format_plugin(self, part: dom.PluginPart, url: str | None) -> str:
        return self.name(part.plugin.fqcn)

    def format_env_variable(self, part: dom.EnvVariablePart) -> str:
        return self.name(part.name)

    def format_return_value(self, part: dom.ReturnValuePart, url: str | None) -> str:
        return self.name(part.name)

    def format_link(self, part: dom.LinkPart) -> str:
        return f"{part.text} ({part.url})"

    def format_url(self, part: dom.URLPart) -> str:
        return part.url

    def _refused(self, part: dom.AnyPart) -> str:
        raise ValueError(f"This markup has no form here: {part}.")

    format_bold = format_error = format_horizontal_line = format_italic = format_rst_ref = _refused


class Markdown(Plain):
    """Markdown for a cell of a table."""

    def value(self, text: str) -> str:
        return f"`{text}`"

    def name(self, text: str) -> str:
        return f"`{text}`"

    def format_link(self, part: dom.LinkPart) -> str:
        return f"[{part.text}]({part.url})"


def text(description: str | list[str], formatter: Formatter) -> str:
    """Return a description, one string or a list of paragraphs, as one line.

    Raises:
        ValueError: its markup is wrong.
    """
    paragraphs = parse(description, Context(), errors="exception")
    return " ".join(format_paragraphs(paragraphs, formatter, LinkProvider(), par_sep=" ").split())
