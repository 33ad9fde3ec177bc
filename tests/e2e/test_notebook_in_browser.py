"""What people see, in a real browser, from the login page to Python on a GPU slice. The demo must be up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from lab.demo import ROOT, Demo
from lab.visitor import LIST_SLICES

ARTIFACTS = ROOT / ".work" / "artifacts"
PROFILE = "1g.10gb"

expect.set_options(timeout=60_000)  # milliseconds; a kernel starts slowly on a machine with other work


@dataclass
class Service:
    """What a user is told: the address, and their name and password."""

    hub: str
    iam: str
    passwords: dict[str, str]


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
    home = str(tmp_path_factory.mktemp("chromium"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                # The bench only: whatever a page would load from elsewhere fails.
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 10.77.*",
            ],
            env={"HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home, "PATH": "/usr/bin:/bin"},
        )
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    # A newcomer accepts the two certificates; that they verify is for the scripted visitor to check.
    context = browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(60_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def picture(page: Page, name: str) -> None:
    """Keep what the page looks like."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")


def open_login(page: Page, service: Service) -> None:
    page.goto(service.hub)
    page.get_by_role("button", name=re.compile("Sign in")).click()
    page.wait_for_url(f"{service.iam}/**")


def sign_in(page: Page, service: Service, user: str) -> None:
    page.fill("input[name=username]", user)
    page.fill("input[name=password]", service.passwords[user])
    page.get_by_role("button", name="Sign in").click()


@pytest.fixture
def alice(page: Page, service: Service) -> Iterator[Page]:
    """Alice, signed in, without a notebook before and after."""
    open_login(page, service)
    sign_in(page, service, "alice")
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url(f"{service.hub}/**")
    stop_notebook(page, service)
    yield page
    stop_notebook(page, service)


def stop_notebook(page: Page, service: Service) -> None:
    page.goto(f"{service.hub}/hub/home")
    stop = page.locator("#stop")
    if stop.is_visible():
        stop.click()
        expect(stop).to_be_hidden(timeout=60_000)


def test_a_wrong_password_is_told_in_plain_words(page: Page, service: Service) -> None:
    open_login(page, service)
    picture(page, "1-login")
    page.fill("input[name=username]", "alice")
    page.fill("input[name=password]", "guess")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("Wrong username or password.")
    expect(page.locator("input[name=username]")).to_have_value("alice")
    sign_in(page, service, "alice")
    expect(page.get_by_role("heading")).to_contain_text("Approval required")
    picture(page, "2-approval")


def test_python_in_a_notebook_sees_exactly_the_slice_that_was_picked(alice: Page, service: Service) -> None:
    alice.goto(f"{service.hub}/hub/spawn")
    choice = alice.locator(f"select[name=gpu] option[value='{PROFILE}']")
    expect(choice).to_contain_text("7 of 7 free")
    alice.select_option("select[name=gpu]", PROFILE)
    picture(alice, "3-spawn-form")
    alice.locator("#spawn_form [type=submit]").click()
    alice.wait_for_url("**/user/alice/lab**")
    alice.goto(f"{service.hub}/user/alice/lab?reset")  # else what an earlier run had open comes back
    alice.locator(".jp-LauncherCard[data-category=Notebook]").first.click()
    expect(alice.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
    cell = alice.locator(".jp-Notebook .jp-CodeCell .cm-content").first
    cell.click()
    expect(alice.locator(".jp-Notebook.jp-mod-editMode")).to_be_visible()
    alice.keyboard.insert_text(LIST_SLICES.strip())
    expect(cell).to_contain_text("nvmlInit")
    alice.keyboard.press("Shift+Enter")
    output = alice.locator(".jp-OutputArea-output pre").first
    expect(output).to_contain_text("MIG-")
    picture(alice, "4-notebook")
    visible, given = json.loads(output.inner_text())
    assert visible == [given]


def test_somebody_outside_the_groups_is_told_why(page: Page, service: Service) -> None:
    open_login(page, service)
    sign_in(page, service, "mallory")
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url(f"{service.hub}/**")
    picture(page, "5-refused")
    expect(page.locator(".error h1")).to_have_text("Access refused")
    expect(page.locator(".error p")).to_contain_text("ml-infn-users")


def test_an_administrator_sees_who_uses_the_hub(page: Page, service: Service) -> None:
    open_login(page, service)
    sign_in(page, service, "bob")
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url(f"{service.hub}/**")
    page.goto(f"{service.hub}/hub/admin")
    expect(page.get_by_text("alice", exact=True).first).to_be_visible()
    picture(page, "6-administrator")
    page.get_by_role("link", name="GPU slices").click()
    expect(page.locator("#slices tbody tr")).to_have_count(7)
    expect(page.get_by_text("Nobody waits.")).to_be_visible()
    picture(page, "7-slices")
