"""The path of a user who sets up notebooks by a form, uses a slice there, and removes all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from walk import (
    PROFILE,
    Service,
    enter,
    in_the_providers_network,
    list_slices,
    new_context,
    picture,
    start,
)

from lab.chromium import chromium
from lab.demo_paas import FLAVOR, GROUP, MACHINE, NOTEBOOKS, SERVICE, Demo
from lab.stage import ROOT
from lab.system import run
from lab.tokens import access_token
from lab.visitor import trust

SECONDS = 1200  # of a deployment on a busy machine


@dataclass
class Site:
    """The demo of the service, which must be up.

    Attributes:
        pages: their address.
        iam: address of the provider.
        passwords: of the people, by name.
        ssh: configuration of ssh for the hosts.
        authorities: certificates of service and provider, in PEM form.
    """

    pages: str
    iam: str
    passwords: dict[str, str]
    ssh: str
    authorities: list[str]


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


@pytest.fixture(scope="module")
def site(demo: Demo) -> Site:
    status = demo.bench(print).status()
    if not status["iam"]:
        pytest.fail(f"demo {demo.name} is not up: start it with python -m lab.demo_paas up")
    address = next(host["address"] for host in status["hosts"] if host["name"] == SERVICE)
    logins = json.loads(Path(status["iam"]["users_file"]).read_text())
    return Site(
        f"https://{address}/ui",
        status["iam"]["url"],
        {name: login["password"] for name, login in logins.items()},
        status["ssh_config"],
        [(demo.directory / name).read_text() for name in ("paas-ca.crt", "iam-ca.crt")],
    )


@pytest.fixture(scope="module")
def window(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("chromium")
    with chromium(folder, "10.77.*", in_the_providers_network(folder, demo)) as browser:
        yield browser


def signed_in(window: Browser, site: Site, user: str) -> Page:
    """Sign in to the pages at the provider, and approve what they ask for."""
    page = new_context(window).new_page()
    page.goto(site.pages)
    page.wait_for_url(f"{site.iam}/**")
    page.fill("input[name=username]", user)
    page.fill("input[name=password]", site.passwords[user])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url(f"{site.pages}**")
    return page


def ask_for_notebooks(page: Page, site: Site) -> str:
    """Fill in the form as the demo says; return the address of the page of the deployment."""
    page.get_by_role("link", name="New deployment").click()
    page.get_by_role("link", name=NOTEBOOKS, exact=True).click()
    closed = page.locator("details.tab:not([open]) > summary")
    while closed.count():
        closed.first.click()
    page.locator("#in-gpu_model").select_option("NVIDIA A100-SXM4-80GB")  # then its partitions are offered
    page.locator("#in-gpu_partition_flavor").select_option(FLAVOR)
    page.locator("#in-certificate_type").select_option("self-signed")
    page.locator("#in-iam_url").fill(site.iam)
    page.locator("#in-cvmfs_repos").fill("")
    picture(page, "21-own-notebooks-form")
    page.get_by_role("button", name="Deploy").click()
    expect(page.get_by_role("status")).to_contain_text("Creation in progress")
    return page.url


def test_a_user_asks_for_notebooks_uses_them_and_removes_them(window: Browser, site: Site) -> None:
    alice = signed_in(window, site, "alice")
    own = ask_for_notebooks(alice, site)
    expect(alice.get_by_role("status")).to_contain_text("Creation complete", timeout=1000 * SECONDS)
    picture(alice, "22-own-notebooks")
    hub = alice.get_by_role("link", name=":8888").get_attribute("href")
    assert hub is not None

    other = signed_in(window, site, "carol")
    expect(other.get_by_text("You have no deployments.")).to_be_visible()
    answer = other.goto(own)
    assert answer is not None and answer.status == 404

    service = Service(hub.rstrip("/"), site.iam, site.passwords)
    notebook = enter(new_context(window).new_page(), service, "alice")
    start(notebook, service, "alice", PROFILE)
    listed, used = list_slices(notebook)
    assert len(listed) == 1 and listed[0] == used
    picture(notebook, "23-own-notebook")

    alice.goto(own)
    alice.get_by_role("link", name="Delete").click()
    alice.get_by_role("button", name="Delete it").click()
    expect(alice.get_by_role("status")).to_contain_text("Removal complete", timeout=1000 * SECONDS)
    left = run(["ssh", "-F", site.ssh, MACHINE, "ls", "/etc/systemd/system", "/opt"])
    assert "jupyterhub" not in left


def test_a_member_of_no_group_gets_nothing(window: Browser, site: Site) -> None:
    mallory = signed_in(window, site, "mallory")
    mallory.get_by_role("link", name="New deployment").click()
    expect(mallory.get_by_role("link", name=NOTEBOOKS, exact=True)).to_have_count(0)

    context = trust(*site.authorities)
    token = access_token(site.iam, context, "mallory", site.passwords["mallory"])
    url = site.pages.removesuffix("/ui")
    with httpx.Client(base_url=url, verify=context, trust_env=False, timeout=60) as http:
        http.headers["Authorization"] = f"Bearer {token}"
        template = (ROOT / f"tosca/templates/{NOTEBOOKS}.yaml").read_text()
        refused = http.post("/deployments", json={"template": template, "userGroup": GROUP})
        assert refused.status_code == 403, refused.text
        assert http.get("/deployments?createdBy=me").json()["page"]["totalElements"] == 0
