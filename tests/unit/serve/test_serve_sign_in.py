# SPDX-License-Identifier: GPL-3.0-or-later
"""The sign-in to the pages, the login of a browser, and what strangers and other sites must not get."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from doubles.issuer import ANN, OTHER_KEY, Issuer, issuer
from gpufarm.serve.tables import Login
from gpufarm.serve.web import links, logins
from hypothesis import given
from hypothesis import strategies as st
from serve_site import Browser, Site, site, with_pages
from sqlalchemy import select

COOKIE = "__Host-gpufarm"


@pytest.fixture
def paas(tmp_path: Path, iam: Issuer) -> Iterator[Site]:
    iam.accounts, iam.more, iam.codes = {"ann": ANN}, {}, {}
    with site(tmp_path, iam, **with_pages(tmp_path, iam)) as made:
        yield made
    iam.more = {}


def signed_in(browser: Browser) -> bool:
    answer = browser.http.get("/ui/deployments")
    assert answer.status_code in (200, 303), answer.text
    return answer.status_code == 200


def refused(browser: Browser, answer: Any, words: str, code: int = 401) -> None:
    assert answer.status_code == code, answer.text
    assert re.search(words, answer.text), answer.text
    assert not signed_in(browser)


def test_a_user_signs_in_and_gets_to_the_wanted_page(paas: Site, iam: Issuer) -> None:
    browser = paas.browser()
    first = browser.http.get("/ui/quotas")
    assert first.status_code == 303
    answer = browser.sign_in(iam, "ann", first.headers["Location"])
    assert (answer.status_code, answer.headers["Location"]) == (303, "/ui/quotas")
    assert signed_in(browser)


def test_what_the_issuer_is_asked(paas: Site, iam: Issuer) -> None:
    browser = paas.browser()
    one, other = browser.begin(), browser.begin()
    assert one["redirect_uri"] == "https://paas.example.org/ui/signed-in"
    assert (one["response_type"], one["code_challenge_method"]) == ("code", "S256")
    for name in ("state", "nonce", "code_challenge"):
        assert len(one[name]) == 43
        assert one[name] != other[name]
    assert len({one[name] for name in ("state", "nonce", "code_challenge")}) == 3


def test_cookies_are_for_this_host_alone_and_for_no_script(paas: Site, iam: Issuer) -> None:
    browser = paas.browser()
    begun = browser.http.get("/ui/sign-in").headers.get_list("set-cookie")
    ended = browser.sign_in(iam, "ann").headers.get_list("set-cookie")
    assert len(begun) == 1
    assert len(ended) == 2
    for cookie in (*begun, *ended):
        assert cookie.startswith("__Host-")
        parts = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"secure", "httponly", "samesite=lax", "path=/"} <= parts
        assert not any(part.startswith("domain") for part in parts)


def test_rights_and_groups_are_those_of_a_token(paas: Site, iam: Issuer) -> None:
    browser = paas.browser("eve", "admins", "physics")
    [cookie] = [one for one in browser.http.cookies.jar if one.name == COOKIE]
    found = paas.service.identity.remembered(iam.url, logins_of(paas)[0].claims)
    token = iam.token(sub="eve", groups=["admins", "physics"])
    with_token = paas.service.identity.user(f"Bearer {token}")
    assert (found, found.groups, found.administrator) == (
        with_token,
        with_token.groups,
        with_token.administrator,
    )
    assert found.administrator
    assert logins_of(paas)[0].id != cookie.value


def logins_of(paas: Site) -> list[Login]:
    with paas.service.database.reading() as session:
        return [*session.scalars(select(Login))]


def test_the_database_has_nothing_by_which_a_reader_signs_in(paas: Site) -> None:
    browser = paas.browser("ann")
    [cookie] = [one for one in browser.http.cookies.jar if one.name == COOKIE]
    assert cookie.value not in "".join(str(vars(one)) for one in logins_of(paas))
    assert set(logins_of(paas)[0].claims) <= {"sub", "groups", "preferred_username", "name", "email"}


def test_a_login_ends(paas: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = paas.browser("ann")
    later = time.time() + logins.LIFETIME + 1
    monkeypatch.setattr(logins.time, "time", lambda: later)
    assert not signed_in(browser)
    monkeypatch.undo()
    assert signed_in(browser)


def test_logins_that_have_ended_are_forgotten(paas: Site) -> None:
    paas.browser("ann")
    with paas.service.database.changing() as session:
        session.scalars(select(Login)).one().ends = 1.0
    paas.browser("ann")
    assert len(logins_of(paas)) == 1


def test_a_copy_of_the_cookie_is_useless_after_the_sign_out(paas: Site) -> None:
    browser, copy = paas.browser("ann"), paas.browser()
    copy.http.cookies.update({one.name: one.value for one in browser.http.cookies.jar})
    assert signed_in(copy)
    browser.get("/ui/deployments")
    answer = browser.post("/ui/sign-out", browser.fields("header form"))
    assert (answer.status_code, answer.headers["Location"]) == (303, "/ui/signed-out")
    assert browser.http.get("/ui/signed-out").status_code == 200
    assert not signed_in(browser)
    assert not signed_in(copy)
    assert logins_of(paas) == []


def test_a_new_sign_in_has_a_new_cookie_and_ends_the_old_login(paas: Site, iam: Issuer) -> None:
    browser = paas.browser("ann")
    [before] = [one.value for one in browser.http.cookies.jar if one.name == COOKIE]
    browser.sign_in(iam, "ann")
    [after] = [one.value for one in browser.http.cookies.jar if one.name == COOKIE]
    assert before != after
    assert len(logins_of(paas)) == 1


@pytest.mark.parametrize("value", ["", "x", "0" * 43, "a" * 5000, "%00", "'; drop table logins; --", "\xff"])
def test_another_cookie_is_none(paas: Site, value: str) -> None:
    browser = paas.browser("ann")
    [cookie] = [one.value for one in browser.http.cookies.jar if one.name == COOKIE]
    for wrong in (value, cookie[:-1], cookie[:-1] + ("A" if cookie[-1] != "A" else "B"), cookie.lower()):
        answer = paas.client().get(
            "/ui/deployments",
            headers={"Cookie": f"{COOKIE}={wrong}".encode("latin-1")},
            follow_redirects=False,
        )
        assert answer.status_code == 303
        assert answer.headers["Location"].startswith("/ui/sign-in?")


def test_an_answer_is_for_the_browser_that_has_asked(paas: Site, iam: Issuer) -> None:
    """Else an attacker would sign a victim in as somebody else."""
    attacker, victim = paas.browser(), paas.browser()
    link = iam.approved(attacker.begin(), "ann")
    refused(victim, victim.http.get(link), "has begun no sign-in")
    victim.begin()
    refused(victim, victim.http.get(link), "has begun no sign-in")
    [name] = [one.name for one in attacker.http.cookies.jar]
    [own] = [one.value for one in victim.http.cookies.jar]
    victim.http.cookies.set(name, own, domain="paas.example.org")
    refused(victim, victim.http.get(link), "another sign-in")


def test_each_tab_ends_the_sign_in_that_it_has_begun(paas: Site, iam: Issuer) -> None:
    browser = paas.browser()
    first = iam.approved(browser.begin("/ui/sign-in?next=/ui/quotas"), "ann")
    browser.begin()
    answer = browser.http.get(first)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/ui/quotas")


def test_an_answer_is_used_once(paas: Site, iam: Issuer) -> None:
    browser = paas.browser()
    link = iam.approved(browser.begin(), "ann")
    kept = {one.name: one.value for one in browser.http.cookies.jar}
    assert browser.http.get(link).status_code == 303
    again = paas.browser()
    refused(again, again.http.get(link), "has begun no sign-in")
    again.http.cookies.update(kept)  # a thief of cookie and link has a code that was used
    refused(again, again.http.get(link), "does not accept this sign-in")


def test_a_code_of_another_sign_in_has_another_verifier(paas: Site, iam: Issuer) -> None:
    thief, victim = paas.browser(), paas.browser()
    stolen = dict(parse_qsl(urlsplit(iam.approved(victim.begin(), "ann")).query))
    own = thief.begin()
    query = urlencode(stolen | {"state": own["state"]})
    refused(thief, thief.http.get(f"/ui/signed-in?{query}"), "does not accept this sign-in")


def test_a_code_of_another_issuer_is_refused(paas: Site, iam: Issuer, tmp_path: Path) -> None:
    with issuer(tmp_path / "other") as other:
        browser = paas.browser()
        link = other.approved(browser.begin(), "ann")
        refused(browser, browser.http.get(link), "of another issuer")
        silent = re.sub("&iss=[^&]*", "", other.approved(browser.begin(), "ann"))
        refused(browser, browser.http.get(silent), "does not accept this sign-in")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"nonce": "other"}, "another sign-in"),
    ({"nonce": None}, "another sign-in"),
    ({"nonce": ["x"]}, "another sign-in"),
    ({"aud": "another"}, "another service"),
    ({"aud": None}, "another service"),
    ({"aud": ["paas", "another"], "azp": "another"}, "another service"),
    ({"iss": "https://evil.example.org/"}, "not accepted"),
    ({"exp": 1}, "expired"),
    ({"exp": None}, "expired"),
    ({"iat": 9_999_999_999}, "not valid yet"),
    ({"sub": None}, "names another user"),
    ({"sub": "root"}, "names another user"),
]


@pytest.mark.parametrize(("more", "words"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_id_token_is_refused(paas: Site, iam: Issuer, more: dict[str, Any], words: str) -> None:
    iam.more = more
    browser = paas.browser()
    refused(browser, browser.sign_in(iam, "ann"), words)


def test_an_id_token_of_another_key_is_refused(
    paas: Site, iam: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iam, "key", OTHER_KEY)
    browser = paas.browser()
    refused(browser, browser.sign_in(iam, "ann"), "signature of the ID token is wrong")


@pytest.mark.parametrize(
    "answer", [b"{}", b'{"id_token": 1, "access_token": 2}', b'{"id_token": "a.b.c", "access_token": "x"}']
)
def test_an_answer_without_tokens_is_refused(
    paas: Site, iam: Issuer, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setitem(iam.changes, "/token", (200, answer, {}))
    browser = paas.browser()
    refused(browser, browser.sign_in(iam, "ann"), "given no ID token")


def test_an_issuer_that_is_away_is_told(paas: Site, iam: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = paas.browser()
    monkeypatch.setitem(iam.changes, "/token", (500, b"", {}))
    refused(browser, browser.sign_in(iam, "ann"), "status 500", 503)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("access_denied", "access_denied"),
        ("<script>\nINFO root: fine", "it gives no reason"),
        ("", "no reason"),
    ],
)
def test_a_refusal_of_the_issuer_is_told(
    paas: Site, caplog: pytest.LogCaptureFixture, error: str, words: str
) -> None:
    browser = paas.browser()
    query = {"state": browser.begin()["state"], "error": error}
    answer = browser.http.get(f"/ui/signed-in?{urlencode(query)}")
    refused(browser, answer, f"refuses the sign-in: .*{words}")
    assert "script" not in caplog.text


ELSEWHERE = [
    "https://evil.example.org/",
    "//evil.example.org/",
    "/\\evil.example.org",
    "/ui/../deployments",
    "/ui//evil.example.org",
    "/ui/deployments?page=1&next=//x",
    "/ui\r\nSet-Cookie: a=b",
    "javascript:alert(1)",
    "/deployments",
    "/ui/deployments\x00",
    "x" * 2000,
]


@pytest.mark.parametrize("wanted", ELSEWHERE)
def test_the_sign_in_leads_to_no_other_place(paas: Site, iam: Issuer, wanted: str) -> None:
    browser = paas.browser()
    path = f"/ui/sign-in?{urlencode({'next': wanted})}"
    if len(wanted) > 1024:
        assert browser.http.get(path).status_code == 400
        return
    assert browser.sign_in(iam, "ann", path).headers["Location"] == "/ui/deployments"


def test_a_changed_cookie_of_the_sign_in_leads_to_no_other_place(paas: Site, iam: Issuer) -> None:
    browser = paas.browser()
    link = iam.approved(browser.begin(), "ann")
    [cookie] = browser.http.cookies.jar
    secret = (cookie.value or "").partition(".")[0]
    evil = "Ly9ldmlsLmV4YW1wbGUub3Jn"  # //evil.example.org
    headers = {"Cookie": f"{cookie.name}={secret}.{evil}"}
    answer = paas.client().get(link, headers=headers, follow_redirects=False)
    assert answer.headers["Location"] == "/ui/deployments"


@given(st.text() | st.from_regex(r"/ui[/.a-z?=]*", fullmatch=True))
def test_a_place_is_a_page_of_this_service(text: str) -> None:
    found = links.place(text)
    assert re.fullmatch(r"/ui[A-Za-z0-9_./-]*(\?page=\d+)?", found)
    assert "//" not in found and "/." not in found
    assert links.place(found) == found


@pytest.mark.parametrize(
    "path", ["/deployments", "/catalogue", "/catalogue/notes", "/quotas", "/all", "/runs", "/machines"]
)
def test_pages_need_a_login(paas: Site, path: str) -> None:
    answer = paas.browser().http.get(f"/ui{path}")
    assert answer.status_code == 303
    assert answer.headers["Location"] == f"/ui/sign-in?next=/ui{path}"


POSTS = [
    "/catalogue/notes",
    "/deployments/{own}/update",
    "/deployments/{own}/delete",
    "/deployments/{own}/reset",
    "/sign-out",
]


@pytest.mark.parametrize("path", POSTS)
def test_a_form_of_another_site_changes_nothing(paas: Site, path: str) -> None:
    ann = paas.browser("ann")
    own = ann.send("/ui/catalogue/notes").headers["Location"].rpartition("/")[2]
    paas.work()
    ann.get("/ui/quotas")
    place, right = "/ui" + path.replace("{own}", own), ann.fields("header form") | {"sure": "yes"}
    before = ann.get(f"/ui/deployments/{own}").text
    stranger, other = paas.browser(), paas.browser("bob")
    other.get("/ui/quotas")
    attacks = [
        (ann, right, {"Origin": "https://evil.example.org"}),
        (ann, right, {"Origin": "https://paas.example.org.evil.example.org"}),
        (ann, right, {"Origin": "http://paas.example.org"}),
        (ann, right, {"Origin": "null"}),
        (ann, right, {"Origin": ""}),
        (ann, right | {"token": ""}, {}),
        (ann, right | {"token": "0" * 64}, {}),
        (ann, right | {"token": "\udcff".encode("utf-8", "surrogateescape").decode("latin-1")}, {}),
        (ann, {name: value for name, value in right.items() if name != "token"}, {}),
        (ann, right | other.fields("header form"), {}),  # the token of another login
        (stranger, right, {}),
    ]
    for browser, fields, headers in attacks:
        answer = browser.post(place, fields, **headers)
        assert answer.status_code == (401 if browser is stranger else 403), answer.text
    answer = ann.http.post(place, json=right, headers={"Origin": "https://paas.example.org"})
    assert answer.status_code == 400
    assert ann.get(f"/ui/deployments/{own}").text == before


def test_the_body_of_a_stranger_is_not_read(paas: Site) -> None:
    def endless() -> Iterator[bytes]:
        yield b"token="
        raise AssertionError("the body was read")

    answer = paas.client().post(
        "/ui/catalogue/notes", content=endless(), headers={"Origin": "https://paas.example.org"}
    )
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "path", ["/ui/deployments", "/ui/sign-in", "/ui/signed-out", "/ui/nowhere", "/ui/static/pages.js"]
)
def test_headers_of_pages(paas: Site, path: str) -> None:
    answer = paas.browser("ann").http.get(path)
    policy = answer.headers["Content-Security-Policy"]
    for rule in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_interface_takes_no_cookie_and_keeps_its_headers(paas: Site) -> None:
    """So a page of another site cannot use the login for it."""
    browser = paas.browser("ann")
    answer = browser.http.get("/deployments?createdBy=me")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_pages_take_no_token(paas: Site, iam: Issuer) -> None:
    answer = paas.client(iam.token()).get("/ui/deployments", follow_redirects=False)
    assert answer.headers["Location"].startswith("/ui/sign-in?")


def test_people_are_led_from_the_root_to_the_pages(paas: Site) -> None:
    client = paas.client()
    answer = client.get("/", headers={"Accept": "text/html,*/*;q=0.8"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/ui")
    assert client.get("/").text == "gpufarm: services on machines of a pool"


def test_without_the_entry_there_are_no_pages(tmp_path: Path, iam: Issuer) -> None:
    with site(tmp_path, iam) as plain:
        client = plain.client()
        assert client.get("/ui/deployments").json()["code"] == 404
        assert client.get("/", headers={"Accept": "text/html"}).text.startswith("gpufarm")


def test_guesses_of_an_address_are_counted(tmp_path: Path, iam: Issuer) -> None:
    limits = {"limits": {"requests_per_minute": 5}}
    with site(tmp_path, iam, **with_pages(tmp_path, iam), **limits) as paas:
        ann, stranger = paas.browser("ann"), paas.browser()
        codes = {stranger.http.get("/ui/signed-in?state=x").status_code for _ in range(9)}
        assert codes == {401, 429}
        assert paas.user("bob").get("/deployments?createdBy=me").status_code == 429
        assert ann.http.get("/ui/deployments").status_code == 200
        assert {ann.http.get("/ui/quotas").status_code for _ in range(9)} == {200, 429}


def test_sign_ins_do_not_lock_out_tokens_of_the_address(tmp_path: Path, iam: Issuer) -> None:
    limits = {"limits": {"requests_per_minute": 5}}
    with site(tmp_path, iam, **with_pages(tmp_path, iam), **limits) as paas:
        stranger = paas.client()
        codes = [stranger.get("/ui/sign-in", follow_redirects=False).status_code for _ in range(9)]
        assert set(codes) == {303, 429}
        assert paas.user("ann").get("/deployments?createdBy=me").status_code == 200


def test_a_login_of_an_issuer_that_is_gone_has_ended(tmp_path: Path, iam: Issuer) -> None:
    with site(tmp_path, iam, **with_pages(tmp_path, iam)) as paas:
        browser = paas.browser("ann")
        with paas.service.database.changing() as session:
            session.scalars(select(Login)).one().issuer = "https://former.example.org/"
        assert not signed_in(browser)


def test_addresses_below_a_path(tmp_path: Path, iam: Issuer) -> None:
    """The proxy takes the path away, and links have it."""
    with site(tmp_path, iam, **with_pages(tmp_path, iam), url="https://paas.example.org/gpus/") as paas:
        browser = paas.browser()
        asked = browser.begin()
        assert asked["redirect_uri"] == "https://paas.example.org/gpus/ui/signed-in"
        query = urlsplit(iam.approved(asked, "ann")).query
        answer = browser.http.get(f"/ui/signed-in?{query}")
        assert answer.headers["Location"] == "/gpus/ui/deployments"
        browser.get("/ui/deployments")
        found = {
            one.get("href") or one.get("src") for one in browser.page.select("link, script, header a, main a")
        }
        assert found and all(one.startswith("/gpus/ui") for one in found)
