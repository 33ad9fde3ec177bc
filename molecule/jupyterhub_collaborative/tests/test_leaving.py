"""Who left the groups is out of the shared JupyterLab, with what a browser has open; the others stay."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time

import pytest
from websockets.exceptions import ConnectionClosed

BOUND = 360  # seconds: docs/security.md, "Who leaves is out"
BASE = "/user/collaborative/"


def closed(channels, seconds: float) -> bool:
    """Tell whether a web socket ends in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            channels.recv(end - time.monotonic())
        except ConnectionClosed:
            return True
        except TimeoutError:
            break
    return False


def test_a_web_socket_of_who_left_ends_in_time(visit, join):
    alice, carol = visit("alice"), visit("carol")
    if not alice.running():
        alice.spawn()
    for visitor in (alice, carol):
        visitor.execute("")
    kernel = alice._api("POST", f"{BASE}api/kernels", BASE, json={}).json()["id"]
    with alice._channels(BASE, kernel) as hers, carol._channels(BASE, kernel) as others:
        join("alice", ["cms"])
        assert closed(hers, BOUND)
        assert closed(others, 10)
    assert alice._api("GET", f"{BASE}api/kernels", BASE, follow_redirects=False).status_code != 200
    with pytest.raises(Exception, match=r"40[034]|302"), alice._channels(BASE, kernel):
        pass
    with carol._channels(BASE, kernel):
        assert carol.execute("print('goes on')") == "goes on"
