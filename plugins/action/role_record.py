# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action plugin role_record: it knows the variables of a role, and calls the module machine_record."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.gpufarm.cluster.plugins.lookup.role_variables import converted
from ansible_collections.gpufarm.cluster.plugins.plugin_utils.digest import COLLECTION, VERSION

OPTIONS = (
    "step",
    "role",
    "instance",
    "roles",
    "state",
    "made",
    "before",
    "beside",
    "result",
    "owns",
    "divided",
    "alone",
)
OWNER = "a playbook"
# Larger files of the controller count by their size and time.
CONTENT_UP_TO = 1 << 20  # bytes


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible has no types
    """The action of this file."""

    _supports_check_mode = True
    _supports_async = False
    _VALID_ARGS = frozenset(OPTIONS)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the step on the machine.

        Raises:
            AnsibleActionFail: the arguments are wrong.
        """
        result: dict[str, Any] = super().run(tmp, task_vars)
        known = task_vars or {}
        args = self._task.args
        step = args.get("step")
        roles = args.get("roles") if step == "probe" else {str(args.get("role")): {}}
        if not isinstance(roles, Mapping):
            raise AnsibleActionFail("roles has to be a dictionary of roles and their variables.")
        answer = self._execute_module(
            module_name="gpufarm.cluster.machine_record",
            module_args={
                "step": step,
                "owner": str(self._value("gpufarm_owner", known) or OWNER),
                "version": VERSION,
                "inventory": str(known.get("inventory_file") or known.get("inventory_dir") or ""),
                "operator": _operator(),
                "take_over": boolean(self._value("gpufarm_take_over", known) or False),
                "withdraw": boolean(self._value("gpufarm_withdraw", known) or False),
                "full_run": boolean(self._value("gpufarm_full_run", known) or False),
                "requests": [self._request(role, {**known, **(own or {})}) for role, own in roles.items()],
            },
            task_vars=known,
        )
        result.update(answer)
        if result.get("note"):
            Display().warning(f"{known.get('inventory_hostname')}: {result['note']}")
        return result

    def _value(self, name: str, known: Mapping[str, Any]) -> Any:
        return self._templar.copy_with_new_env(available_variables=known).template(known.get(name))

    def _request(self, role: str, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the module has to know of a role."""
        values = self._values(role, known)
        args = self._task.args
        return {
            "role": role if args.get("instance", role) == role else f"{role}.{args['instance']}",
            "state": args.get("state") or values.get("state") or "present",
            "variables": self._digest(values, known),
            "owns": boolean(args.get("owns", True)),
            "divided": boolean(args.get("divided", False)),
            "alone": boolean(args.get("alone", True)),
            "made": args.get("made") or {},
            "before": args.get("before") or {},
            "beside": args.get("beside") or {},
            "result": args.get("result") or {},
        }

    def _values(self, role: str, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the role's variables in their types; nothing if they are not known before the role runs."""
        defaults = (
            self._loader.load_from_file(str(COLLECTION / "roles" / role / "defaults" / "main.yml")) or {}
        )
        every = {**defaults, **known}
        try:
            return converted(role, every, self._templar.copy_with_new_env(available_variables=every))
        except AnsibleError:
            return {}

    def _digest(self, values: Mapping[str, Any], known: Mapping[str, Any]) -> str:
        """Return a digest of variables, files and machines that they name, and the machine's address."""
        if not values:
            return ""
        # A word without a slash is the name of a file only where a file is asked for.
        named = {str(value) for name, value in values.items() if name.endswith("_file")}
        files = {text: self._content(text) for text in _texts(values) if "/" in text or text in named}
        addresses = {text: _address(text, known.get("hostvars") or {}) for text in _texts(values)}
        everything = [
            {name: value for name, value in values.items() if name != "state"},
            {text: content for text, content in files.items() if content},
            [str(self._value(name, known)) for name in ("inventory_hostname", "ansible_host")],
            {text: address for text, address in addresses.items() if address},
        ]
        return hashlib.sha256(json.dumps(everything, sort_keys=True, default=str).encode()).hexdigest()

    def _content(self, text: str) -> str:
        """Return a digest of the file of the controller that a text names; empty if it names none."""
        if not text or len(text) > 4096 or "\n" in text or "\0" in text:
            return ""
        # Roles find relative paths in these places beside the playbook (the lookup `file`).
        places = [text] if text.startswith(("/", "~")) else [f"files/{text}", text]
        for path in (Path(self._loader.path_dwim(place)) for place in places):
            try:
                seen = path.stat()
                if not path.is_file():
                    continue
                if seen.st_size > CONTENT_UP_TO:
                    return f"{seen.st_size} {seen.st_mtime_ns}"
                return hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError:
                continue
        return ""


def _address(text: str, hostvars: Mapping[str, Any]) -> str:
    """Return the address of the machine of the inventory that a text names; empty if it names none."""
    return str(hostvars[text].get("ansible_host", "")) if text in hostvars else ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _operator() -> str:
    """Name the account that a person has logged in with, also behind sudo; its number if it has no name."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
