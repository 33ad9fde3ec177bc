# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses that pages link to or lead back to. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

# Below it are the pages; the interface of the orchestrator has no such path.
ROOT = "/ui"
HOME = f"{ROOT}/deployments"
# Longest address of an output that becomes a link.
LONGEST = 2048
_PLACE = re.compile(rf"{ROOT}(/[A-Za-z0-9][A-Za-z0-9_.-]*)*(\?page=[0-9]{{1,6}})?")
_PORTS = {"https": 443, "http": 80}


def owned(path: str) -> bool:
    """Tell whether a path is one of the pages.

    Args:
        path: of a request.

    Returns:
        True if it is.
    """
    return path == ROOT or path.startswith(f"{ROOT}/")


def place(text: str) -> str:
    """Choose where a user gets after the sign-in.

    Args:
        text: as a request has it, so it may be anything.

    Returns:
        The path of a page of this service; that of the deployments for every other text.
    """
    return text if len(text) <= 512 and _PLACE.fullmatch(text) else HOME


def outside(value: object) -> str:
    """Choose the address of a link to a service that a deployment has made.

    Args:
        value: of an output.

    Returns:
        The address; empty unless it is one of http or https, without a login.
    """
    if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable() or " " in value:
        return ""
    try:
        parts = urlsplit(value)
        _port = parts.port
    except ValueError:
        return ""
    plain = bool(parts.hostname) and "@" not in parts.netloc and "\\" not in value
    return value if parts.scheme in _PORTS and plain else ""


def origin(url: str) -> str:
    """Write the origin of a URL as browsers do (RFC 6454, section 6.2).

    Args:
        url: an https URL.

    Returns:
        Such as ``https://paas.example.org``.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"
