# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that are refused: one sentence and the status of HTTP."""

from __future__ import annotations

from gpufarm.errors import GpufarmError


class Refused(GpufarmError):
    """The request is refused; nothing was changed."""

    code = 400


class Unauthorized(Refused):
    """The request has no valid access token."""

    code = 401


class Forbidden(Refused):
    """The user may not do this."""

    code = 403


class Missing(Refused):
    """There is no such thing, or the user may not know of it."""

    code = 404


class Conflict(Refused):
    """The deployment is not in a status that allows this."""

    code = 409


class TooLarge(Refused):
    """The body of the request is too large."""

    code = 413


class TooMany(Refused):
    """The user or the address sends too many requests."""

    code = 429


class NoAnswer(Refused):
    """A service that the request needs does not answer."""

    code = 503
