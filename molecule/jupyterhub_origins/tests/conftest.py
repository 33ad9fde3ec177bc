"""Hostile users, what they plant, and the browsers of those who come to look."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from testinfra.host import Host

from lab.bench import Bench, cache_dir, state_dir
from lab.patience import PATIENCE
from lab.visitor import Visitor, trust

EVIL = Path(__file__).with_name("evil.py").read_text()
MILLISECONDS = 1000 * PATIENCE
expect.set_options(timeout=MILLISECONDS)

# Run in a notebook by its owner, or by anybody who shares it.
PLANT = f"""
import json, pathlib
home = pathlib.Path.home()
evil = home / "evil"
evil.mkdir(exist_ok=True)
(evil / "evil.py").write_text({EVIL!r})
(home / ".jupyter").mkdir(exist_ok=True)
(home / ".jupyter" / "jupyter_server_config.py").write_text(
    f"import sys\\nsys.path.insert(0, {{str(evil)!r}})\\n"
    "c = get_config()\\nc.ServerApp.jpserver_extensions = {{'evil': True}}\\n"
)
lab = home / ".local" / "share" / "jupyter" / "labextensions" / "planted"
(lab / "static").mkdir(parents=True, exist_ok=True)
(lab / "package.json").write_text(json.dumps(
    {{"name": "planted", "version": "1.0.0",
      "jupyterlab": {{"_build": {{"load": "static/remoteEntry.js", "extension": "./extension"}}}}}}))
(lab / "static" / "remoteEntry.js").write_text(
    "var _JUPYTERLAB = window._JUPYTERLAB = window._JUPYTERLAB || {{}};"
    "_JUPYTERLAB['planted'] = {{init: () => {{}}, get: async () => () => "
    "({{__esModule: true, default: {{id: 'planted:here', autoStart: true, "
    "activate: () => {{ window.planted = 'here'; }}}}}})}};"
)
(home / "secret.txt").write_text("secret of " + home.name)
"""


class Apart(Visitor):
    """A visitor beside a browser, whose library keeps the thread's event loop for itself."""

    def execute(self, code: str, timeout: float = PATIENCE) -> str:
        """Run Python as any visitor does."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(super().execute, code, timeout).result()


@pytest.fixture
def hub(host: Host) -> str:
    """Return the hub's address."""
    return str(
        host.check_output('sed -nE \'s/.*"public_url": "([^"]+)".*/\\1/p\' /etc/jupyterhub/settings.json')
    )


@pytest.fixture(scope="session")
def browsers(bench: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Browser]]:
    """Return a real browser in the network of each machine, which finds names as the site's DNS would."""
    network = Bench(os.environ["LAB_BENCH"], state_dir(), cache_dir()).network
    with sync_playwright() as playwright:
        started = {}
        for entry in bench["hosts"]:
            folder = tmp_path_factory.mktemp("chromium")
            program = folder / "chromium"
            inside = f"nsenter --net=/run/netns/{network.namespace(entry['name'])}"
            program.write_text(f'#!/bin/sh\nexec {inside} /usr/bin/chromium "$@"\n')
            program.chmod(0o700)
            home = str(folder)
            started[entry["name"]] = playwright.chromium.launch(
                executable_path=program,
                args=[
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-dev-shm-usage",
                    "--disable-background-networking",
                    "--disable-component-update",
                    "--disable-sync",
                    "--no-first-run",
                    # That they verify is for the scripted visitor to check.
                    "--ignore-certificate-errors",
                    f"--host-resolver-rules=MAP *.test {entry['address']}, MAP * ~NOTFOUND, EXCLUDE 10.77.*",
                ],
                env={"HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home, "PATH": "/usr/bin:/bin"},
            )
        yield started
        for browser in started.values():
            browser.close()


@pytest.fixture
def visit(
    host: Host, facts: dict[str, Any], hub: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Visitor]]:
    """Log users in, who do by a program what they could do in a browser."""
    resolve = socket.getaddrinfo

    def of_the_site(name: Any, *args: Any, **options: Any) -> Any:
        return resolve(facts["address"] if str(name).endswith(".test") else name, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", of_the_site)
    context = trust(host.file("/etc/jupyterhub/tls/ca.crt").content_string)
    with contextlib.ExitStack() as stack:

        def log_in(name: str) -> Visitor:
            visitor = stack.enter_context(Apart(hub, context))
            visitor.login_here(name, f"password of {name}")
            return visitor

        yield log_in


@pytest.fixture
def browse(browsers: dict[str, Browser], facts: dict[str, Any], hub: str) -> Iterator[Callable[[str], Page]]:
    """Log users in, each in a browser without a past."""
    with contextlib.ExitStack() as stack:

        def log_in(name: str) -> Page:
            context = browsers[facts["name"]].new_context(ignore_https_errors=True)
            stack.callback(context.close)
            context.set_default_timeout(MILLISECONDS)
            page = context.new_page()
            page.goto(f"{hub}/hub/login")
            page.fill("input[name=username]", name)
            page.fill("input[name=password]", f"password of {name}")
            page.locator("#login_submit").click()
            page.wait_for_url(lambda url: "/hub/login" not in url)
            return page

        yield log_in


@pytest.fixture
def planted(visit: Callable[[str], Visitor]) -> Callable[[str, str], str]:
    """Have a user plant what is evil into a home that is theirs or shared; return where its server is."""

    def plant(name: str, owner: str) -> str:
        visitor = visit(name)
        visitor.use_server_of(owner)
        if not visitor.running():
            visitor.spawn()
        visitor.execute(PLANT)
        visitor.stop()
        visitor.spawn()
        return visitor.server_url()

    return plant
