"""Former members lose the shared JupyterLab, with open connections of browsers; the others stay."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from websockets.exceptions import ConnectionClosed, InvalidStatus

BOUND = 360  # seconds: docs/security.md, "Former members lose access"
BASE = "/user/collaborative/"


def stays_open(visitor, kernel: str, seconds: float) -> float:
    """Open a web socket, again whenever it ends, until it is refused; return how long that took."""
    started = time.monotonic()
    end = started + seconds
    while time.monotonic() < end:
        try:
            with visitor._channels(BASE, kernel) as channels:
                while time.monotonic() < end:
                    channels.recv(end - time.monotonic())
        except InvalidStatus:
            break
        except (ConnectionClosed, TimeoutError):
            time.sleep(0.5)
    return time.monotonic() - started


def test_a_web_socket_of_who_left_ends_in_time(visit, join):
    alice, carol = visit("alice"), visit("carol")
    if not alice.running():
        alice.spawn()
    for visitor in (alice, carol):
        visitor.execute("")
    kernel = alice._api("POST", f"{BASE}api/kernels", BASE, json={}).json()["id"]
    with ThreadPoolExecutor(2) as pool:
        others = pool.submit(stays_open, carol, kernel, BOUND)
        join("alice", ["cms"])
        assert stays_open(alice, kernel, BOUND) < BOUND
        assert alice._api("GET", f"{BASE}api/kernels", BASE, follow_redirects=False).status_code != 200
        assert others.result() >= BOUND
    assert carol.execute("print('goes on')") == "goes on"
