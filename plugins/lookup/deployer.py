# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup that returns the deployer as a Python project, with the collections that it runs."""

from __future__ import annotations

DOCUMENTATION = r"""
name: deployer
short_description: Return the deployer of this collection as a Python project
version_added: 0.1.0
description:
  - Returns the command C(gpufarm) with this collection and with C(community.crypto), as the option
    O(gpufarm.cluster.python_environment#module:projects) of M(gpufarm.cluster.python_environment) takes it.
    So a machine runs what the controller has.
options:
  _terms:
    description: The part to return - V(project), the project; V(version), its version; V(release), a word
      that is another one for other contents.
    type: list
    elements: str
    choices: [project, version, release]
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Install the deployer
  gpufarm.cluster.python_environment:
    path: /opt/gpufarm-serve/{{ lookup('gpufarm.cluster.deployer', 'release') }}
    requirements: "{{ lookup('ansible.builtin.file', 'serve.lock') }}"
    projects: "{{ query('gpufarm.cluster.deployer', 'project') }}"
"""

RETURN = r"""
_raw:
  description: For each term a text, or the project as a dictionary.
  type: list
  elements: raw
"""

import functools
import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.gpufarm.cluster.plugins.module_utils._version import VERSION
from ansible_collections.gpufarm.cluster.plugins.plugin_utils.digest import COLLECTION
from ansible_collections.gpufarm.cluster.plugins.plugin_utils.digest import VERSION as DIGEST

OURS = "ansible_collections/gpufarm/cluster"
THEIRS = "ansible_collections/community/crypto"
# Of this collection what the deployer and its playbooks use; of the other one what modules and filters use.
PARTS = ("meta", "packages", "playbooks", "plugins", "roles", "tosca")
THEIR_PARTS = ("MANIFEST.json", "meta", "plugins")
PROJECT = """\
[build-system]
requires = ["uv_build>=0.13.8,<0.14"]  # the backend in uv itself: nothing is fetched
build-backend = "uv_build"

[project]
name = "gpufarm"
version = "{version}"
license = "GPL-3.0-or-later"
requires-python = ">=3.11"

[project.scripts]
gpufarm = "gpufarm.cli:main"

[tool.uv.build-backend]
module-root = ""
module-name = ["gpufarm", "ansible_collections.gpufarm.cluster", "ansible_collections.community.crypto"]
namespace = true
"""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible has no types
    """The lookup of this file."""

    def run(
        self, terms: Sequence[str], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Any]:
        """Return what each term means.

        Raises:
            AnsibleLookupError: there is no such term, or a part is missing on the controller.
        """
        return [_meaning(term) for term in terms]


def _meaning(term: str) -> Any:
    if term == "version":
        return VERSION
    if term == "release":
        return f"{VERSION}-{DIGEST[:12]}"
    if term == "project":
        return project()
    raise AnsibleLookupError(f"There is no {term} of the deployer; ask for project, version or release.")


@functools.cache
def project() -> dict[str, Any]:
    """Return the name, the version and the files of the project.

    Raises:
        AnsibleLookupError: a part is missing on the controller.
    """
    own = {"version": VERSION, "namespace": "gpufarm", "name": "cluster"}
    files = {
        "pyproject.toml": PROJECT.format(version=VERSION),
        f"{OURS}/MANIFEST.json": json.dumps({"collection_info": own}),
    }
    deployer = COLLECTION / "tosca/gpufarm"
    for folder, parts, target in (
        (deployer, (".",), "gpufarm"),
        (COLLECTION, PARTS, OURS),
        (_theirs(), THEIR_PARTS, THEIRS),
    ):
        for path in _files(folder, parts):
            if folder == deployer or deployer not in path.parents:
                files[f"{target}/{path.relative_to(folder).as_posix()}"] = path.read_text(encoding="utf-8")
    if "gpufarm/cli.py" not in files:
        raise AnsibleLookupError(f"{deployer} is missing; install the collection gpufarm.cluster anew.")
    return {"name": "gpufarm", "version": VERSION, "files": files}


def _theirs() -> Path:
    try:
        found = importlib.import_module("ansible_collections.community.crypto")
    except ImportError as error:
        raise AnsibleLookupError(
            "The collection community.crypto is not installed; run "
            "'ansible-galaxy collection install community.crypto'."
        ) from error
    return Path(next(iter(found.__path__)))


def _files(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    for part in parts:
        place = folder / part
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.is_file() and path.suffix not in (".pyc", ".md") and "__pycache__" not in path.parts:
                yield path
