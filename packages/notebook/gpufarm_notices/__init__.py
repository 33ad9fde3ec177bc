# SPDX-License-Identifier: GPL-3.0-or-later
"""Part of every notebook server: what the user is told about this notebook, and the page of their packages.

The hub tells about times and limits, kernels about the packages of the user (package gpufarm-environment),
and this server about its memory.

A page of a notebook must not talk to the hub with its user's cookies, so the server asks with its own token.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jupyter_core.paths import jupyter_runtime_dir
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from . import environments, packages
from .memory import Memory


class NoticeHandler(APIHandler):  # type: ignore[misc]
    """Notices, a sentence each, and whether there are shared environments."""

    _track_activity = False  # to be asked is no use of the notebook

    def initialize(self, memory: Memory) -> None:
        """Take what counts the programs that were killed."""
        self._memory = memory

    @web.authenticated
    async def get(self) -> None:
        """Answer GET gpufarm/notice."""
        user = quote(os.environ["JUPYTERHUB_USER"], safe="@")
        request = HTTPRequest(
            f"{os.environ['JUPYTERHUB_API_URL']}/gpufarm/users/{user}/notices",
            headers={"Authorization": f"token {os.environ['JUPYTERHUB_API_TOKEN']}"},
        )
        try:
            answer = await AsyncHTTPClient().fetch(request)
        except (HTTPClientError, OSError) as error:
            raise web.HTTPError(502, "The hub does not answer.") from error
        notice = json.loads(answer.body).get(os.environ.get("JUPYTERHUB_SERVER_NAME", ""), "")
        told = " ".join(filter(None, [notice, self._memory.notice(), *_of_kernels()]))
        self.finish(json.dumps({"notice": told, "environments": bool(environments.offered())}))


def _of_kernels() -> list[str]:
    files = sorted(Path(jupyter_runtime_dir()).glob("gpufarm-environment-*.txt"))
    return [file.read_text(encoding="utf-8", errors="replace") for file in files]


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "gpufarm_notices"}]


def _load_jupyter_server_extension(server: Any) -> None:
    base = url_path_join(server.web_app.settings["base_url"], "gpufarm")
    handlers = [
        (f"{base}/notice", NoticeHandler, {"memory": Memory()}),
        (f"{base}/packages", packages.PackagesPage),
        (f"{base}/packages/([a-z0-9-]+)", packages.PackagesFile),
    ]
    server.web_app.add_handlers(".*$", handlers)
