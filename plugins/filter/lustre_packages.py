# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that chooses packages of Lustre for the kernels of a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lustre_packages
short_description: Choose packages of Lustre for the kernels of a machine
version_added: 0.1.0
description:
  - Compares what a package source has with the kernels that will boot.
positional: _input, available, kernels, kind
options:
  _input:
    description: The variables of the role without its name.
    type: dict
    required: true
  available:
    description: Packages from the result of M(gpufarm.cluster.apt_source_info).
    type: dict
    required: true
  kernels:
    description: Kernels from the result of M(gpufarm.cluster.lustre_info).
    type: list
    elements: dict
    required: true
  kind:
    description: Which packages, C(client) or C(server).
    type: str
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Choose the packages
  ansible.builtin.debug:
    msg: "{{ settings | gpufarm.cluster.lustre_packages(source.packages, machine.kernels, 'client') }}"
"""

RETURN = r"""
_value:
  description: C(problems), each a sentence; C(packages), with versions; C(version), theirs.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import packages


def lustre_packages(
    settings: Mapping[str, Any],
    available: Mapping[str, Sequence[str]],
    kernels: Sequence[Mapping[str, Any]],
    kind: str,
) -> dict[str, Any]:
    """Return the packages, or why there are none."""
    problems = packages.problems(kind, settings, available, kernels)
    chosen = [] if problems else packages.choose(kind, settings, available, kernels)
    return {
        "problems": problems,
        "packages": chosen,
        "version": chosen[0].partition("=")[2] if chosen else "",
    }


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"lustre_packages": lustre_packages}
