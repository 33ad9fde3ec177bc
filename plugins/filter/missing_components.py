# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells which components the package sources of a Debian machine lack."""

from __future__ import annotations

DOCUMENTATION = r"""
name: missing_components
short_description: Tell which components the package sources of a Debian machine lack
version_added: 0.1.0
description:
  - Reads what apt says about the sources it uses, so that components can be added from the same mirrors.
positional: _input, components, own_file
options:
  _input:
    description:
      - Lines of the output of C(apt-get indextargets) with the format
        C($(REPO_URI) $(RELEASE) $(COMPONENT) $(SOURCESENTRY)).
    type: list
    elements: str
    required: true
  components:
    description: The components that are wanted.
    type: list
    elements: str
    required: true
  own_file:
    description: File that will name the missing components. Components that it names now count as missing.
    type: str
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Show what would be added
  ansible.builtin.debug:
    msg: >-
      {{ targets.stdout_lines
      | gpufarm.cluster.missing_components(['contrib'], '/etc/apt/sources.list.d/contrib.sources') }}
"""

RETURN = r"""
_value:
  description: For each mirror and suite that lacks some, its C(uri), C(suite) and missing C(components).
  type: list
  elements: dict
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._apt import sources


def missing_components(lines: list[str], components: list[str], own_file: str) -> list[dict[str, Any]]:
    """Return the missing components as plain data."""
    return [asdict(source) for source in sources.missing_components(lines, components, own_file)]


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., list[dict[str, Any]]]]:
        """Return the filters by name."""
        return {"missing_components": missing_components}
