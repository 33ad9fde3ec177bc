"""Finds each plugin of Ansible once in a process; else that is up to a sixth of what a run costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from ansible.plugins.loader import Jinja2Loader, PluginLoader

_known: dict[tuple[Any, ...], Any] = {}


@contextmanager
def found_once() -> Iterator[None]:
    """Keep where plugins of collections are, and that there is none; they do not change while tests run."""
    with (
        mock.patch.object(
            PluginLoader, "find_plugin_with_context", _once(PluginLoader.find_plugin_with_context)
        ),
        mock.patch.object(Jinja2Loader, "get_with_context", _once(Jinja2Loader.get_with_context)),
    ):
        yield


def _once(ask: Callable[..., Any]) -> Callable[..., Any]:
    def asked(self: PluginLoader, name: str, *args: Any, **others: Any) -> Any:
        if "." not in name:  # any collection may have it
            return ask(self, name, *args, **others)
        key = (ask, self, name, str(args), str(others))
        if key not in _known:
            _known[key] = ask(self, name, *args, **others)
        return _known[key]

    return asked
