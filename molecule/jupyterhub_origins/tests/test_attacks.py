"""Hostile users of notebooks, in the browsers of those who come to look, get nothing but their own notebook.

Scripts in a page of a notebook are its owner's: extensions in the home, what the server sends, and scripts
in outputs. So what a test evaluates in such a page stands for all of them.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import uuid
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import expect

# Users whose rights are at stake, and owners of the notebooks that they open.
VISITS = [("carol", "collaborative"), ("bob", "collaborative"), ("bob", "alice")]

TRY = """async ([hub, user, own, note]) => {
  const found = {};
  const attempt = async (name, action) => {
    try { found[name] = String(await action()); } catch (error) { found[name] = `refused: ${error}`; }
  };
  const read = async (url, options = {}) => {
    const answer = await fetch(url, { credentials: "include", ...options });
    return `${answer.status} ${await answer.text()}`;
  };
  const later = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));
  const json = { "Content-Type": "application/json" };
  let xsrf = "";
  await attempt("page of the hub", async () => {
    const text = await read(`${hub}/hub/home`);
    xsrf = /xsrf_token: "([^"]*)"/.exec(text)?.[1] ?? "";
    return text;
  });
  const tokens = `${hub}/hub/api/users/${user}/tokens`;
  const body = JSON.stringify({ note });
  const blind = { method: "POST", mode: "no-cors", body };
  const headers = { ...json, "X-XSRFToken": xsrf };
  await attempt("token", () => read(tokens, { method: "POST", headers, body }));
  await attempt("blind token", () => read(tokens, blind));
  await attempt("users", () => read(`${hub}/hub/api/users`));
  await attempt("frame", async () => {
    const frame = document.createElement("iframe");
    frame.src = `${hub}/hub/home`;
    document.body.append(frame);
    await later(3);
    return frame.contentDocument.documentElement.outerHTML;
  });
  await attempt("window", async () => {
    const opened = window.open(`${hub}/hub/home`);
    await later(3);
    const text = opened.document.documentElement.outerHTML;
    opened.close();
    return text;
  });
  await attempt("home", () => read(`${own}api/contents/secret.txt`));
  await attempt("terminal", () => read(`${own}api/terminals`, blind));
  await attempt("socket", () => new Promise((done, failed) => {
    const socket = new WebSocket(`${own.replace("https", "wss")}api/events/subscribe`);
    socket.onopen = () => done("socket is open");
    socket.onerror = failed;
  }));
  return found;
}"""

STOP = """([hub, user]) =>
  fetch(`${hub}/hub/api/users/${user}/server`, { method: "DELETE", credentials: "include" }).catch(() => 0)"""

START = """async ([hub, user]) => {
  const later = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));
  const server = `${hub}/hub/api/users/${user}/server`;
  for (const mode of ["no-cors", "cors"])
    await fetch(server, { method: "POST", mode, credentials: "include", body: "{}" }).catch(() => 0);
  const link = `${hub}/hub/spawn/${user}?memory=512M&gpu=`;
  await fetch(link, { mode: "no-cors", credentials: "include" }).catch(() => 0);
  window.open(link);
  const form = document.createElement("form");
  form.method = "post";
  form.target = "_blank";
  form.action = `${hub}/hub/spawn/${user}`;
  form.innerHTML = "<input name=memory value=512M>";
  document.body.append(form);
  form.submit();
  await later(5);
}"""


def prefix(hub):
    """Return what the names of the hub's cookies begin with in browsers."""
    return f"__Host-Http-{urlsplit(hub).port or 443}-"


def look_at(page, hub, owner):
    """Open the notebook of somebody, as users do, and then the page that was planted there."""
    page.goto(f"{hub}/user/{owner}/lab")
    allow = page.get_by_role("button", name="Agree and open")
    expect(page.locator("#jp-main-dock-panel").or_(allow)).to_be_visible()
    if allow.is_visible():
        allow.click()
    expect(page.locator("#jp-main-dock-panel")).to_be_visible()
    assert page.evaluate("window.planted") == "here"
    origin = urlsplit(page.url)
    base = f"{origin.scheme}://{origin.netloc}/user/{owner}/"
    page.goto(f"{base}evil/page")
    assert page.title() == "evil"
    return base


@pytest.mark.parametrize(("victim", "owner"), VISITS)
def test_a_notebook_gets_nothing_of_its_visitor(victim, owner, hub, visit, browse, planted):
    planted("alice", owner)
    there = visit(victim)
    if not there.running():
        there.spawn()
    there.execute("open('secret.txt', 'w').write('my own secret')")
    own = there.server_url()
    page = browse(victim)
    look_at(page, hub, owner)
    note = f"stolen {uuid.uuid4()}"
    found = page.evaluate(TRY, [hub, victim, own, note])
    for what in ("page of the hub", "token", "users", "frame", "window", "home", "socket"):
        assert found[what].startswith("refused"), (what, found[what][:200])
    tokens = there._api("GET", f"/hub/api/users/{victim}/tokens").json()["api_tokens"]
    assert note not in {token["note"] for token in tokens}
    assert there._api("GET", f"/user/{victim}/api/terminals", f"/user/{victim}/").json() == []

    page.evaluate(STOP, [hub, victim])
    assert there.running()
    there.stop()
    page.evaluate(START, [hub, victim])
    assert not there.running() and there.settled()


@pytest.mark.parametrize("owner", ["collaborative", "alice"])
def test_what_a_notebook_is_sent_is_worth_nothing_elsewhere(owner, host, hub, visit, browse, planted):
    """Its owner sees all that browsers send, such as by curl in a terminal."""
    planted("alice", owner)
    page = browse("bob")
    look_at(page, hub, owner)
    seen = set(page.evaluate("fetch('seen').then((answer) => answer.json())")) - {""}
    assert seen
    pairs = {pair.strip() for header in seen for pair in header.split(";")}
    names = {pair.partition("=")[0] for pair in pairs}
    assert not [name for name in names if "hub-login" in name or "session" in name or name.startswith("__")]
    for pair in pairs:
        for cookies in (pair, f"{prefix(hub)}{pair}"):
            for path in ("/hub/api/user", "/hub/api/users", "/hub/api/users/bob/tokens"):
                status = host.check_output(
                    "curl --silent --insecure --output /dev/null --write-out '%%{http_code}' --header %s %s",
                    f"Cookie: {cookies}",
                    f"{hub}{path}",
                )
                assert status == "403", (path, cookies)


HEADERS = [
    'Clear-Site-Data: "*"',
    "Strict-Transport-Security: max-age=0",
    "Set-Cookie: {cookie}=evil; Path=/; Secure; HttpOnly",
    "Set-Cookie: ={cookie}=evil; Path=/; Secure; HttpOnly",
    "Set-Cookie: jupyterhub-hub-login=evil; Path=/hub/; Secure",
    "Set-Cookie: jupyterhub-hub-login=evil; Path=/hub/; Domain={parent}; Secure",
]
TOSS = """async ([cookie, parent, socket]) => {
  for (const name of [cookie, "jupyterhub-hub-login"])
    for (const path of ["/", "/hub/", "/hub/home"])
      for (const domain of ["", `; Domain=${parent}`])
        document.cookie = `${name}=evil; Path=${path}; Secure${domain}`;
  await navigator.serviceWorker.register("worker.js", { scope: "/" });
  await new Promise((done) => {
    const opened = new WebSocket(socket);
    opened.onopen = opened.onerror = done;
  });
}"""


def test_a_notebook_changes_nothing_of_its_visitors_session_at_the_hub(hub, visit, browse, planted):
    planted("alice", "collaborative")
    page = browse("carol")
    base = look_at(page, hub, "collaborative")
    address = urlsplit(hub)
    cookie, parent = f"{prefix(hub)}jupyterhub-hub-login", address.hostname.removeprefix("hub.")
    filled = [header.format(cookie=cookie, parent=parent) for header in HEADERS]
    page.goto(f"{base}evil/page?" + "&".join(f"header={quote(header)}" for header in filled))
    setting = quote(f"{cookie}=evil; Path=/; Secure; HttpOnly")
    page.evaluate(TOSS, [cookie, parent, f"{base.replace('https', 'wss')}evil/socket?cookie={setting}"])
    opened = page.context.new_page()
    opened.goto(f"{hub}/hub/home")
    expect(opened.locator("#collaborative")).to_be_visible()
    expect(opened.locator("body")).to_contain_text("carol")
    opened.goto(f"{base}evil/page")
    assert "owned" in opened.content()  # its own pages are its own affair


def test_the_hub_leads_back_to_nobody_else(hub, browse, planted):
    base = planted("alice", "collaborative")
    page = browse("carol")
    for target in ("https://evil.test/", "//evil.test/", "/\\evil.test", f"{base}evil/page"):
        page.goto(f"{hub}/hub/login?next={quote(target, safe='')}")
        assert page.url.startswith(f"{hub}/") or page.url.startswith(base), target
        assert "evil.test" not in urlsplit(page.url).netloc


def test_a_stopped_notebook_leads_to_the_hub(hub, visit, browse):
    carol = visit("carol")
    if not carol.running():
        carol.spawn()
    own = carol.server_url()
    carol.stop()
    page = browse("carol")
    page.goto(f"{own}lab")
    assert page.url.startswith(f"{hub}/hub/")
