# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells which machine, or which link between two, makes measured links slow."""

from __future__ import annotations

DOCUMENTATION = r"""
name: slow_links
short_description: Name slow machines, and slow links between machines
version_added: 0.1.0
description:
  - A machine whose links to all its neighbours are slow is named, otherwise the link.
  - Slow is a bandwidth of less than three quarters of the usual one, or more than twice the usual time.
positional: _input, others, failures
options:
  _input:
    description: The C(values) of M(gpufarm.cluster.benchmark) by the name of the machine.
    type: dict
    required: true
  others:
    description: The C(links) of M(gpufarm.cluster.benchmark) by the name of the machine.
    type: dict
    required: true
  failures:
    description: >-
      Lists by the name of the machine, each entry with C(peer), another machine, and C(prefix), the beginning
      of the names of values of the link to it that could not be measured.
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Print what is slow
  ansible.builtin.debug:
    msg: "{{ values | gpufarm.cluster.slow_links(links, {}) }}"
"""

RETURN = r"""
_value:
  description: >-
    Lists of sentences by the name of the machine that is slow, or of the one that has measured the slow link.
    Machines without any are missing.
  type: dict
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.neighbours import (
    measured,
    suspects,
)


def slow_links(
    values: Mapping[str, Mapping[str, float]],
    others: Mapping[str, Mapping[str, str]],
    failures: Mapping[str, Iterable[Mapping[str, str]]],
) -> dict[str, list[str]]:
    """Return sentences about slow machines and links, by a machine each."""
    return suspects(measured(values, others, failures))


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by its name."""
        return {"slow_links": slow_links}
