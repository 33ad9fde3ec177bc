# SPDX-License-Identifier: GPL-3.0-or-later
"""The page "My packages": what the user has installed over each shared environment, to keep, copy or remove.

The notebook server, which is the user's own program, runs ``gpufarm-environment`` of each environment: so the
page can do no more than a cell. Names and versions of packages, and files that are sent, are data.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jupyter_server.base.handlers import JupyterHandler
from tornado import web

from .environments import Shared, offered, run

LONGEST = 200_000  # bytes of a file

_PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
)


class PackagesPage(JupyterHandler):  # type: ignore[misc]
    """The page."""

    _busy = asyncio.Lock()  # pip must not run twice in one layer

    @web.authenticated
    async def get(self) -> None:
        """Show the packages."""
        await self._show()

    @web.authenticated
    async def post(self) -> None:
        """Import a file, or remove all packages, of one environment."""
        shared = _named(self.get_body_argument("environment", ""))
        if self.get_body_argument("action", "") == "reset":
            async with self._busy:
                worked, said = await run(shared, "reset")
        else:
            worked, said = await self._import(shared)
        self.set_status(200 if worked else 400)
        await self._show(shared, worked, said)

    async def _import(self, shared: Shared) -> tuple[bool, str]:
        sent = self.request.files.get("file", [])
        content = sent[0]["body"] if sent else b""
        if not content or len(content) > LONGEST:
            return False, f"Choose a file of at most {LONGEST // 1000} kB that this page has written."
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            file.write(content)
            file.flush()
            async with self._busy:
                return await run(shared, "import", file.name)

    async def _show(self, about: Shared | None = None, worked: bool = True, said: str = "") -> None:
        rows = []
        for shared in offered():
            listed, text = await run(shared, "export")
            pairs = [line.partition("==")[::2] for line in text.splitlines()] if listed else []
            rows.append({"shared": shared, "packages": pairs, "problem": "" if listed else text.strip()})
        page = _PAGES.get_template("packages.html")
        address = self.request.path
        token = self.xsrf_token.decode("ascii")
        self.finish(
            page.render(rows=rows, about=about, worked=worked, said=said[-4000:], address=address, xsrf=token)
        )


class PackagesFile(JupyterHandler):  # type: ignore[misc]
    """The packages over one environment, as a file that the page takes."""

    @web.authenticated
    async def get(self, name: str) -> None:
        """Answer GET gpufarm/packages/NAME."""
        shared = _named(name)
        worked, text = await run(shared, "export")
        if not worked:
            raise web.HTTPError(500, "The packages cannot be listed.")
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.set_header("Content-Disposition", f'attachment; filename="packages-{shared.name}.txt"')
        self.finish(text)


def _named(name: str) -> Shared:
    found = [shared for shared in offered() if shared.name == name]
    if not found:
        raise web.HTTPError(404, "There is no such environment.")
    return found[0]
