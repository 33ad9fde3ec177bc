# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that says what an INDIGO template runs in the words of Marathon, Chronos or Compose."""

from __future__ import annotations

DOCUMENTATION = r"""
name: indigo_definition
short_description: Say what an INDIGO template runs in the words of Marathon, Chronos or Compose
version_added: 0.1.0
description:
  - Does with the properties of INDIGO's TOSCA types what INDIGO's orchestrator does with them.
positional: _input, service, made_for
options:
  _input:
    description:
      - Properties of the node and of the runtime that it stands on, by their names in INDIGO's types, and
        C(name) and C(image). For C(compose) those of a container without their prefix C(docker_). For
        C(environment) the list of variables.
    type: raw
    required: true
  service:
    description: >-
      Framework that runs it; an app on Marathon, a job on Chronos, a container by Compose; C(environment) is
      the environment of a container.
    type: str
    choices: [marathon, chronos, compose, environment]
    required: true
  made_for:
    description: >-
      Deployment for which it is made. A few letters that stand for it follow the name of an app or a job, as
      deployments of one template have the same names. If empty, the name is as it is.
    type: str
    default: ""
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Show the definition
  ansible.builtin.debug:
    msg: "{{ words | gpufarm.cluster.indigo_definition('chronos') }}"
  vars:
    words: {name: tool, image: "tool:1", command: run, schedule: R1//PT1M}
"""

RETURN = r"""
_value:
  description: The definition.
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufarm.cluster.plugins.module_utils import _indigo_app

DEFINITIONS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "marathon": _indigo_app.marathon_app,
    "chronos": _indigo_app.chronos_job,
    "compose": _indigo_app.compose_definition,
    "environment": _indigo_app.environment,
}
# Services at which all deployments have their names side by side.
NAMED = ("marathon", "chronos")


def indigo_definition(words: Any, service: str, made_for: str = "") -> dict[str, Any]:
    """Return the definition."""
    try:
        return DEFINITIONS[service]({**words, "made_for": made_for} if service in NAMED else words)
    except _indigo_app.IndigoError as error:
        raise AnsibleFilterError(str(error)) from error
    except KeyError as error:
        sentence = f"{service} needs the property {error.args[0]} of the template; write it"
        raise AnsibleFilterError(sentence) from None
    except (AttributeError, TypeError, ValueError):
        sentence = f"the properties of the template are no map that {service} can run; correct them"
        raise AnsibleFilterError(sentence) from None


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"indigo_definition": indigo_definition}
