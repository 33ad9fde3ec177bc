# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages for administrators, of the users of their issuer."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request, Response

from gpufarm.serve.web.gate import Caller, Showing
from gpufarm.serve.web.links import ROOT

router = APIRouter(prefix=ROOT, include_in_schema=False)


@router.get("/runs")
def runs(request: Request, site: Showing, user: Caller) -> Response:
    """List the runs that wait, and those that workers carry out."""
    found, others = site.overview.queue(user, time.time())
    return site.page(request, "runs", found=found, others=others)


@router.get("/machines")
def machines(request: Request, site: Showing, user: Caller) -> Response:
    """List the machines that deployments hold."""
    return site.page(request, "machines", found=site.overview.machines(user))
