"""A person plots, installs a package, stops, starts again and still has it; another person does not."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from walk import Service, kernels, on_a_phone, open_lab, picture, run_cell, start, stop_notebook, visit

PLOT = """
import numpy, matplotlib.pyplot as plot
x = numpy.linspace(0, 6, 100)
plot.plot(x, numpy.sin(x))
plot.show()
"""
ADD = """
%pip install humanize
!python -m ipykernel install --user --name mine --display-name Mine
"""
HAS = """
from importlib.util import find_spec
print("humanize:", find_spec("humanize") is not None)
"""


def look_after_packages(page: Page, service: Service) -> None:
    """Save the list of packages, remove all, and install them again from the file."""
    open_lab(page, service, "alice")
    with page.context.expect_page() as opened:
        page.locator(".jp-LauncherCard", has_text="My packages").click()
    packages = opened.value
    row = packages.locator("#scientific tbody tr", has_text="humanize")
    expect(row).to_be_visible()
    picture(packages, "17-packages")
    on_a_phone(packages, "17-packages")
    # Without the token of the page, its cookies are no sign-in.
    reset = {"environment": "scientific", "action": "reset"}
    forged = page.request.post(packages.url, form=reset, max_redirects=0)
    assert forged.status in (302, 403)
    packages.reload()
    expect(row).to_be_visible()
    with packages.expect_download() as saved:
        packages.get_by_role("link", name="Save the list as a file").click()
    file = saved.value.path()
    assert file.read_text().startswith("humanize==")
    packages.get_by_text("Remove all of them").click()
    packages.get_by_role("button", name="Remove all packages from Scientific Python").click()
    expect(packages.locator("#scientific")).to_contain_text("You have installed none.")
    packages.get_by_label("Install the packages of such a file").set_input_files(file)
    packages.get_by_role("button", name="Install in Scientific Python").click()
    expect(packages.locator("#done")).to_contain_text("Scientific Python: done.")
    expect(row).to_be_visible()
    packages.close()


def test_a_person_plots_and_keeps_a_package(alice: Page, bob: Page, service: Service) -> None:
    visit(alice, f"{service.hub}/hub/spawn")
    start(alice, service, "alice")
    expect(kernels(alice).filter(has_text="Scientific Python")).to_be_visible()
    expect(kernels(alice).filter(has_text="ipykernel")).to_have_count(0)  # the Python of the hub
    expect(run_cell(alice, PLOT).locator("img")).to_be_visible()
    picture(alice, "14-plot")
    open_lab(alice, service, "alice")
    expect(run_cell(alice, ADD)).to_contain_text("Installed kernelspec mine")

    look_after_packages(alice, service)

    stop_notebook(alice, service)
    visit(alice, f"{service.hub}/hub/spawn")
    start(alice, service, "alice")
    expect(kernels(alice).filter(has_text="Mine")).to_be_visible()
    expect(run_cell(alice, HAS)).to_contain_text("humanize: True")

    visit(bob, f"{service.hub}/hub/spawn")
    start(bob, service, "bob")
    expect(kernels(bob).filter(has_text="Mine")).to_have_count(0)
    expect(run_cell(bob, HAS)).to_contain_text("humanize: False")
