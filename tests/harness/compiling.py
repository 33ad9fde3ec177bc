"""Compiles each template of Jinja once in a process; else that is half of what a run costs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any
from unittest import mock

from ansible._internal._templating._jinja_bits import AnsibleEnvironment, _TemplateCompileContext
from jinja2.environment import TemplateExpression

_compile = AnsibleEnvironment.compile
_compile_expression = AnsibleEnvironment.compile_expression
_known: dict[Hashable, CodeType] = {}


@contextmanager
def compiled_once() -> Iterator[None]:
    """Keep what Jinja compiles, by its source and what else decides the code."""
    with (
        mock.patch.object(AnsibleEnvironment, "compile", _template),
        mock.patch.object(AnsibleEnvironment, "compile_expression", _expression),
    ):
        yield


def _key(environment: AnsibleEnvironment, kind: str, source: str) -> Hashable:
    now = _TemplateCompileContext.current(optional=True)
    return (
        kind,
        str(source),
        now and now.escape_backslashes,
        environment.block_start_string,
        environment.variable_start_string,
        environment.comment_start_string,
        environment.trim_blocks,
        environment.lstrip_blocks,
        environment.newline_sequence,
        environment.keep_trailing_newline,
    )


def _template(self: AnsibleEnvironment, source: Any, *args: Any, **others: Any) -> CodeType:
    if not isinstance(source, str) or args or others:
        return _compile(self, source, *args, **others)
    key = _key(self, "template", source)
    if key not in _known:
        _known[key] = _compile(self, source)
    return _known[key]


def _expression(self: AnsibleEnvironment, source: str, undefined_to_none: bool = True) -> TemplateExpression:
    key = _key(self, "expression", source)
    if key not in _known:
        with mock.patch.object(AnsibleEnvironment, "compile", _compile_and_keep(key)):
            return _compile_expression(self, source, undefined_to_none)
    template = self.template_class.from_code(self, _known[key], self.make_globals(None), None)
    return TemplateExpression(template, undefined_to_none)


def _compile_and_keep(key: Hashable) -> Any:
    def compile_node(self: AnsibleEnvironment, *args: Any, **others: Any) -> CodeType:
        _known[key] = _compile(self, *args, **others)
        return _known[key]

    return compile_node
