# SPDX-License-Identifier: GPL-3.0-or-later
"""Headers of the hub that restrict how browsers use its pages and cookies."""

from __future__ import annotations

from typing import Any


def configure(c: Any, public_url: str) -> None:
    """Configure cookies and headers, after everything else.

    Names with ``__Host-`` are not used: such cookies have the path ``/``, so the hub's would be sent to the
    notebooks of other users too, which administrators and users of a shared one open.

    Args:
        c: the hub's configuration object.
        public_url: the hub's address, as users know it.
    """
    # Strict cookies would not be there when the identity provider sends the user back.
    cookies: dict[str, Any] = {"samesite": "Lax"}
    if public_url.startswith("https://"):
        cookies["secure"] = True
    c.JupyterHub.public_url = f"{public_url}/"
    c.JupyterHub.tornado_settings.update(
        {
            "cookie_options": cookies,
            "headers": {
                "Referrer-Policy": "same-origin",  # addresses of notebooks name users
                "Server": "JupyterHub",
                "X-Content-Type-Options": "nosniff",
            },
        }
    )
