# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup that returns a Python project of this collection."""

from __future__ import annotations

DOCUMENTATION = r"""
name: python_project
short_description: Return a Python project of this collection
version_added: 0.1.0
description:
  - Returns one of the projects below C(packages/) of the collection, as the option
    O(gpufarm.cluster.python_environment#module:projects) of M(gpufarm.cluster.python_environment) takes it.
options:
  _terms:
    description: The folder of the project.
    type: list
    elements: str
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Install the hub
  gpufarm.cluster.python_environment:
    path: /opt/jupyterhub
    requirements: "{{ lookup('ansible.builtin.file', 'hub.lock') }}"
    projects:
      - "{{ lookup('gpufarm.cluster.python_project', 'hub') }}"
"""

RETURN = r"""
_raw:
  description: For each project its C(name), its C(version), and the text of each of its C(files) by path.
  type: list
  elements: dict
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomllib
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

PACKAGES = Path(__file__).parents[2] / "packages"


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible has no types
    """The lookup of this file."""

    def run(
        self, terms: Sequence[str], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return each project.

        Raises:
            AnsibleLookupError: there is no such project.
        """
        return [project(term) for term in terms]


def project(folder: str) -> dict[str, Any]:
    """Return the name, the version and the files of a project.

    Raises:
        AnsibleLookupError: there is no such project.
    """
    root = PACKAGES / folder
    if not (root / "pyproject.toml").is_file():
        raise AnsibleLookupError(f"There is no project {folder} in {PACKAGES}.")
    files = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = tomllib.loads(files["pyproject.toml"])["project"]
    return {"name": about["name"], "version": about["version"], "files": files}
