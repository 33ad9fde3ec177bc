"""The page of a user who waits for a slice, until it is their turn."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from walk import PROFILE, Service, on_a_phone, picture, stop_notebook, visit

from lab.demo import GPU_HOST, Demo

# On the hub's machine: hands slices out, and takes them back, as the hub does for notebooks.
DESK = """
import json, sys
from pathlib import Path
from gpufarm_hub.sharing import desk
from gpufarm_hub.sharing.slices import read_gpus
from gpufarm_hub.sharing.waiting import SliceRequest

ours = desk.from_settings(json.loads(Path("/etc/jupyterhub/settings.json").read_text()))
for number in range(7):
    owner = f"guest{number}/"
    if sys.argv[1] == "take":
        limit = ours.limit_of("guest", [])
        request = SliceRequest(owner, sys.argv[2], 1, limit, {})
        ours.take(request, f"guest{number}.service", read_gpus().offered)
    else:
        ours.give_back(owner)
"""


def at_the_desk(*arguments: str) -> None:
    python = ["/opt/jupyterhub/bin/python"]
    lab = ["lab", "--bench", Demo().name, "exec", GPU_HOST, "--"]
    subprocess.run([*lab, *python, "-c", DESK, *arguments], check=True)


@pytest.fixture
def all_slices_held() -> Iterator[None]:
    at_the_desk("take", PROFILE)
    yield
    at_the_desk("give-back")


@pytest.mark.usefixtures("all_slices_held")
def test_who_waits_sees_their_place_and_is_served(alice: Page, service: Service) -> None:
    visit(alice, f"{service.hub}/hub/spawn")
    expect(alice.locator("#gpu-summary")).to_contain_text("All GPU slices are in use")
    alice.select_option("select[name=gpu]", PROFILE)
    alice.locator("#spawn_form [type=submit]").click()
    expect(alice.locator("#queue-place")).to_have_text(f"You wait for a GPU slice {PROFILE}: number 1 of 1.")
    picture(alice, "9-queue")
    on_a_phone(alice, "9-queue")
    at_the_desk("give-back")
    alice.wait_for_url("**/user/alice/**")
    stop_notebook(alice, service)
