# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to a `gpufarm serve`, whose answers are taken for what they are: texts of somebody else."""

from __future__ import annotations

import html
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests
from urllib3.exceptions import HTTPError

from gpufarm.errors import BadInput, GpufarmError
from gpufarm.serve.fields import https
from gpufarm.serve.forms import too_deep

# Seconds for a connection, for a sign of life, and for a whole answer; bytes of an answer.
PATIENCE = (10, 60)
DEADLINE = 120.0
LARGEST = 16 * 1024 * 1024


class Refusal(BadInput):
    """The service refuses the request of this user."""


class Bearer(requests.auth.AuthBase):
    """Sends the token; with a class of its own, so that requests takes no login from ~/.netrc instead."""

    def __init__(self, token: str) -> None:
        """Take the token.

        Args:
            token: an access token.
        """
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token to a request.

        Args:
            request: the request.

        Returns:
            The request.
        """
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def plain(text: str) -> str:
    """Make a text of a service fit for a terminal: no control sequences.

    Args:
        text: the text.

    Returns:
        The text; other signs than printable ones, line ends and tabulators are replaced.
    """
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "\ufffd" for sign in text)


class Connection:
    """A service, and the token of a user."""

    def __init__(self, url: str, token: Callable[[], str], ca_file: Path | None = None) -> None:
        """Prepare; nothing is asked yet.

        Args:
            url: address of the service.
            token: gives the access token when one is needed.
            ca_file: certificates that the service's may come from; None for those of the machine.

        Raises:
            BadInput: the address is none with https.
        """
        self.url = url.rstrip("/")
        if not https(self.url):
            raise BadInput(f"--server {plain(url)}: write an https URL without a login, query or fragment")
        self._token = token
        self._session = requests.Session()
        self._verify = str(ca_file) if ca_file else True

    def json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Ask for an object.

        Args:
            method: of HTTP.
            path: below the address.
            body: of the request, for JSON; None for none.

        Returns:
            The object.

        Raises:
            Refusal: the service refuses the request.
            GpufarmError: it does not answer, or not with an object.
        """
        text = self.text(method, path, body)
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._strange("with no JSON") from error
        if not isinstance(found, dict):
            raise self._strange("with no object")
        if too_deep(found):
            raise self._strange("with lists in lists")
        return found

    def text(self, method: str, path: str, body: Any = None) -> str:
        """Ask for a text.

        Args:
            method: of HTTP.
            path: below the address.
            body: of the request, for JSON; None for none.

        Returns:
            The text.

        Raises:
            Refusal: the service refuses the request.
            GpufarmError: it does not answer, or sends the client elsewhere, or does not end.
        """
        content, until = b"", time.monotonic() + DEADLINE
        try:
            with self._session.request(
                method,
                self.url + path,
                json=body,
                auth=Bearer(self._token()),
                headers={"Accept": "application/json, text/plain"},
                timeout=PATIENCE,
                verify=self._verify,  # given here, as the environment would win over the session
                allow_redirects=False,  # the token is for this service alone
                stream=True,
            ) as answer:
                # what has come by then, as one that drips never fills a part
                while part := answer.raw.read1(65_536, decode_content=True):
                    content += part
                    if len(content) > LARGEST or time.monotonic() > until:
                        raise self._strange("without end")
        except requests.exceptions.SSLError as error:
            raise GpufarmError(
                f"{self.url} has no certificate that this machine trusts ({_reason(error)}); "
                "name that of its authority with --ca-file"
            ) from error
        except (requests.RequestException, HTTPError, OSError) as error:
            raise GpufarmError(f"{self.url} does not answer: {_reason(error)}; try again later") from error
        text = content.decode("utf-8", errors="replace")
        if 200 <= answer.status_code < 300:
            return text
        if 300 <= answer.status_code < 400:
            raise self._strange("with an address elsewhere, to which the token is not sent")
        raise self._refusal(answer.status_code, text)

    def _refusal(self, status: int, text: str) -> GpufarmError:
        try:
            message = json.loads(text)["message"]
        except (ValueError, RecursionError, KeyError, TypeError):
            return self._strange(f"with status {status} and no reason")
        kind = Refusal if 400 <= status < 500 else GpufarmError
        return kind(plain(html.unescape(str(message))))

    def _strange(self, how: str) -> GpufarmError:
        return GpufarmError(
            f"{self.url} answers {how}; compare the address with that of a gpufarm serve, or try again later"
        )


def _reason(error: BaseException) -> str:
    """The last of the sentences that libraries have put into each other."""
    cause: Any = error
    while (inner := getattr(cause, "reason", None) or (cause.args and cause.args[0])) is not None:
        if not isinstance(inner, BaseException):
            return plain(str(inner))
        cause = inner
    return plain(str(cause))
