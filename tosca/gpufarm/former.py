# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults that a template of the collection had when a deployment was made.

A new release of the collection may have other ones. Users chose the former, if by saying nothing: no
deployment moves because the operator has upgraded a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufarm import collection, document, inputs
from gpufarm.errors import GpufarmError
from gpufarm.state import Deployment
from gpufarm.topology import Topology


def defaults(
    topology: Topology, previous: Deployment | None, data_types: Mapping[str, Any]
) -> dict[str, Any]:
    """Tell which inputs of a deployment keep another default than the template has now.

    Args:
        topology: the template.
        previous: the deployment as it is remembered, if any.
        data_types: definitions of data types that inputs may have.

    Returns:
        The former defaults by name, as far as the template still takes them; none of a template of the
        operator's own, who has changed it to have others.
    """
    if previous is None or not collection.has(topology.path):
        return {}
    kept = dict(previous.defaults)
    if previous.template_text and previous.template_text != topology.text:
        kept = _written(previous.template_text) | kept
    return {
        name: value
        for name, value in kept.items()
        if name in topology.inputs
        and not topology.inputs[name].secret
        and value != topology.inputs[name].default
        and _fits(topology, name, value, data_types)
    }


def _written(text: str) -> dict[str, Any]:
    """The defaults of inputs in the text of a template that was read once."""
    try:
        found = document.value(text)["topology_template"]["inputs"]
        return {name: entry["default"] for name, entry in found.items() if "default" in entry}
    except (GpufarmError, KeyError, TypeError, AttributeError):  # of a version that wrote something else
        return {}


def _fits(topology: Topology, name: str, value: Any, data_types: Mapping[str, Any]) -> bool:
    try:
        inputs.known(topology, {name: value}, data_types)
    except GpufarmError:
        return False
    return True
