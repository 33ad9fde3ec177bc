"""A person plots, installs a package, stops, starts again and still has it; another person does not."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from walk import Service, kernels, picture, run_cell, start, stop_notebook

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


def test_a_person_plots_and_keeps_a_package(alice: Page, bob: Page, service: Service) -> None:
    alice.goto(f"{service.hub}/hub/spawn")
    start(alice, service, "alice")
    expect(kernels(alice).filter(has_text="Scientific Python")).to_be_visible()
    expect(kernels(alice).filter(has_text="ipykernel")).to_have_count(0)  # the Python of the hub
    expect(run_cell(alice, PLOT).locator("img")).to_be_visible()
    picture(alice, "14-plot")
    alice.goto(f"{service.hub}/user/alice/lab?reset")
    expect(run_cell(alice, ADD)).to_contain_text("Installed kernelspec mine")

    stop_notebook(alice, service)
    alice.goto(f"{service.hub}/hub/spawn")
    start(alice, service, "alice")
    expect(kernels(alice).filter(has_text="Mine")).to_be_visible()
    expect(run_cell(alice, HAS)).to_contain_text("humanize: True")

    bob.goto(f"{service.hub}/hub/spawn")
    start(bob, service, "bob")
    expect(kernels(bob).filter(has_text="Mine")).to_have_count(0)
    expect(run_cell(bob, HAS)).to_contain_text("humanize: False")
