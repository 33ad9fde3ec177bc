"""Common parts of the walks through the service: the service, its pages, and a notebook in them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Error, Locator, Page, expect

from lab.chromium import PROGRAM
from lab.patience import PATIENCE
from lab.stage import ROOT, Stage
from lab.visitor import LIST_SLICES

ARTIFACTS = ROOT / ".work" / "artifacts"
PROFILE = "1g.10gb"
# Colours fade from one theme to the other, and axe would see what is in between. A page that changes in the
# meantime cancels its animations, which rejects their promises.
SET_THEME = """async (theme) => {
  document.documentElement.setAttribute("data-bs-theme", theme);
  await Promise.allSettled(document.getAnimations().map((animation) => animation.finished));
}"""
PHONE = {"width": 390, "height": 844}  # pixels of CSS, as many phones have them

MILLISECONDS = 1000 * PATIENCE
expect.set_options(timeout=MILLISECONDS)


@dataclass
class Service:
    """Information for a user: the address, and their name and password."""

    hub: str
    iam: str
    passwords: dict[str, str]


def in_the_providers_network(folder: Path, demo: Stage) -> Path:
    """Make a program that runs Chromium in the network of the provider's host, which no other bench changes.

    When an address of its machine comes or goes, Chromium fails what it loads with ERR_NETWORK_CHANGED.
    """
    namespace = demo.bench(print).network.namespace("iam")
    program = folder / "chromium"
    program.write_text(f'#!/bin/sh\nexec nsenter --net=/run/netns/{namespace} {PROGRAM} "$@"\n')
    program.chmod(0o700)
    return program


def new_context(browser: Browser) -> BrowserContext:
    # A newcomer accepts the two certificates; that they verify is for the scripted visitor to check.
    context = browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(MILLISECONDS)
    return context


def picture(page: Page, name: str) -> None:
    """Keep what the page looks like."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")


def check_access(page: Page) -> None:
    """Have axe look for what keeps people from reading or using the page, in light and dark colours."""
    chosen = page.locator("html").get_attribute("data-bs-theme")
    for theme in ("light", "dark"):
        page.evaluate(SET_THEME, theme)
        found = Axe().run(page)
        assert not found.response["violations"], f"{page.url}, {theme}: {found.generate_report()}"
    page.evaluate(SET_THEME, chosen)


def on_a_phone(page: Page, name: str) -> None:
    """Check a page of the hub, also on a phone, where nobody should have to scroll sideways."""
    check_access(page)
    before = page.viewport_size
    page.set_viewport_size(PHONE)
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}-phone.png", full_page=True)
    check_access(page)
    ends = page.evaluate(
        "Math.max(...[...document.body.querySelectorAll('*')].map((e) => e.getBoundingClientRect().right))"
    )
    page.set_viewport_size(before or PHONE)
    assert round(ends) <= PHONE["width"], f"{page.url} is {ends} pixels wide"


def visit(page: Page, address: str) -> None:
    """Open a page.

    Chromium 142 and later give up a page that they have begun to load a moment ago; a person loads it again.
    """
    try:
        page.goto(address)
    except Error as error:
        if "ERR_TOO_MANY_RETRIES" not in error.message:
            raise
        page.goto(address)


def open_login(page: Page, service: Service) -> None:
    visit(page, service.hub)
    page.get_by_role("button", name=re.compile("Sign in")).click()
    page.wait_for_url(f"{service.iam}/**")


def sign_in(page: Page, service: Service, user: str) -> None:
    page.fill("input[name=username]", user)
    page.fill("input[name=password]", service.passwords[user])
    page.get_by_role("button", name="Sign in").click()


def enter(page: Page, service: Service, user: str) -> Page:
    """Sign in, and approve what the hub asks the provider for."""
    open_login(page, service)
    sign_in(page, service, user)
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url(f"{service.hub}/**")
    return page


def stop_notebook(page: Page, service: Service) -> None:
    """Stop the user's own notebook server, if it runs."""
    visit(page, f"{service.hub}/hub/home")
    stop = page.locator("#stop")
    if stop.is_visible():
        page.once("dialog", lambda dialog: dialog.accept())
        stop.click()
        expect(stop).to_be_hidden()


def start(page: Page, service: Service, user: str, profile: str = "") -> None:
    """Fill in the form that is shown, and wait for JupyterLab of this user's server."""
    page.select_option("select[name=gpu]", profile)
    page.locator("#spawn_form [type=submit]").click()
    page.wait_for_url(f"**/user/{user}/lab**")
    open_lab(page, service, user)


def open_lab(page: Page, service: Service, user: str) -> None:
    """Open JupyterLab without the notebooks that were open before."""
    visit(page, f"{service.hub}/user/{user}/lab?reset")


def kernels(page: Page) -> Locator:
    """Return the cards from which a new notebook can be made."""
    return page.locator(".jp-LauncherCard[data-category=Notebook]")


def run_cell(page: Page, code: str) -> Locator:
    """Run Python in a new notebook of the shared environment; return what it shows."""
    kernels(page).filter(has_text="Scientific Python").click()
    expect(page.get_by_text("Scientific Python | Idle")).to_be_visible()
    cell = page.locator(".jp-Notebook .jp-CodeCell .cm-content").first
    cell.click()
    expect(page.locator(".jp-Notebook.jp-mod-editMode")).to_be_visible()
    page.keyboard.insert_text(code.strip())
    expect(cell).to_contain_text(code.strip().splitlines()[0])
    page.keyboard.press("Shift+Enter")
    return page.locator(".jp-Notebook .jp-OutputArea").first


def list_slices(page: Page) -> Any:
    """Run Python in a new notebook: the slices that NVML lists there, and those that CUDA would use."""
    output = run_cell(page, LIST_SLICES).locator("pre").first
    expect(output).to_contain_text("MIG-")
    return json.loads(output.inner_text())
