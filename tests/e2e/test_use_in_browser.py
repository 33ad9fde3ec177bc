"""The plots of an administrator: told apart, and read with a pointer or the keyboard."""

from __future__ import annotations

import time

from playwright.sync_api import Locator, Page, expect
from walk import Service, on_a_phone, picture, visit

from lab.patience import PATIENCE


def test_administrators_read_values_by_pointer_and_by_keyboard(bob: Page, service: Service) -> None:
    plot = bob.locator("section", has=bob.get_by_role("heading", name="Memory used", exact=True))
    slider = plot.get_by_role("slider")
    end = time.monotonic() + PATIENCE
    visit(bob, f"{service.hub}/hub/use")
    while not slider.count():  # a plot ends up to 30 seconds ago
        assert time.monotonic() < end, "nothing was measured"
        time.sleep(5)
        bob.reload()
    moments = (slider.get_attribute("data-moments") or "").split("|")
    expect(slider).to_have_attribute("aria-valuetext", f"{moments[-1]}, memory: {value(plot)}")

    slider.press("ArrowLeft")
    expect(plot.locator(".moment")).to_have_text(moments[-2])
    expect(slider).to_have_attribute("aria-valuetext", f"{moments[-2]}, memory: {value(plot)}")

    plot.locator(".plot").hover(position={"x": 1, "y": 20})
    expect(plot.locator(".moment")).to_have_text(moments[0])
    assert value(plot) == "no value"
    picture(bob, "11-use")
    on_a_phone(bob, "11-use")


def value(plot: Locator) -> str:
    """Return the value of the plot's only line."""
    return plot.locator(".legend b").inner_text()
