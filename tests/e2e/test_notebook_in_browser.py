"""The path of a user, in a real browser, from the login page to Python on a GPU slice."""

from __future__ import annotations

import re
import time

from playwright.sync_api import Page, expect
from walk import PROFILE, Service, list_slices, on_a_phone, open_login, picture, sign_in, start, visit


def test_a_wrong_password_is_told_in_plain_words(page: Page, service: Service) -> None:
    visit(page, service.hub)
    expect(page.get_by_role("heading")).to_have_text("Sign in")
    on_a_phone(page, "0-sign-in")
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


def test_somebody_outside_the_groups_is_told_why(page: Page, service: Service) -> None:
    open_login(page, service)
    sign_in(page, service, "mallory")
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url(f"{service.hub}/**")
    picture(page, "5-refused")
    on_a_phone(page, "5-refused")
    expect(page.locator(".error h1")).to_have_text("Access refused")
    expect(page.locator(".error p")).to_contain_text("ml-infn-users")
    page.get_by_role("link", name="Sign in as somebody else").click()
    page.wait_for_url(f"{service.iam}/**")
    sign_in(page, service, "alice")
    expect(page.get_by_role("heading")).to_contain_text("Approval required")


def bring_a_file_in_and_out(page: Page) -> None:
    """As the user's guide says."""
    content = b"x,y\n1,2\n"
    with page.expect_file_chooser() as chooser:
        page.get_by_title("Upload Files").first.click()
    name = f"data-{time.time_ns()}.csv"
    chooser.value.set_files({"name": name, "mimeType": "text/csv", "buffer": content})
    page.locator(".jp-DirListing-item", has_text=name).click(button="right")
    with page.expect_download() as saved:
        page.locator(".lm-Menu-item[data-command='filebrowser:download']").click()
    assert saved.value.path().read_bytes() == content


def make_and_revoke_a_token(page: Page, service: Service) -> None:
    """Also over a slow line, on which a page can be seen before its script is there."""
    page.route("**/moment.js*", lambda _route: None)  # its script waits for this one
    page.goto(f"{service.hub}/hub/token", wait_until="domcontentloaded")
    page.get_by_label("Purpose").fill("my program")
    make = page.get_by_role("button", name="Make a token")
    expect(make).to_be_disabled()
    page.get_by_label("Purpose").press("Enter")
    page.unroute_all()
    make.click()
    expect(page.locator("#token-result")).to_have_text(re.compile(r"\S{32,}"))
    page.reload()
    on_a_phone(page, "16-tokens")
    revoke = page.get_by_role("button", name="Revoke: my program")
    revoke.click()
    expect(revoke).to_be_hidden()


def test_python_in_a_notebook_sees_exactly_the_slice_that_was_picked(
    alice: Page, bob: Page, service: Service
) -> None:
    """Two users at once, until an administrator releases the slice of one and the other one stops."""
    visit(alice, f"{service.hub}/hub/spawn")
    choice = alice.locator(f"select[name=gpu] option[value='{PROFILE}']")
    expect(choice).to_contain_text("7 of 7 free")
    alice.select_option("select[name=gpu]", PROFILE)
    picture(alice, "3-spawn-form")
    on_a_phone(alice, "3-spawn-form")
    start(alice, service, "alice", PROFILE)
    visible, given = list_slices(alice)
    picture(alice, "4-notebook")
    assert visible == [given]
    bring_a_file_in_and_out(alice)

    visit(bob, f"{service.hub}/hub/spawn")
    expect(bob.locator(f"select[name=gpu] option[value='{PROFILE}']")).to_contain_text("6 of 7 free")
    start(bob, service, "bob", PROFILE)
    others, _ = list_slices(bob)
    assert len(others) == 1
    assert set(others).isdisjoint(visible)

    visit(alice, f"{service.hub}/hub/my-use")
    expect(alice.locator("#held tbody tr")).to_contain_text(PROFILE)
    picture(alice, "13-my-use")
    on_a_phone(alice, "13-my-use")

    visit(bob, f"{service.hub}/hub/admin")
    bob.get_by_label("Part of the name").fill("ali")
    expect(bob.locator("#users tbody tr")).to_have_count(1)
    expect(bob.get_by_role("link", name="Open the notebook of alice")).to_be_visible()
    expect(bob.get_by_role("button", name="Stop the notebook of alice")).to_be_visible()
    picture(bob, "6-administrator")
    on_a_phone(bob, "6-administrator")
    bob.get_by_role("link", name="GPU slices").click()
    expect(bob.locator("#slices tbody tr")).to_have_count(7)
    expect(bob.locator("#slices-summary")).to_have_text("5 of 7 free")
    expect(bob.get_by_text("Nobody waits.")).to_be_visible()
    picture(bob, "7-slices")
    on_a_phone(bob, "7-slices")
    bob.once("dialog", lambda dialog: dialog.accept())
    bob.locator("#slices tr", has_text="alice").get_by_role("button", name="Release").click()
    expect(bob.locator("#slices tr", has_text="alice")).to_have_count(0)
    visit(alice, f"{service.hub}/hub/home")
    expect(alice.locator("#stop")).to_be_hidden()
    expect(alice.locator("#notebooks")).to_contain_text("It is stopped.")
    expect(alice.get_by_role("status").filter(has_text="bob stopped it")).to_be_visible()
    on_a_phone(alice, "8-home")

    visit(alice, f"{service.hub}/hub/user/alice/lab")
    expect(alice.get_by_role("heading")).to_have_text("The notebook does not run")
    on_a_phone(alice, "15-not-running")
    make_and_revoke_a_token(alice, service)

    visit(bob, f"{service.hub}/hub/home")
    bob.get_by_role("button", name="Sign out").click()
    expect(bob.locator("#goes-on")).to_contain_text(f"holds {PROFILE}")
    on_a_phone(bob, "14-sign-out")
    bob.get_by_role("link", name="Stay signed in").click()
    bob.get_by_role("link", name="My use").click()
    bob.once("dialog", lambda dialog: dialog.accept())
    bob.get_by_role("button", name="Stop the notebook default").click()
    expect(bob.locator("#held-none")).to_be_visible()
    visit(bob, f"{service.hub}/hub/spawn")
    expect(bob.locator(f"select[name=gpu] option[value='{PROFILE}']")).to_contain_text("7 of 7 free")
