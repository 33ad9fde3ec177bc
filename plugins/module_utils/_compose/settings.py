# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the settings of a Compose project. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# Names of projects and services (Compose specification, sections "name" and "services").
_PROJECT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_SERVICE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL = re.compile(r"https://[^\s/@]+/\S+")
_CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}")
# They would change what the programs of Docker do, or which programs run.
_RESERVED = re.compile(r"(BUILDKIT|BUILDX|COMPOSE|DOCKER|LD)_\w*", re.IGNORECASE)


def _definition(found: Mapping[str, Any]) -> Iterator[str]:
    services = found.get("services") if isinstance(found, Mapping) else None
    if not isinstance(services, Mapping) or not services:
        yield "compose_project_definition has no services; give at least one."
        return
    for name, service in services.items():
        if not isinstance(name, str) or not _SERVICE.fullmatch(name):
            yield (
                f"compose_project_definition has a service {name!r}; take letters, digits, dots, dashes and "
                "underscores."
            )
        elif not isinstance(service, Mapping) or not {"image", "build", "extends"} & service.keys():
            yield f"The service {name} of compose_project_definition has no image; name one."


def _problems(settings: Mapping[str, Any]) -> Iterator[str]:
    name, url, definition = settings["name"], settings["url"], settings["definition"]
    if not _PROJECT.fullmatch(name):
        yield (
            f"compose_project_name is {name!r}, which Compose takes for no name; take up to 63 small "
            "letters, digits, dashes and underscores."
        )
    if settings["state"] == "absent":
        return
    if bool(url) == bool(definition):
        yield "A project needs compose_project_definition or compose_project_url, and not both; give one."
    if url and not _URL.fullmatch(url):
        yield (
            f"compose_project_url is {url!r}; give the address of a file that begins with https:// and has "
            "no login in it."
        )
    if settings["checksum"] and not _CHECKSUM.fullmatch(settings["checksum"]):
        yield (
            f"compose_project_checksum is {settings['checksum']!r}; write it as sha256: and 64 digits of "
            "0-9a-f."
        )
    if definition:
        yield from _definition(definition)
    for variable, value in settings["secret_env"].items():
        where = f"The variable {variable!r} of compose_project_secret_env"
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
            yield f"{where} has no name that programs take; take letters, digits and underscores."
        elif _RESERVED.fullmatch(variable):
            yield f"{where} would change what Docker does; take another name."
        elif isinstance(value, (Mapping, list)) or value is None or "\0" in str(value):
            yield f"{where} has no text as its value; give it one."
    if settings["wait_timeout"] < 1:
        yield f"compose_project_wait_timeout is {settings['wait_timeout']}; give at least 1 second."


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings.

    Args:
        settings: the variables of the role without its name.

    Returns:
        `problems`, one sentence for each.
    """
    return {"problems": list(_problems(settings))}
