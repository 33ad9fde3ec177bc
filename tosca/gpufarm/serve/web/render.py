# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes pages: everything in them is escaped text."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gpufarm.serve.statuses import FINAL, Status
from gpufarm.serve.web.links import ROOT, outside

# Letters of a value that a page shows.
LONGEST = 5000
# Characters that no page may have (HTML, section 13.1.4), and those that turn the direction of what follows.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_WORDS = {"CREATE": "Creation", "UPDATE": "Update", "DELETE": "Removal"}
_ENDS = {"IN_PROGRESS": "in progress", "COMPLETE": "complete", "FAILED": "failed"}


def environment(base: str) -> Environment:
    """Prepare the templates of the pages.

    Args:
        base: path of the public address of this service; empty for none.

    Returns:
        The templates; each value is cleaned and escaped.
    """
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(moment=moment, status=status, outside=outside, shortened=shortened)
    made.globals.update(root=base + ROOT, base=ROOT)
    return made


def clean(value: Any) -> Any:
    """Replace what no page may have.

    Args:
        value: that a page shows.

    Returns:
        The value, if it is a text with a sign for each character that is none.
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _UNFIT.sub("\ufffd", value).encode(errors="replace").decode()


def shortened(value: Any) -> str:
    """Cut a long value.

    Args:
        value: the value.

    Returns:
        Its beginning, as a text.
    """
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def moment(seconds: float) -> Markup:
    """Write a time.

    Args:
        seconds: since 1970, in UTC.

    Returns:
        The element ``time``.
    """
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        when.strftime("%Y-%m-%dT%H:%M:%SZ"), when.strftime("%d %b %Y, %H:%M")
    )


def status(word: str) -> Markup:
    """Write a status for people.

    Args:
        word: as the interface has it.

    Returns:
        An element with a class for its colour.
    """
    first, _under, end = word.partition("_")
    kind = "busy" if word in Status.__members__ and Status(word) not in FINAL else end.lower()
    said = f"{_WORDS.get(first, first)} {_ENDS.get(end, end)}".strip()
    return Markup('<span class="status {}">{}</span>').format(kind, said)
