# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells which kernels of a machine have no modules of Lustre that fit."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lustre_unfit
short_description: Tell which kernels have no modules of Lustre that fit
version_added: 0.1.0
description:
  - Compares the kernel that modules were built for and their version, and looks for the drivers of networks.
positional: _input, version, host, networks
options:
  _input:
    description: Kernels from the result of M(gpufarm.cluster.lustre_info).
    type: list
    elements: dict
    required: true
  version:
    description: Version of Lustre, or its beginning; empty for any.
    type: str
    required: true
  host:
    description: Name of the machine.
    type: str
    required: true
  networks:
    description: Networks of LNet, C(name) each, whose drivers must be there; if not given, none must.
    type: list
    elements: dict
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Show what modules have to be built
  ansible.builtin.debug:
    msg: "{{ (machine.kernels | gpufarm.cluster.lustre_unfit('2.15.8', inventory_hostname)).kernels }}"
"""

RETURN = r"""
_value:
  description: C(kernels), releases; C(problems), each a sentence.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import drivers, machine


def lustre_unfit(
    kernels: Sequence[Mapping[str, Any]],
    version: str,
    host: str,
    networks: Sequence[Mapping[str, Any]] | Literal[""] | None = None,
) -> dict[str, Any]:
    """Return the kernels without modules that fit, and what is wrong with these and with drivers."""
    found = machine.unfit(kernels, version)
    problems = [machine.modules_problem(found, version, host)] if found else []
    # None in a variable is an empty text in ansible-core 2.16.
    if not found and networks is not None and networks != "":
        problems += drivers.problems(networks, kernels, host)
    return {"kernels": [one["release"] for one in found], "problems": problems}


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"lustre_unfit": lustre_unfit}
