# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventory plugin that reads a TOSCA template."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tosca
short_description: A TOSCA template and a pool of machines as an inventory
version_added: 0.1.0
description:
  - Reads a service template, chooses the machines of a pool that it asks for, and gives them the variables
    that its nodes stand for. The playbooks of this collection then do what C(gpufarm deploy) does.
  - The source is the template itself, or a file of its own that names this plugin and has the options.
  - If there is a deployment of the same name, its machines are taken. Otherwise the machines of the pool are
    looked at, unless that was done in the last ten minutes, and those are taken that C(gpufarm plan) would
    take. Nothing is reserved.
  - Each node of the template is a group of machines. Those that a playbook of this collection sets up are in
    the group that the playbook works on as well.
notes:
  - A template as source needs E(ANSIBLE_INVENTORY_ENABLED=gpufarm.cluster.tosca) in the environment. With
    C(yaml) beside it, Ansible would take a template that this plugin refuses for a list of groups. The pool
    is read without this setting.
  - C(ansible-inventory --list) shows all variables, those of secret inputs too.
requirements:
  - the Python package C(gpufarm) of this project, for the Python that runs Ansible
options:
  plugin:
    description: Name of this plugin, in a file of its own.
    choices: [gpufarm.cluster.tosca]
  template:
    description: The service template, relative to the file that names it. Not for a template as source.
    type: path
  pool:
    description:
      - Inventory with the machines to choose from, relative to the file that names it, or to the current
        directory.
      - Not needed where a deployment is there already.
    type: str
    env:
      - name: GPUFARM_POOL
    ini:
      - section: gpufarm
        key: pool
  deployment:
    description: Name of the deployment; the template's name by default.
    type: str
    env:
      - name: GPUFARM_DEPLOYMENT
  inputs:
    description:
      - Values of inputs. Those of the environment (E(GPUFARM_INPUT_<NAME>)) win.
      - A secret is better kept in the environment.
    type: dict
    default: {}
  state_dir:
    description: Where deployments are remembered; C(~/.local/state/gpufarm) by default.
    type: path
    env:
      - name: GPUFARM_STATE_DIR
  vault_password_file:
    description: File with the vault password of the state, or program that prints it.
    type: path
    env:
      - name: GPUFARM_VAULT_PASSWORD_FILE
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
# Playbooks on a template:
# export ANSIBLE_INVENTORY_ENABLED=gpufarm.cluster.tosca
# export GPUFARM_POOL=inventories/mysite GPUFARM_INPUT_IAM_URL=https://iam.example.org/
# ansible-inventory -i tosca/templates/ml_infn.yaml --graph
# ansible-playbook -i tosca/templates/ml_infn.yaml gpufarm.cluster.site

# The same as a file, notebooks.gpufarm.yaml:
plugin: gpufarm.cluster.tosca
template: ../tosca/templates/ml_infn.yaml
pool: mysite
inputs:
  iam_url: https://iam.example.org/
  gpu_partition_flavor: 7x 1g.10gb MIG GPUs
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.parsing.vault import EncryptedString
from ansible.plugins.inventory import BaseInventoryPlugin
from ansible.template import trust_as_template

try:
    from gpufarm import inputs as gpufarm_inputs
    from gpufarm import inventory as gpufarm_inventory
    from gpufarm import template as gpufarm_template
    from gpufarm.errors import GpufarmError
    from gpufarm.prepare import Request
    from gpufarm.state import Store, default_directory
except ImportError as error:
    MISSING: ImportError | None = error
else:
    MISSING = None

_TEMPLATE = re.compile(r"^tosca_definitions_version\s*:", re.MULTILINE)


def _is_template(path: Path) -> bool:
    try:
        return bool(_TEMPLATE.search(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return False


def _native(value: Any) -> Any:
    """Undo what ``ansible-inventory --list`` does: expressions are such again, secrets are sealed."""
    if isinstance(value, dict):
        if "__ansible_unsafe" in value:
            return value["__ansible_unsafe"]
        if "__ansible_vault" in value:
            return EncryptedString(ciphertext=value["__ansible_vault"])
        return {key: _native(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_native(item) for item in value]
    return trust_as_template(value) if isinstance(value, str) else value


class InventoryModule(BaseInventoryPlugin):  # type: ignore[misc]
    """The plugin."""

    NAME = "gpufarm.cluster.tosca"

    def verify_file(self, path: str) -> bool:
        """Tell whether the source is a template, or YAML that may name this plugin."""
        if not super().verify_file(path) or Path(path).suffix not in (".yaml", ".yml"):
            return False
        return _is_template(Path(path)) or path.endswith((".gpufarm.yaml", ".gpufarm.yml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Fill the inventory."""
        super().parse(inventory, loader, path, cache)
        if MISSING:
            raise AnsibleParserError(
                f"{path}: the Python package gpufarm is missing ({MISSING}); install it for {sys.executable}"
            )
        source = Path(path)
        if _is_template(source):
            self.set_options()
            template, folder = source, Path.cwd()
        else:
            self._read_config_data(path)
            folder = source.parent
            if not self.get_option("template"):
                raise AnsibleParserError(f"{path}: template is missing; name the service template")
            template = folder / self.get_option("template")
        enabled = os.environ.pop("ANSIBLE_INVENTORY_ENABLED", None)
        try:
            found = gpufarm_inventory.read(self._store(), self._request(template, folder))
        except GpufarmError as error:
            raise AnsibleParserError(error.message) from error
        finally:
            if enabled is not None:
                os.environ["ANSIBLE_INVENTORY_ENABLED"] = enabled
        self._fill(found)

    def _store(self) -> Any:
        chosen = self.get_option("state_dir")
        password = self.get_option("vault_password_file")
        return Store(Path(chosen) if chosen else default_directory(), Path(password) if password else None)

    def _request(self, template: Path, folder: Path) -> Any:
        library, topology = gpufarm_template.read(template)
        given = gpufarm_inputs.from_mapping(
            topology, self.get_option("inputs"), lambda name: f"inputs.{name}"
        )
        given |= gpufarm_inputs.from_environment(topology, dict(os.environ))
        pool = self.get_option("pool")
        name = self.get_option("deployment") or topology.name
        return Request(topology, library, folder / pool if pool else None, name, given)

    def _fill(self, found: Any) -> None:
        for group, hosts in found.groups.items():
            name = self.inventory.add_group(self._sanitize_group_name(group))
            for host in hosts:
                self.inventory.add_host(host, group=name)
        for group, parent in found.parents.items():
            if group != parent:
                self.inventory.add_group(parent)
                self.inventory.add_child(parent, self._sanitize_group_name(group))
        for host, variables in found.pool.items():
            for name, value in variables.items():
                self.inventory.set_variable(host, name, _native(value))
        # These may come from users, so Ansible takes them for data and evaluates no expression in them.
        for host, variables in found.chosen.items():
            for name, value in variables.items():
                self.inventory.set_variable(host, name, value)
