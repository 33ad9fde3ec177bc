# SPDX-License-Identifier: GPL-3.0-or-later
"""Part of every notebook server: JupyterLab asks it what the hub has to tell the user about this notebook.

A page of a notebook must not talk to the hub with its user's cookies, so the server asks with its own token.
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import quote

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest


class NoticeHandler(APIHandler):  # type: ignore[misc]
    """Notice of the hub, in a sentence; empty if there is none."""

    _track_activity = False  # to be asked is no use of the notebook

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
        notices = json.loads(answer.body)
        self.finish(json.dumps({"notice": notices.get(os.environ.get("JUPYTERHUB_SERVER_NAME", ""), "")}))


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "gpufarm_notices"}]


def _load_jupyter_server_extension(server: Any) -> None:
    path = url_path_join(server.web_app.settings["base_url"], "gpufarm", "notice")
    server.web_app.add_handlers(".*$", [(path, NoticeHandler)])
