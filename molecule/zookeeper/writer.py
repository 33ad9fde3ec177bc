#!/usr/bin/python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a number again and again, and tell in the end how that went.

usage: writer.py SERVERS    (HOST:PORT,...; SIGTERM ends it)

A write that fails for the moment is repeated. `lost` counts sessions that ended because no quorum heard them
for the session's time, `written` what was written, `read` what is there in the end.
"""

from __future__ import annotations

import json
import signal
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, OperationTimeoutError, SessionExpiredError
from kazoo.protocol.states import KazooState

ended = False
lost = 0


def end(_number: int, _frame: object) -> None:
    global ended
    ended = True


def listen(state: str) -> None:
    global lost
    lost += state == KazooState.LOST and not ended


signal.signal(signal.SIGTERM, end)
client = KazooClient(sys.argv[1], timeout=10)
client.add_listener(listen)
client.start()
client.ensure_path("/writer")
written = 0
while not ended:
    try:
        client.set("/writer", str(written + 1).encode())
        written += 1
    except (ConnectionLoss, OperationTimeoutError, SessionExpiredError):
        pass
    time.sleep(0.05)
read = int(client.get("/writer")[0])
print(json.dumps({"lost": lost, "written": written, "read": read}), flush=True)
client.stop()
