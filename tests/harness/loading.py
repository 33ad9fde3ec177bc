"""Gives files to roles, each parsed once in a process; copies by Ansible cost a quarter of a run."""

from __future__ import annotations

from typing import Any

from ansible.module_utils._internal._datatag import _AnsibleTaggedDict, _AnsibleTaggedList
from ansible.parsing.dataloader import DataLoader


class Loader(DataLoader):
    """The loader of Ansible, which parses each file only once, and copies what may be changed alone."""

    def load_from_file(self, file_name: str, *args: Any, **others: Any) -> Any:
        """Return a copy of what a file has."""
        return _copied(super().load_from_file(file_name, *args, **{**others, "unsafe": True}))


def _copied(value: Any) -> Any:
    """Copy containers, with their tags; texts and numbers never change."""
    match value:
        case _AnsibleTaggedDict() | _AnsibleTaggedList():
            return value._instance_factory(_plain(value), value._ansible_tags_mapping)
        case dict() | list():
            return _plain(value)
    return value


def _plain(value: dict[Any, Any] | list[Any]) -> dict[Any, Any] | list[Any]:
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value]
