#!/usr/bin/python3
"""Receivers of alerts: a mail server that wants TLS and a login, and a service that wants a token.

They have the certificate that the machine has in /srv/tls, and write what they get to files in /srv/received.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import email
import email.policy
import http.server
import json
import os
import ssl
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

RECEIVED = Path("/srv/received")
ACCOUNTS = json.loads(Path("/srv/accounts.json").read_text())
MAIL_PORT, HOOK_PORT = 2525, 9443


def keep(name: str, entry: dict[str, Any]) -> None:
    """Add one line to a file."""
    with (RECEIVED / name).open("a") as file:
        file.write(f"{json.dumps(entry)}\n")


class Mailbox:
    """Keeps the mail that comes in."""

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        """Keep one mail."""
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        body = message.get_body(("plain",))
        keep(
            "mail",
            {
                "to": envelope.rcpt_tos,
                "from": envelope.mail_from,
                "subject": message["Subject"],
                "text": body.get_content() if body else "",
            },
        )
        return "250 OK"


def login(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    """Let one account in."""
    known = (ACCOUNTS["MAIL_USER"].encode(), ACCOUNTS["MAIL_PASSWORD"].encode())
    return AuthResult(success=(data.login, data.password) == known)


class Hook(http.server.BaseHTTPRequestHandler):
    """Keeps what is sent with the right token."""

    def do_POST(self) -> None:
        """Keep one message."""
        known = self.headers["Authorization"] == f"Bearer {ACCOUNTS['HOOK_TOKEN']}"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if known:
            keep("hooks", json.loads(body))
        self.send_response(200 if known else 403)
        self.end_headers()


def main() -> None:
    """Serve until the end."""
    RECEIVED.mkdir(exist_ok=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    host = os.uname().nodename
    context.load_cert_chain(f"/srv/tls/{host}.pem", f"/srv/tls/{host}.key")
    mail = Controller(
        Mailbox(),
        hostname="0.0.0.0",
        port=MAIL_PORT,
        tls_context=context,
        require_starttls=True,
        authenticator=login,
        auth_required=True,
        auth_exclude_mechanism=["LOGIN"],  # its prompts are not those that clients know
    )
    mail.start()
    server = http.server.ThreadingHTTPServer(("0.0.0.0", HOOK_PORT), Hook)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
