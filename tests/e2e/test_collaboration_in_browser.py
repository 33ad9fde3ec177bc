"""Two people in one JupyterLab: what one types appears at the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from walk import PROFILE, Service, list_slices, on_a_phone, open_lab, picture, start, visit

SENTENCE = "hello from alice"


def stop(page: Page, service: Service) -> None:
    visit(page, f"{service.hub}/hub/home")
    button = page.locator("#collaborative-stop")
    if button.is_visible():
        page.once("dialog", lambda dialog: dialog.accept())
        button.click()
        expect(button).to_be_hidden()


@pytest.fixture
def stopped(carol: Page, service: Service) -> Iterator[None]:
    stop(carol, service)
    yield
    stop(carol, service)


@pytest.mark.usefixtures("stopped")
def test_two_people_type_into_one_document(alice: Page, bob: Page, carol: Page, service: Service) -> None:
    visit(alice, f"{service.hub}/hub/home")
    expect(alice.locator("#collaborative")).to_contain_text("It is stopped.")
    alice.locator("#collaborative-open").click()
    expect(alice.locator("select[name=gpu]")).to_be_visible()
    picture(alice, "10-form")
    on_a_phone(alice, "10-form")
    start(alice, service, "collaborative", PROFILE)
    alice.locator(".jp-LauncherCard", has_text="Text File").click()
    editor = alice.locator(".jp-FileEditor .cm-content")
    expect(editor).to_be_editable()
    name = alice.locator("#jp-main-dock-panel .lm-TabBar-tab.jp-mod-current .lm-TabBar-tabLabel").inner_text()

    visit(carol, f"{service.hub}/hub/home")
    expect(carol.locator("#collaborative")).to_contain_text(f"It runs and holds {PROFILE}.")
    picture(carol, "10-home")
    on_a_phone(carol, "10-home")
    carol.locator("#collaborative-open").click()
    carol.wait_for_url("**/user/collaborative/lab**")
    visit(carol, f"{service.hub}/user/collaborative/lab/tree/{name}?reset")
    others = carol.locator(".jp-FileEditor .cm-content")
    expect(others).to_be_editable()
    editor.click()
    alice.keyboard.type(SENTENCE)
    expect(others).to_contain_text(SENTENCE)
    picture(carol, "11-collaboration")

    visit(bob, f"{service.hub}/hub/slices")
    holder = bob.locator("#slices tr", has_text="collaborative")
    expect(holder.get_by_role("button", name="Release")).to_be_visible()
    on_a_phone(bob, "12-slices")
    open_lab(carol, service, "collaborative")
    visible, given = list_slices(carol)
    assert visible == [given]

    open_lab(bob, service, "collaborative")
    expect(bob.locator("#jp-main-dock-panel")).to_be_visible()
    assert not bob.url.startswith(f"{service.hub}/")
    picture(bob, "13-administrator")
