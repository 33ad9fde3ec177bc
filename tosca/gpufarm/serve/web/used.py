# SPDX-License-Identifier: GPL-3.0-or-later
"""The hours of a user, and for administrators those of all."""

from __future__ import annotations

import json
import time
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response

from gpufarm.serve import hours
from gpufarm.serve.hours import Report, Wanted
from gpufarm.serve.web.gate import Caller, Showing
from gpufarm.serve.web.links import ROOT
from gpufarm.serve.web.site import Site

# Rows on a page; files have all of them.
MOST = 500
# Fields that each page offers.
OWN, OF_ALL = ("month", "group", "machine", "source", "profile"), tuple(hours.FIELDS)

Text = Annotated[str, Query(max_length=32)]
Texts = Annotated[list[str] | None, Query(max_length=len(hours.FIELDS))]
router = APIRouter(prefix=ROOT, include_in_schema=False)


def _asked_of_own(since: Text = "", before: Text = "", by: Texts = None) -> Wanted:
    return hours.wanted(since or None, before or None, by or ("month", "group"), time.time())


def _asked_of_all(since: Text = "", before: Text = "", by: Texts = None) -> Wanted:
    return hours.wanted(since or None, before or None, by or ("month", "user", "group"), time.time())


Own = Annotated[Wanted, Depends(_asked_of_own)]
OfAll = Annotated[Wanted, Depends(_asked_of_all)]


def _page(request: Request, site: Site, report: Report, fields: tuple[str, ...]) -> Response:
    asked = report.wanted
    query = urlencode({"since": asked.since, "before": asked.before, "by": asked.by}, doseq=True)
    bars = [(row["month"], row["slice_hours"] + row["gpu_hours"]) for row in report.months]
    return site.page(
        request,
        "hours",
        report=report,
        sums=hours.total(report.months),
        bars=bars,
        most=max((number for _month, number in bars), default=0.0),
        fields=fields,
        shown=report.rows[:MOST],
        query=query,
    )


def _file(name: str, text: str, kind: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)


def _csv(report: Report) -> Response:
    return _file("hours.csv", hours.as_csv(report), "text/csv; charset=utf-8")


def _json(report: Report, *, reasons: bool) -> Response:
    return _file("hours.json", json.dumps(hours.as_json(report, reasons), indent=2), "application/json")


@router.get("/hours")
def own(request: Request, site: Showing, user: Caller, asked: Own) -> Response:
    """Show the hours of the user."""
    return _page(request, site, site.service.hours.own(user, asked), OWN)


@router.get("/hours.csv")
def own_as_csv(site: Showing, user: Caller, asked: Own) -> Response:
    """Return the hours of the user for spreadsheets."""
    return _csv(site.service.hours.own(user, asked))


@router.get("/hours.json")
def own_as_json(site: Showing, user: Caller, asked: Own) -> Response:
    """Return the hours of the user for programs."""
    return _json(site.service.hours.own(user, asked), reasons=False)


@router.get("/all-hours")
def of_all(request: Request, site: Showing, user: Caller, asked: OfAll) -> Response:
    """Show the hours of all users, for administrators."""
    return _page(request, site, site.service.hours.all(user, asked), OF_ALL)


@router.get("/all-hours.csv")
def of_all_as_csv(site: Showing, user: Caller, asked: OfAll) -> Response:
    """Return the hours of all users for spreadsheets."""
    return _csv(site.service.hours.all(user, asked))


@router.get("/all-hours.json")
def of_all_as_json(site: Showing, user: Caller, asked: OfAll) -> Response:
    """Return the hours of all users for programs."""
    return _json(site.service.hours.all(user, asked), reasons=True)
