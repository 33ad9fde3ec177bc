# SPDX-License-Identifier: GPL-3.0-or-later
"""Lead from HTTP to HTTPS, and answer the challenges of certificate authorities.

``python -m gpufarm_hub.upkeep.redirect PORT URL WEBROOT``
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from tornado import httpserver, web

# RFC 8555, 8.3: where an answer is looked for. A token has the characters of base64url only.
CHALLENGE = r"/\.well-known/acme-challenge/([A-Za-z0-9_-]+)"
LONGEST = 16 << 10  # bytes of headers, and of a body: one that nobody reads would cut the answer off
PATIENCE = 10  # seconds that a connection may say nothing


class ChallengeHandler(web.RequestHandler):
    """Answers that the ACME client has put into its folder."""

    def initialize(self, webroot: Path) -> None:
        """Take the folder."""
        self.webroot = webroot

    def set_default_headers(self) -> None:
        """Tell nobody which server this is."""
        self.clear_header("Server")

    def get(self, token: str) -> None:
        """Answer GET."""
        try:
            answer = (self.webroot / ".well-known" / "acme-challenge" / token).read_bytes()
        except OSError as error:
            raise web.HTTPError(404) from error
        self.set_header("Content-Type", "application/octet-stream")
        self.finish(answer)


class RedirectHandler(web.RequestHandler):
    """Everything else is led to the hub. Where to is fixed, so a made-up host name leads nowhere else."""

    def initialize(self, url: str) -> None:
        """Take the hub's address."""
        self.url = url

    def set_default_headers(self) -> None:
        """Tell nobody which server this is."""
        self.clear_header("Server")

    def get(self, path: str) -> None:
        """Answer GET with a temporary redirect, as the hub's port may change."""
        query = f"?{self.request.query}" if self.request.query else ""
        self.redirect(f"{self.url}{self.request.path}{query}")

    def head(self, path: str) -> None:
        """Answer HEAD."""
        self.get(path)


def application(url: str, webroot: Path) -> web.Application:
    """Return the application.

    Args:
        url: of the hub, without a slash at its end.
        webroot: folder in which the ACME client leaves its answers.
    """
    challenge: dict[str, Any] = {"webroot": webroot}
    return web.Application(
        # A path without a leading slash would become a part of the host's name.
        [(CHALLENGE, ChallengeHandler, challenge), (r"(/.*)", RedirectHandler, {"url": url})],
        log_function=lambda handler: None,
    )


def server(url: str, webroot: Path) -> httpserver.HTTPServer:
    """Return what answers; the arguments are those of `application`."""
    return httpserver.HTTPServer(
        application(url, webroot),
        idle_connection_timeout=PATIENCE,
        body_timeout=PATIENCE,
        max_header_size=LONGEST,
        max_body_size=LONGEST,
    )


async def serve(port: int, url: str, webroot: Path) -> None:
    """Listen until the process ends."""
    server(url, webroot).listen(port)
    await asyncio.Event().wait()


def main() -> None:
    """Run the program."""
    port, url, webroot = sys.argv[1:]
    asyncio.run(serve(int(port), url, Path(webroot)))


if __name__ == "__main__":
    main()
