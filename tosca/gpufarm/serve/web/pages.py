# SPDX-License-Identifier: GPL-3.0-or-later
"""Adds the pages to the application."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from gpufarm.serve.service import Service
from gpufarm.serve.settings import Pages
from gpufarm.serve.web import administration, catalogue, entrance, used, views
from gpufarm.serve.web.gate import STATIC
from gpufarm.serve.web.site import Site


def add(application: FastAPI, service: Service, settings: Pages) -> None:
    """Add the pages.

    Args:
        application: to which they are added.
        service: that carries out the requests.
        settings: of the pages.

    Raises:
        BadInput: the form of a template is wrong.
    """
    application.state.site = Site(service, settings)
    for part in (entrance, views, used, catalogue, administration):
        application.include_router(part.router)
    application.mount(STATIC, StaticFiles(directory=Path(__file__).parent / "static"))
