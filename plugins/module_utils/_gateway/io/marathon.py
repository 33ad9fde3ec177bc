# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads Marathon's apps and follows its events (Marathon, "Event Bus"; HTML, 9.2, server-sent events)."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import urlsplit

LONGEST_ANSWER = 256 << 20  # bytes
LONGEST_LINE = 16 << 20  # bytes of an event; those of deployments hold whole groups
APPS = "/v2/apps?embed=apps.tasks"


class MarathonError(Exception):
    """Marathon cannot be asked; the text says which and why."""


@dataclass(frozen=True)
class Account:
    """Credentials of the gateway.

    Attributes:
        user: its name; empty to ask without.
        password: its password.
        ca_file: authorities that the servers' certificates are verified with; empty for those of the system.
    """

    user: str = ""
    password: str = ""
    ca_file: str = ""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to the leader, but shows the password to nobody else.

    A server whose certificate is good for its name may get it; without TLS only servers that were named.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self.named = {urlsplit(url)[:2] for url in urls}

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request to the leader."""
        scheme, place = urlsplit(newurl)[:2]
        secure = scheme == "https" and {named for named, _place in self.named} == {"https"}
        if not secure and (scheme, place) not in self.named:
            raise MarathonError(
                f"{req.full_url} leads to {scheme}://{place}, which is not among the URLs of Marathon"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Marathon:
    """The servers of one Marathon, of which any can be asked."""

    def __init__(self, urls: Sequence[str], account: Account, timeout: float = 20) -> None:
        """Take the servers.

        Args:
            urls: of the servers, such as ``https://m1:8443``.
            account: who asks.
            timeout: seconds that a server may say nothing when asked for the apps.
        """
        self.urls = list(urls)
        self.timeout = timeout
        handlers: list[Any] = [urllib.request.ProxyHandler({}), _Redirects(urls)]
        if any(url.startswith("https:") for url in urls):
            context = ssl.create_default_context(cafile=account.ca_file or None)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self.opener = urllib.request.build_opener(*handlers)
        self.headers = {"User-Agent": "gpufarm-gateway"}
        if account.user:
            pair = base64.b64encode(f"{account.user}:{account.password}".encode()).decode()
            self.headers["Authorization"] = f"Basic {pair}"

    def _open(self, url: str, accept: str, timeout: float) -> Any:
        request = urllib.request.Request(url, headers=self.headers | {"Accept": accept})  # noqa: S310
        try:
            return self.opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            error.close()
            raise MarathonError(f"{url} answers with HTTP status {error.code}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise MarathonError(f"{url} cannot be asked ({getattr(error, 'reason', error)})") from error

    def apps(self) -> list[dict[str, Any]]:
        """Read all apps with their tasks, from the first server that answers.

        Returns:
            The apps.

        Raises:
            MarathonError: no server gives them; all are named.
        """
        reasons = []
        for url in self.urls:
            try:
                with self._open(url.rstrip("/") + APPS, "application/json", self.timeout) as answer:
                    document = json.loads(answer.read(LONGEST_ANSWER))
                apps = document.get("apps") if isinstance(document, dict) else None
                if isinstance(apps, list) and all(isinstance(app, dict) for app in apps):
                    return apps
                reasons.append(f"{url} answers without apps")
            except MarathonError as error:
                reasons.append(str(error))
            except (OSError, http.client.HTTPException, ValueError) as error:
                reasons.append(f"{url} breaks off ({error})")
        raise MarathonError("; ".join(reasons))

    def events(self, url: str, silence: float) -> Iterator[str]:
        """Follow the events of a server.

        Args:
            url: of the server.
            silence: seconds without a word, not even one that keeps the connection alive, after which the
                connection is given up.

        Yields:
            First an empty text, when the events are sure to come; then the name of each event.

        Raises:
            MarathonError: the stream cannot be had, or has ended.
        """
        with self._open(f"{url.rstrip('/')}/v2/events", "text/event-stream", silence) as stream:
            if stream.headers.get_content_type() != "text/event-stream":
                raise MarathonError(
                    f"{url}/v2/events answers with {stream.headers.get_content_type()}, not events"
                )
            yield ""
            try:
                yield from names(lines(stream))
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise MarathonError(f"the events of {url} broke off ({error})") from error
        raise MarathonError(f"the events of {url} ended")


def lines(stream: BinaryIO) -> Iterator[str]:
    """Split a stream into lines.

    Args:
        stream: of bytes.

    Yields:
        Each line without its end.

    Raises:
        ValueError: a line is longer than any that Marathon sends.
    """
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise ValueError("a line is too long")
        yield line.decode("utf-8", "replace").rstrip("\r\n")


def names(rows: Iterable[str]) -> Iterator[str]:
    """Read the names of events.

    Args:
        rows: the lines of the stream.

    Yields:
        The name of each event that has data, when its empty line has come; ``message`` if it has none.
    """
    name, data = "", False
    for row in rows:
        if not row:
            if data:
                yield name or "message"
            name, data = "", False
            continue
        key, _colon, value = row.partition(":")
        if key == "event":
            name = value.removeprefix(" ")
        elif key == "data":
            data = True
