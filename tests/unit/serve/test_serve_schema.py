# SPDX-License-Identifier: GPL-3.0-or-later
"""Schemathesis makes requests from the OpenAPI document: no defect, and no answer that it does not name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from doubles.issuer import Issuer
from fastapi import APIRouter
from fastapi.routing import APIRoute
from gpufarm.serve import routes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from serve_site import Site, site

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, iam: Issuer) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("serve"), iam) as made:
        client = made.user()
        resources = [{"node": "server", "type": "tosca.nodes.Compute", "state": "STARTED"}]
        made.own = client.post("/deployments", json={"template": made.template}).json()["uuid"]
        made.work(resources=resources)
        yield made


def rejected(context: Any, response: Any, case: Any) -> bool | None:
    """Like Schemathesis, which does not count 413 as a refusal: wrong bodies may also be too large."""
    return None if response.status_code == 413 else negative_data_rejection(context, response, case)


def operations(part: APIRouter) -> list[tuple[str, str]]:
    listed = [route for route in part.routes if isinstance(route, APIRoute) and route.include_in_schema]
    return sorted((method, route.path) for route in listed for method in route.methods)


ALL = [*operations(routes.public), *operations(routes.router)]
# A request without parameters cannot be wrong.
ATTEMPTS = [
    *((GenerationMode.POSITIVE, *one) for one in ALL),
    *((GenerationMode.NEGATIVE, *one) for one in operations(routes.router)),
]


@pytest.mark.parametrize(("mode", "method", "path"), ATTEMPTS, ids=lambda part: str(part))
def test_requests_of_all_kinds(serving: Site, mode: GenerationMode, method: str, path: str) -> None:
    document = schemathesis.openapi.from_asgi("/openapi.json", serving.app)
    headers = {"Authorization": serving.user().headers["authorization"]}
    checks = [*CHECKS, rejected] if mode is GenerationMode.NEGATIVE else CHECKS

    @given(document[path][method].as_strategy(generation_mode=mode), st.booleans())
    @settings(max_examples=20, deadline=None, suppress_health_check=[*HealthCheck], derandomize=True)
    def attempt(case: Any, known: bool) -> None:
        if known and mode is GenerationMode.POSITIVE and "uuid" in case.path_parameters:
            case.path_parameters["uuid"] = serving.own
        case.call_and_validate(headers=headers, checks=checks)

    attempt()


def test_the_document_names_every_route(serving: Site) -> None:
    named = serving.client().get("/openapi.json").json()["paths"]
    assert {(method.upper(), path) for path, methods in named.items() for method in methods} == {*ALL}
