# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole path of users through the pages, in a real browser."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace: needs root")
ARTIFACTS = Path(__file__).resolve().parents[3] / ".work" / "artifacts"
PHONE = {"width": 390, "height": 844}  # pixels of CSS, as many phones have them
WIDEST = "Math.max(...[...document.body.querySelectorAll('*')].map((e) => e.getBoundingClientRect().right))"

# A directory that does not answer: what it says is tested without a browser.
AWAY = {"issuer": "ldaps://127.0.0.1:1", "directory": {"user_base": "ou=people,dc=example,dc=org"}}
WITH_PASSWORDS = {
    "issuers": [AWAY],
    "pages": {"issuer": AWAY["issuer"]},
    "templates": {"containers": {"template": "jupyter_container", "people": {"owner": "sub"}}},
}


def sign_in(page: Page, url: str, person: str) -> Page:
    page.goto(url)
    page.get_by_role("link", name=person).click()
    page.wait_for_url(f"{url}/ui/**")
    return page


def check(page: Page, name: str) -> None:
    """Have axe look at a page in both colour schemes, also on a phone, where nobody scrolls sideways."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    before = page.viewport_size
    page.wait_for_load_state()  # on a busy machine, text is there before the colours are
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for size, where in ((before, ""), (PHONE, "-phone")):
            page.set_viewport_size(size)
            found = Axe().run(page)
            assert not found.response["violations"], f"{page.url}, {scheme}: {found.generate_report()}"
            page.screenshot(path=ARTIFACTS / f"pages-{name}{where}-{scheme}.png", full_page=bool(where))
            assert round(page.evaluate(WIDEST)) <= size["width"], f"{page.url} is too wide"
        page.set_viewport_size(before)


def picture(page: Page, name: str) -> None:
    """Keep what the page looks like, for the documentation."""
    page.screenshot(path=ARTIFACTS / f"{name}.png")


@pytest.mark.parametrize("pages", [WITH_PASSWORDS], indirect=True)
def test_the_form_for_a_password(pages) -> None:
    ann = pages.visit()
    ann.goto(f"{pages.url}/ui/quotas")
    expect(ann.get_by_role("heading", name="Sign in")).to_be_visible()
    check(ann, "sign-in")
    ann.get_by_label("Name").fill("ann")
    ann.get_by_label("Password").fill("swordfish")
    ann.keyboard.press("Enter")
    expect(ann.get_by_role("alert")).to_contain_text("the directory cannot tell now who signs in")
    expect(ann.get_by_label("Name")).to_have_value("ann")
    expect(ann.get_by_label("Password")).to_have_value("")
    check(ann, "sign-in-refused")


def test_from_the_sign_in_to_the_removal(pages) -> None:
    complaints: list[str] = []
    ann = pages.visit()
    ann.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    ann.on("pageerror", lambda error: complaints.append(str(error)))
    sign_in(ann, pages.url, "ann")
    expect(ann.get_by_role("heading", name="My deployments")).to_be_visible()
    check(ann, "empty")

    ann.get_by_role("link", name="New deployment").click()
    check(ann, "catalogue")
    ann.get_by_role("link", name="notebooks").click()
    # partitions are offered that the chosen model can have
    flavors = ann.get_by_label("GPU partitions")
    expect(flavors.locator("option")).to_have_count(2)
    ann.get_by_label("GPU model").select_option("NVIDIA A30")
    offered = flavors.locator("option").all_inner_texts()
    assert len(offered) > 2
    assert all("A30" in one or one == "None" for one in offered), offered
    flavors.select_option("4x 1g.6gb MIG GPUs")
    ann.get_by_label("CPUs", exact=True).fill("0")
    ann.get_by_label("Secret of the client").fill("swordfish")
    ann.get_by_role("button", name="Deploy").click()

    expect(ann.get_by_role("alert")).to_be_focused()
    expect(ann.get_by_label("CPUs", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(ann.get_by_label("CPUs", exact=True)).to_have_value("0")
    expect(flavors).to_have_value("4x 1g.6gb MIG GPUs")
    expect(ann.get_by_label("Secret of the client")).to_have_value("")
    check(ann, "wrong")
    picture(ann, "19-form")
    ann.get_by_role("alert").get_by_role("link", name="CPUs").click()
    expect(ann.get_by_label("CPUs", exact=True)).to_be_focused()
    ann.keyboard.press("Control+a")
    ann.keyboard.type("8")
    ann.keyboard.press("Enter")

    expect(ann.get_by_role("status")).to_contain_text("Creation in progress")
    own = ann.url
    expect(ann.locator("#log")).to_contain_text("server.configure on gpu1 ...")
    check(ann, "progress")
    (pages.state / "go").touch()
    expect(ann.get_by_role("status")).to_contain_text("Creation complete")  # nobody has loaded the page again
    expect(ann.get_by_role("link", name="https://gpu1.example.org:8888/")).to_be_visible()
    expect(ann.locator("main")).not_to_contain_text("swordfish")
    check(ann, "details")
    picture(ann, "18-deployment")

    bob = sign_in(pages.visit(), pages.url, "bob")
    expect(bob.get_by_text("You have no deployments.")).to_be_visible()
    answer = bob.goto(own)
    assert answer is not None and answer.status == 404
    bob.get_by_role("link", name="Quotas").click()
    expect(bob.get_by_role("progressbar").nth(2)).to_have_attribute("value", "1")  # of the group
    check(bob, "quotas")
    bob.get_by_role("link", name="Hours").click()
    expect(bob.locator("tfoot")).to_contain_text("17.4")  # and none of others
    expect(bob.get_by_text("hub1, no numbers yet")).to_be_visible()

    eve = sign_in(pages.visit(), pages.url, "eve")
    eve.get_by_role("link", name="All deployments").click()
    expect(eve.get_by_role("link", name="notebooks", exact=True)).to_be_visible()
    check(eve, "all")
    eve.get_by_role("link", name="Machines").click()
    expect(eve.get_by_role("cell", name="gpu1")).to_be_visible()
    check(eve, "machines")
    eve.get_by_role("link", name="All hours").click()
    eve.get_by_label("machine").check()
    eve.get_by_role("button", name="Show").click()
    expect(eve.get_by_role("cell", name="bob").first).to_be_visible()
    check(eve, "all-hours")

    ann.get_by_role("link", name="Hours").click()
    expect(ann.get_by_role("progressbar")).to_have_count(3)
    with ann.expect_download() as taken:
        ann.get_by_role("link", name="CSV").click()
    assert "physics" in taken.value.path().read_text()
    ann.get_by_label("profile").check()
    ann.get_by_role("button", name="Show").click()
    check(ann, "hours")
    picture(ann, "20-hours")
    ann.goto(own)
    (pages.state / "go").unlink()
    ann.get_by_role("link", name="Delete").click()
    expect(ann.get_by_role("heading", name="Delete notebooks?")).to_be_visible()
    check(ann, "delete")
    ann.get_by_role("button", name="Delete it").click()
    expect(ann.get_by_role("status")).to_contain_text("Removal in progress")
    expect(ann.locator("#log")).to_contain_text(
        re.compile(r"hub\.configure on gpu1 \.\.\.\n?$")
    )  # a worker has begun
    eve.get_by_role("link", name="Queue").click()
    expect(eve.get_by_text("running")).to_be_visible()
    check(eve, "queue")
    (pages.state / "go").touch()
    expect(ann.get_by_role("status")).to_contain_text("Removal complete")
    ann.get_by_role("link", name="My deployments").click()
    expect(ann.get_by_text("You have no deployments.")).to_be_visible()

    ann.get_by_role("button", name="Sign out").click()
    expect(ann.get_by_role("heading", name="Signed out")).to_be_visible()
    ann.goto(own)
    expect(ann.get_by_role("link", name="ann")).to_be_visible()  # the issuer asks again
    # a form that is refused is a page with status 400, and the issuer has no icon
    assert [text for text in complaints if "Failed to load resource" not in text] == []


@pytest.mark.parametrize(
    "text", ["javascript:alert(1)", "<img src=x onerror=alert(1)><script>alert(1)</script>"]
)
def test_what_users_write_is_no_program(pages, text: str) -> None:
    said: list[str] = []
    ann = pages.visit()
    ann.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    sign_in(ann, pages.url, "ann").goto(f"{pages.url}/ui/catalogue/notebooks")
    (pages.state / "go").touch()
    ann.get_by_label("Groups", exact=True).fill(text)
    ann.get_by_role("button", name="Deploy").click()
    expect(ann.get_by_role("status")).to_contain_text("Creation complete")
    shown = ann.locator("#live dd", has_text=text)
    expect(shown).to_be_visible()
    shown.click()
    assert shown.locator("a, img, script").count() == 0
    assert said == []


def test_what_a_job_has_printed(pages) -> None:
    ann = pages.visit()
    sign_in(ann, pages.url, "ann").goto(f"{pages.url}/ui/catalogue/training")
    (pages.state / "go").touch()
    for label, text in (
        ("Name", "train"),
        ("Schedule", "R/2027-01-01T02:00:00Z/P1D"),
        ("Image", "train:1"),
    ):
        ann.get_by_label(re.compile(f"^{label}")).fill(text)
    ann.get_by_label(re.compile("^Command")).fill("python3 train.py")
    ann.get_by_role("button", name="Deploy").click()
    expect(ann.get_by_role("status")).to_contain_text("Creation complete")
    check(ann, "console-empty")
    ann.get_by_role("button", name="Read the output").click()
    expect(ann.locator("#stdout")).to_contain_text("epoch 100")  # nobody has loaded the page again
    expect(ann.get_by_role("button", name="Read again")).to_be_visible()
    expect(ann.locator("#tasks tbody tr")).to_have_count(3)
    check(ann, "console")
    ann.locator("#console-title").evaluate("(title) => title.scrollIntoView()")
    picture(ann, "21-console")
    ann.locator("#tasks tbody tr").nth(1).get_by_role("link").click()
    expect(ann.locator("#stderr")).to_have_text("RuntimeError: CUDA out of memory <b>\n")
    expect(ann.locator("#stdout")).to_contain_text("xxx")
    assert ann.locator("#stdout").evaluate("(one) => one.scrollTop + one.clientHeight > one.scrollHeight - 5")
    check(ann, "console-failed")


def test_without_scripts(pages) -> None:
    """Scripts are a help, and no page needs them."""
    page = pages.visit()
    plain = page.context.browser.new_context(ignore_https_errors=True, java_script_enabled=False)
    ann = sign_in(plain.new_page(), pages.url, "ann")
    ann.goto(f"{pages.url}/ui/catalogue/notebooks")
    ann.get_by_role("button", name="Deploy").click()
    expect(ann.get_by_role("status")).to_contain_text("Creation in progress")
    (pages.state / "go").touch()
    expect(ann.get_by_role("status")).to_contain_text("Creation complete")  # the page loads itself again
