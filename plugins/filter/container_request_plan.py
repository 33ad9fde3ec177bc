# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that turns a user's request for a container into an app of Marathon, or says why not."""

from __future__ import annotations

DOCUMENTATION = r"""
name: container_request_plan
short_description: Turn a request for a container into an app of Marathon
version_added: 0.1.0
description:
  - Checks the request, compares it with the quota of its owner and with what is free, and writes the app.
positional: _input, cluster, apps
options:
  _input:
    description: The variables of the role container_request, without C(container_request_) in their names.
    type: dict
    required: true
  cluster:
    description: Result of the module M(gpufarm.cluster.mesos_info); empty before the module has run.
    type: dict
    default: {}
  apps:
    description: The apps that the module M(gpufarm.cluster.marathon_info) returns.
    type: list
    elements: dict
    default: []
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot start
  ansible.builtin.assert:
    that: plan.problems + plan.shortages == []
    fail_msg: "{{ (plan.problems + plan.shortages) | join(' ') }}"
  vars:
    plan: "{{ request | gpufarm.cluster.container_request_plan(mesos, marathon.apps) }}"
"""

RETURN = r"""
_value:
  description:
    - C(problems) of the request and C(shortages) of the cluster, sentences both; C(app) for the module
      M(gpufarm.cluster.marathon_app), and C(secret_env) for its option of this name.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._container_request import plan


def container_request_plan(
    request: Mapping[str, Any],
    cluster: Mapping[str, Any] | None = None,
    apps: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return what becomes of a request."""
    return plan(request, cluster or {}, apps)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"container_request_plan": container_request_plan}
