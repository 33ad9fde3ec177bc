"""A real browser, and who uses it. The demo must be up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from walk import Service, enter, in_the_providers_network, new_context, stop_notebook

from lab.chromium import chromium
from lab.demo import Demo


@pytest.fixture(scope="session")
def service() -> Service:
    demo = Demo()
    iam = demo.bench(print).status()["iam"]
    if not iam:
        pytest.fail(f"demo {demo.name} is not up: start it with python -m lab.demo up")
    logins = json.loads(Path(iam["users_file"]).read_text())
    passwords = {name: login["password"] for name, login in logins.items()}
    return Service(demo.outputs()["jupyter_endpoint"], iam["url"], passwords)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("chromium")
    with chromium(folder, "10.77.*", in_the_providers_network(folder, Demo())) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Somebody who has not signed in."""
    context = new_context(browser)
    yield context.new_page()
    context.close()


def signed_in(browser: Browser, service: Service, user: str) -> Iterator[Page]:
    context = new_context(browser)
    yield enter(context.new_page(), service, user)
    context.close()


def without_notebook(page: Page, service: Service) -> Iterator[Page]:
    """Stop the user's notebook before and after a test, also one that failed."""
    stop_notebook(page, service)
    yield page
    stop_notebook(page, service)


@pytest.fixture(scope="session")
def signed_in_alice(browser: Browser, service: Service) -> Iterator[Page]:
    yield from signed_in(browser, service, "alice")


@pytest.fixture(scope="session")
def signed_in_carol(browser: Browser, service: Service) -> Iterator[Page]:
    yield from signed_in(browser, service, "carol")


@pytest.fixture(scope="session")
def signed_in_bob(browser: Browser, service: Service) -> Iterator[Page]:
    yield from signed_in(browser, service, "bob")


@pytest.fixture
def alice(signed_in_alice: Page, service: Service) -> Iterator[Page]:
    """A user, without a notebook before and after."""
    yield from without_notebook(signed_in_alice, service)


@pytest.fixture
def carol(signed_in_carol: Page, service: Service) -> Iterator[Page]:
    """Another user, without a notebook before and after."""
    yield from without_notebook(signed_in_carol, service)


@pytest.fixture
def bob(signed_in_bob: Page, service: Service) -> Iterator[Page]:
    """An administrator, without a notebook before and after."""
    yield from without_notebook(signed_in_bob, service)
