"""The hub takes activity from notebooks' servers, not from the proxy."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
from typing import Any

import pytest
from gpufarm_hub.web.activity import QuietProxy
from jupyterhub.proxy import ConfigurableHTTPProxy


def test_routes_come_without_times(monkeypatch: pytest.MonkeyPatch) -> None:
    async def routes(self: Any) -> dict[str, Any]:
        data = {"user": "alice", "server_name": "", "last_activity": "2026-01-01T00:00:00Z"}
        return {"/user/alice/": {"target": "http://127.0.0.1:1", "data": data}, "/": {"data": {"hub": True}}}

    monkeypatch.setattr(ConfigurableHTTPProxy, "get_all_routes", routes)
    found = asyncio.run(QuietProxy(auth_token="x").get_all_routes())
    assert found["/user/alice/"]["data"] == {"user": "alice", "server_name": ""}
    assert found["/"]["data"] == {"hub": True}
