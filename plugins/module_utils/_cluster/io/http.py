# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP to a service of several servers with one leader: any of them may be asked, and any may be gone.

A server that cannot be reached, or that answers 502, 503 or 504, is asked again, as is the next one, until
the time is up. Standbys send a client on to the leader: Mesos by 307 and an address without scheme
(src/master/http.cpp, `redirect`), Marathon and Chronos mostly by proxying. The leader that was found is asked
first from then on.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any, Callable, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin, urlsplit

from ansible.module_utils.urls import open_url

# A server that has no leader yet, or stands before one that has gone.
AGAIN = (502, 503, 504)
REDIRECTS = (301, 302, 303, 307, 308)
MOST_REDIRECTS = 4
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 4.0  # seconds

CONNECTION_OPTIONS: dict[str, dict[str, Any]] = {
    "urls": {"type": "list", "elements": "str", "required": True},
    "username": {"type": "str", "default": ""},
    "password": {"type": "str", "default": "", "no_log": True},
    "token": {"type": "str", "default": "", "no_log": True},
    "token_scheme": {"type": "str", "default": "Bearer", "no_log": False},
    "ca_path": {"type": "path"},
    "timeout": {"type": "float", "default": 30},
    "patience": {"type": "float", "default": 30},
}


class ClusterError(Exception):
    """A request came to nothing; the text is one sentence for a user."""


class Unreachable(ClusterError):
    """No server answered within the time."""


class Refused(ClusterError):
    """A server answered that it will not: `status` is the HTTP status, `text` what it said."""

    def __init__(self, message: str, status: int, text: str) -> None:
        super().__init__(message)
        self.status = status
        self.text = text


class Answer(NamedTuple):
    """Response of a server: HTTP status, headers by lower-case name, and the text."""

    status: int
    headers: Mapping[str, str]
    text: str

    def json(self) -> Any:
        """Return the text read as JSON, None when it is empty.

        Raises:
            ClusterError: it is no JSON.
        """
        if not self.text.strip():
            return None
        try:
            return json.loads(self.text)
        except ValueError as error:
            raise ClusterError("The answer is no JSON, so the address is not that of the service.") from error


class Connection(NamedTuple):
    """How to reach a service.

    Attributes:
        urls: of its servers, such as ``https://master1.example.org:5050``.
        username: for basic authentication, empty for none.
        password: of that user.
        token: sent in place of user and password.
        token_scheme: word before the token.
        ca_path: file with the certificates of the authorities that are trusted, None for the system's.
        timeout: seconds that one request may take.
        patience: seconds after which a service that does not answer is given up.
    """

    urls: Sequence[str]
    username: str = ""
    password: str = ""
    token: str = ""
    token_scheme: str = "Bearer"  # noqa: S105
    ca_path: str | None = None
    timeout: float = 30
    patience: float = 30

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Connection:
        """Return the connection that a module's parameters describe (CONNECTION_OPTIONS)."""
        return cls(**{name: params[name] for name in CONNECTION_OPTIONS})


def connection_problem(connection: Connection) -> str:
    """Return what is wrong with a connection, an empty text when nothing is."""
    if not connection.urls:
        return "There is no address; give the URL of each server, such as https://master1.example.org:5050."
    for url in connection.urls:
        try:
            parts = urlsplit(url)
            named = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
        except ValueError:
            named = False
        if not named:
            return f"'{url}' is no address; give one such as https://master1.example.org:5050."
        if parts.username is not None or parts.password is not None:
            return f"The address of {parts.hostname} names a user; give username and password apart."
        if parts.query or parts.fragment:
            return f"The address {url} has a query; give it without."
    if connection.token and connection.username:
        return "There are a token and a user; give one of them."
    if bool(connection.username) != bool(connection.password):
        return "A user and a password belong together; give both or neither."
    if len({urlsplit(url).scheme for url in connection.urls}) > 1:
        return "Some addresses are http and some https; give all servers the same."
    return ""


class ClusterClient:
    """A client of one service, which remembers which of its servers leads."""

    def __init__(
        self,
        connection: Connection,
        service: str,
        again: Sequence[int] = AGAIN,
        opener: Callable[..., Any] = open_url,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a client.

        Args:
            connection: how to reach the service.
            service: what it is called in messages, such as "Mesos".
            again: statuses of a server that will answer later, or beside which another one will.
            opener: sends a request, as `ansible.module_utils.urls.open_url` does.
            sleep: waits some seconds.
            clock: tells the time in seconds.

        Raises:
            ClusterError: the connection cannot work.
        """
        problem = connection_problem(connection)
        if problem:
            raise ClusterError(problem)
        self.connection = connection
        self.service = service
        self.leader: str | None = None
        self._again = again
        self._opener, self._sleep, self._clock = opener, sleep, clock
        self._urls = [url.rstrip("/") for url in connection.urls]

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        expect: Sequence[int] = (200,),
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
    ) -> Answer:
        """Ask the service, whichever of its servers leads.

        Args:
            method: of HTTP.
            path: below the servers' addresses, with its query.
            body: what to send as JSON; None for nothing.
            expect: statuses that are an answer.
            headers: more headers.
            repeatable: whether it does no harm when the service gets the request twice. If not, it is sent
                again only when no server can have begun with it.

        Raises:
            Refused: it answered with another status.
            Unreachable: nobody answered within the time.
        """
        end = self._clock() + self.connection.patience
        pause = FIRST_PAUSE
        while True:
            reasons: list[str] = []
            hopeless = True
            for url in self._order():
                try:
                    answer, server = self._ask(url, method, path, body, headers or {})
                except (OSError, ValueError, HTTPException) as error:
                    hopeless = hopeless and _hopeless(error)
                    reasons.append(f"{url}: {explain(error, self.connection.timeout)}")
                    if not repeatable and not _never_sent(error):
                        raise Unreachable(self._silent(reasons)) from error
                    continue
                hopeless = False
                if answer.status in self._again and answer.status not in expect:
                    reasons.append(f"{url}: {said(answer)}")
                    if not repeatable and answer.status != 503:
                        raise Unreachable(self._silent(reasons))
                    continue
                self.leader = server
                if answer.status not in expect:
                    raise Refused(self._refusal(answer, server), answer.status, answer.text)
                return answer
            self.leader = None
            if hopeless or self._clock() + pause > end:
                raise Unreachable(self._silent(reasons))
            self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _order(self) -> list[str]:
        """The servers, the last leader first."""
        if self.leader is None:
            return self._urls
        return [self.leader, *(url for url in self._urls if url != self.leader)]

    def _ask(self, url: str, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Any:
        """Send one request, follow where it is sent on to; return the answer and the server that gave it."""
        target = url + path
        for _number in range(MOST_REDIRECTS):
            answer = self._send(target, method, body, headers)
            location = answer.headers.get("location", "")
            if answer.status not in REDIRECTS or not location:
                parts = urlsplit(target)
                prefix = urlsplit(url).path if parts.path.startswith(urlsplit(url).path + "/") else ""
                return answer, f"{parts.scheme}://{parts.netloc}{prefix}"
            target = urljoin(target, location)
            # The credentials go along, so the way must not become worse than the user asked for.
            if urlsplit(target).scheme != urlsplit(url).scheme:
                raise ClusterError(
                    f"{url} sends on to {target}, which is not {urlsplit(url).scheme}; let all servers of"
                    f" {self.service} use the same."
                )
        raise ValueError("it sends on and on, as happens while a leader is elected")

    def _send(self, url: str, method: str, body: Any, headers: Mapping[str, str]) -> Answer:
        sent = {"Accept": "application/json", **self._credentials(), **headers}
        data = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            data = json.dumps(body)
        try:
            response = self._opener(
                url,
                method=method,
                data=data,
                headers=sent,
                ca_path=self.connection.ca_path,
                timeout=self.connection.timeout,
                follow_redirects="none",
                use_proxy=False,
                use_netrc=False,
            )
            status, found = response.getcode(), response.headers
        except HTTPError as error:
            response, status, found = error, error.code, error.headers
        text = response.read().decode("utf-8", "replace")
        return Answer(status, {name.lower(): value for name, value in (found or {}).items()}, text)

    def _credentials(self) -> dict[str, str]:
        one = self.connection
        if one.token:
            return {"Authorization": f"{one.token_scheme} {one.token}"}
        if one.username:
            pair = f"{one.username}:{one.password}".encode()
            return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return {}

    def _silent(self, reasons: Sequence[str]) -> str:
        return (
            f"{self.service} cannot be reached ({'; '.join(reasons)}); see whether enough of its servers run"
            " to have a quorum and a leader."
        )

    def _refusal(self, answer: Answer, server: str) -> str:
        if answer.status == 401:
            with_what = "these credentials" if self._credentials() else "requests without credentials"
            return (
                f"{self.service} at {server} does not accept {with_what}; check username, password or token."
            )
        if answer.status == 403:
            who = self.connection.username or "this client"
            return (
                f"{self.service} at {server} does not allow it to {who} ({said(answer)}); check its"
                " access rules."
            )
        return f"{self.service} at {server} refuses: {said(answer)}."


def said(answer: Answer) -> str:
    """Return an answer in a few words: the message in it, and its status."""
    text = answer.text.strip()
    try:
        read = json.loads(text)
        if isinstance(read, dict):
            text = str(read.get("message") or read.get("error") or text)
    except ValueError:
        pass
    text = " ".join(text.split())[:500].rstrip(".")
    return f"{text} (HTTP status {answer.status})" if text else f"HTTP status {answer.status}"


def explain(error: Exception, timeout: float) -> str:
    """Say in a few words why there was no answer."""
    cause = getattr(error, "reason", error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate cannot be verified, {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return f"no TLS connection, {cause.reason or cause}"
    if isinstance(cause, socket.gaierror):
        return "its name cannot be resolved"
    if isinstance(cause, (socket.timeout, TimeoutError)):
        return f"no answer within {timeout:g} seconds"
    return str(getattr(cause, "strerror", None) or cause)


def _never_sent(error: Exception) -> bool:
    """Whether the server cannot have got the request: there was no connection."""
    cause = getattr(error, "reason", error) if isinstance(error, URLError) else error
    return isinstance(cause, (ConnectionRefusedError, socket.gaierror, ssl.SSLError))


def _hopeless(error: Exception) -> bool:
    """Whether asking again cannot help: the server is not the one that it should be."""
    return isinstance(getattr(error, "reason", error), ssl.SSLCertVerificationError)
