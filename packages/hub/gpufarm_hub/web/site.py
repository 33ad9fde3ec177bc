# SPDX-License-Identifier: GPL-3.0-or-later
"""The site on the hub's pages: its name, help and contact. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

# Stricter than RFC 5322: nothing in it means anything in a link of the scheme mailto (RFC 6068).
ADDRESS = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


def describe(site: Mapping[str, str]) -> dict[str, str]:
    """Return what pages show. Text that is no address of the expected kind has no link.

    Args:
        site: the settings' entry ``site``: ``name``, ``help_url`` and ``contact``, each empty for none.

    Returns:
        The same, and in ``help_link`` and ``contact_link`` where links lead to; empty for nowhere.
    """
    mail = ADDRESS.fullmatch(site["contact"])
    return {
        **site,
        "help_link": site["help_url"] if is_web_address(site["help_url"]) else "",
        "contact_link": f"mailto:{mail[0]}" if mail else "",
    }


def is_web_address(text: str) -> bool:
    """Tell whether a browser opens this text as a page."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc) and not re.search(r"\s", text)


def configure(c: Any, site: Mapping[str, str]) -> None:
    """Have pages show it.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
        site: as in `describe`.
    """
    c.JupyterHub.template_vars |= {"gpufarm_site": describe(site)}
