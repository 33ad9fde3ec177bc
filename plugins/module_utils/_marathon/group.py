# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups of Marathon: what a change of one needs. No I/O.

Sources: mesosphere/marathon, releases/1.11, docs/rest-api (groups), GroupsResource.scala (enforceRole is for
top-level groups, and is changed by PATCH, apart from services).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .app import AppProblem, read_path


def shown(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return what users are told of a group, empty when there is none."""
    if not group:
        return {}
    return {
        "id": group["id"],
        "enforce_role": bool(group.get("enforceRole")),
        "dependencies": sorted(group.get("dependencies", ())),
        "apps": sorted(app["id"] for app in group.get("apps", ())),
        "groups": sorted(one["id"] for one in group.get("groups", ())),
    }


def content(group: Mapping[str, Any]) -> list[str]:
    """Return the paths of all apps and pods in a group and in its groups."""
    found = [one["id"] for kind in ("apps", "pods") for one in group.get(kind, ())]
    for one in group.get("groups", ()):
        found += content(one)
    return sorted(found)


def plan(
    path: str,
    current: Mapping[str, Any],
    enforce_role: bool | None,
    dependencies: Sequence[str] | None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the requests that make a group be as wanted, and what it is shown as then.

    Args:
        path: of the group.
        current: as the server tells it, empty when there is none.
        enforce_role: None for what is there, or what the server's option says.
        dependencies: paths; None for what is there.

    Raises:
        AppProblem: a group below another cannot enforce its role, or a path is none.
    """
    if enforce_role is not None and path.count("/") > 1:
        raise AppProblem(
            f"{path} lies in another group, and only top-level groups enforce their role; leave enforce_role"
            " out."
        )
    wanted = None if dependencies is None else sorted(read_path(one) for one in dependencies)
    before = shown(current) or {
        "id": path,
        "enforce_role": False,
        "dependencies": [],
        "apps": [],
        "groups": [],
    }
    after = dict(before)
    requests: list[dict[str, Any]] = []
    if wanted is not None:
        after["dependencies"] = wanted
    if enforce_role is not None:
        after["enforce_role"] = enforce_role
    if not current:
        body: dict[str, Any] = {"id": path, "dependencies": after["dependencies"]}
        if enforce_role is not None:
            body["enforceRole"] = enforce_role
        return [{"method": "PUT", "body": body}], after
    if after["enforce_role"] != before["enforce_role"]:
        requests.append({"method": "PATCH", "body": {"enforceRole": after["enforce_role"]}})
    if after["dependencies"] != before["dependencies"]:
        requests.append({"method": "PUT", "body": {"dependencies": after["dependencies"]}})
    return requests, after
