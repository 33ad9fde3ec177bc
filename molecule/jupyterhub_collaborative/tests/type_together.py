"""Run on the hub's machine: two users open one document, and what the first one types reaches the second one.

usage: type_together.py SERVER TOKEN TOKEN     (the server's address; tokens of two users of the hub)
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ssl
import sys
import time
from urllib.parse import quote

import httpx
from pycrdt import Doc, Text, YMessageType, create_sync_message, create_update_message, handle_sync_message
from websocket import WebSocket, WebSocketTimeoutException

FILE = "together.txt"
TIMEOUT = 300  # seconds
# The machine asks itself; that the certificate verifies is for others to check.
CONTEXT = ssl._create_unverified_context()


class Writer:
    """One user with the document open (y-protocols, "Sync protocol")."""

    def __init__(self, base: str, token: str) -> None:
        headers = {"Authorization": f"token {token}"}
        with httpx.Client(verify=CONTEXT, headers=headers, timeout=TIMEOUT) as client:
            if client.get(f"{base}/api/contents/{FILE}").status_code == 404:
                empty = {"type": "file", "format": "text", "content": ""}
                client.put(f"{base}/api/contents/{FILE}", json=empty).raise_for_status()
            session = client.put(
                f"{base}/api/collaboration/session/{FILE}", json={"format": "text", "type": "file"}
            )
            session.raise_for_status()
        told = session.json()
        room = quote(f"{told['format']}:{told['type']}:{told['fileId']}")
        self.socket = WebSocket(sslopt={"context": CONTEXT})
        self.socket.connect(
            f"{base.replace('https', 'wss', 1)}/api/collaboration/room/{room}?sessionId={told['sessionId']}",
            header=headers,
            timeout=TIMEOUT,
        )
        self.doc = Doc()
        self.text = self.doc.get("source", type=Text)
        self.doc.observe(lambda event: self.socket.send_binary(create_update_message(event.update)))
        self.socket.send_binary(create_sync_message(self.doc))

    def listen(self, seconds: float) -> None:
        """Take in what the others have done."""
        end = time.monotonic() + seconds
        self.socket.settimeout(0.2)
        while time.monotonic() < end:
            try:
                message = self.socket.recv()
            except WebSocketTimeoutException:
                continue
            if message[0] == YMessageType.SYNC:
                reply = handle_sync_message(message[1:], self.doc)
                if reply is not None:
                    self.socket.send_binary(reply)


server, *tokens = sys.argv[1:]
first, second = (Writer(server, token) for token in tokens)
for writer in (first, second):
    writer.listen(2)
first.text += "hello from the first"
end = time.monotonic() + TIMEOUT
while "hello" not in str(second.text) and time.monotonic() < end:
    second.listen(0.2)
print(second.text)
