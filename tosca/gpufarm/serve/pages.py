# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of lists, with the links by which clients go on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from gpufarm.serve.bodies import link

SIZE = 10
LARGEST = 1000


def page(
    content: list[dict[str, Any]], total: int, number: int, size: int, url: str, query: Mapping[str, str]
) -> dict[str, Any]:
    """Write a page.

    Args:
        content: its entries.
        total: number of all entries.
        number: of the page, counted from 0.
        size: number of entries on a page.
        url: of the list.
        query: the other parameters of the request, which stay in the links.

    Returns:
        The object. The link ``last`` has the same text as ``self`` on the last page, by which clients end.
    """
    pages = -(-total // size)
    last = max(0, pages - 1)

    def to(rel: str, which: int) -> dict[str, str]:
        return link(rel, f"{url}?{urlencode({**query, 'page': which, 'size': size})}")

    links = [to("self", number)]
    if number > 0:
        links.insert(0, to("prev", number - 1))
    if number < last:
        links.append(to("next", number + 1))
    if pages > 1 or number > 0:
        links = [to("first", 0), *links, to("last", last)]
    return {
        "links": links,
        "content": content,
        "page": {"size": size, "totalElements": total, "totalPages": pages, "number": number},
    }
