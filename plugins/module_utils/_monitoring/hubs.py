# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hubs on other machines that a server asks. No I/O."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any

PORT = re.compile(r":[0-9]+$")


def hubs(
    settings: Mapping[str, Any], found: Mapping[str, Any], read: Iterable[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Return the hubs, with the `address` that each is asked at.

    Args:
        settings: the role's variables without ``monitoring_``.
        found: what the inventory knows. ``hub_machines`` are the names of machines, ``hub_addresses`` their
            addresses by name.
        read: files of these machines, and files that are kept of those that do not answer: the name of each
            file's machine and what it is in ``file``, and its ``content`` (base64). A machine without a token
            has no hub.
    """
    parts: dict[str, dict[str, str]] = {}
    for one in read:
        machine, part = one["file"]
        parts.setdefault(machine, {})[part] = b64decode(one["content"]).decode()
    of_machines = [
        _hub(name, found["hub_addresses"][name], parts[name])
        for name in found["hub_machines"]
        if parts.get(name, {}).get("token")
    ]
    given = [{**one, "address": _address(one["url"].removeprefix("https://"))} for one in settings["hubs"]]
    return [*given, *of_machines]


def _hub(name: str, host: str, parts: Mapping[str, str]) -> dict[str, str]:
    url = parts.get("url", "").strip() or json.loads(parts["settings"])["public_url"]
    # Whichever kind of certificate the hub has, also after it was renewed: browsers would trust the same.
    trusted = [parts[part] for part in ("certificate", "system", "authority") if part in parts]
    return {
        "name": name,
        "url": url,
        "address": _address(f"[{host}]" if ":" in host else host, url),
        "ca_certificate": "\n".join(trusted),
        "token": parts["token"].strip(),
    }


def _address(host: str, url: str = "") -> str:
    port = PORT.search(host) or PORT.search(url)
    return f"{PORT.sub('', host)}{port[0] if port else ':443'}"
