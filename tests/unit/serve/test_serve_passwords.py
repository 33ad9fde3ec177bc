# SPDX-License-Identifier: GPL-3.0-or-later
"""Sign-in with a name and a password of a real directory, and what guesses and odd names get."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from doubles import directory as doubles
from doubles.directory import BASE, SERVICE, SERVICE_PASSWORD, Directory
from doubles.issuer import Issuer, certificate
from gpufarm.cli import main
from gpufarm.serve import directory, limits
from gpufarm.serve.directory import WRONG
from gpufarm.serve.refusals import TooMany, Unauthorized
from gpufarm.serve.settings import Directory as Settings
from gpufarm.serve.settings import Issuer as Entry
from gpufarm.serve.tables import Login
from gpufarm.serve.web import passwords as module
from gpufarm.serve.web.passwords import AT_ONCE, Passwords
from hypothesis import given, settings
from hypothesis import strategies as st
from serve_site import Browser, Site, site
from sqlalchemy import select

from lab.patience import PATIENCE

COOKIE = "__Host-gpufarm"


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    with doubles.directory(tmp_path_factory.mktemp("directory")) as made:
        yield made


def entry(people: Directory, folder: Path, **changes: Any) -> dict[str, Any]:
    """The settings of the directory."""
    secret = folder / "ldap.secret"
    secret.write_text(SERVICE_PASSWORD + "\n")
    secret.chmod(0o600)
    inner = {
        "bind_dn": SERVICE,
        "bind_password_file": "ldap.secret",
        "user_base": f"ou=people,{BASE}",
        "group_base": f"ou=groups,{BASE}",
    }
    own = {name: changes.pop(name) for name in ("issuer", "ca_file") if name in changes}
    given = {"issuer": people.url, "ca_file": str(people.ca_file), "administrators": "admins"}
    return {**given, "login_claim": "preferred_username", **own, "directory": {**inner, **changes}}


@contextmanager
def serving(people: Directory, folder: Path, iam: Issuer, **changes: Any) -> Iterator[Site]:
    own = entry(people, folder, **changes)
    tokens = {"issuer": iam.url, "ca_file": str(iam.ca_file)}
    both = [own["issuer"], iam.url]
    templates = {
        "notes": {"template": "notes.yaml", "people": {"owner": "preferred_username"}, "issuers": both},
        "needy": {"template": "needy.yaml", "groups": ["physics"], "issuers": both},
    }
    pages = {"issuer": own["issuer"]}
    with site(folder, iam, issuers=[own, tokens], pages=pages, templates=templates, hours_minutes=60) as made:
        yield made


@pytest.fixture
def paas(people: Directory, tmp_path: Path, iam: Issuer) -> Iterator[Site]:
    with serving(people, tmp_path, iam) as made:
        yield made


def enter(browser: Browser, name: str, password: str, **fields: str) -> Any:
    return browser.post("/ui/sign-in", {"name": name, "password": password, **fields})


def checked(folder: Path) -> Result:
    return CliRunner().invoke(main, ["serve", "--settings", str(folder / "serve.yml"), "check"])


def visitor(paas: Site, address: str = "192.0.2.7") -> Browser:
    return Browser(paas.client(address=address))


def signed_in(browser: Browser) -> bool:
    return browser.http.get("/ui/deployments").status_code == 200


def test_a_user_signs_in_and_gets_to_the_wanted_page(paas: Site) -> None:
    browser = visitor(paas)
    browser.get("/ui/quotas")
    assert browser.page.select_one("h1").text == "Sign in"
    fields = browser.fields()
    assert fields == {"next": "/ui/quotas", "name": "", "password": ""}
    answer = browser.post("/ui/sign-in", fields | {"name": "ann", "password": "password of ann"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/ui/quotas")
    browser.get("/ui/catalogue")
    assert browser.page.select_one(".out bdi").text == "ann"
    # groups of the directory, also by way of other groups
    assert {one.text for one in browser.page.select(".cards a")} == {"notes", "needy"}


def test_cookies_are_for_this_host_alone_and_for_no_script(paas: Site) -> None:
    cookies = enter(visitor(paas), "ann", "password of ann").headers.get_list("set-cookie")
    assert [one.partition("=")[0] for one in cookies] == [COOKIE, f"{COOKIE}-known"]
    for cookie in cookies:
        parts = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"secure", "httponly", "samesite=lax", "path=/"} <= parts
        assert "ann" not in cookie


def test_persons_are_known_by_what_stays_when_they_are_renamed(paas: Site, people: Directory) -> None:
    enter(visitor(paas), "ann", "password of ann")
    with paas.service.database.reading() as session:
        [login] = session.scalars(select(Login))
    assert login.issuer == people.url
    assert login.claims["preferred_username"] == "ann" and len(login.claims["sub"]) == 36
    assert login.claims["groups"] == ["atoms", "physics", "ring"]
    assert "password" not in str(login.claims)


def test_administrators_are_those_of_a_group(paas: Site) -> None:
    for name, code in (("eve", 200), ("ann", 403)):
        browser = visitor(paas)
        enter(browser, name, f"password of {name}")
        assert browser.get("/ui/all").status_code == code


def test_a_deployment_belongs_to_the_person_in_the_directory(paas: Site) -> None:
    ann = visitor(paas)
    enter(ann, "ann", "password of ann")
    made = ann.send("/ui/catalogue/notes")
    assert made.status_code == 303
    own = made.headers["Location"]
    assert ann.get(own).status_code == 200
    # the same name at another issuer is another person
    assert paas.user("ann").get(own.replace("/ui", "")).status_code == 404
    again = visitor(paas)
    enter(again, "ann", "password of ann")
    assert again.get(own).status_code == 200
    other = visitor(paas)
    enter(other, "star*(x)", "password of star")
    assert other.get(own).status_code == 404


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ann", ""),
        ("", ""),
        ("", "password of ann"),
        ("ann", "password of eve"),
        ("ann", "password of ann\0"),
        ("ann", "\u00ad"),  # mapped to nothing
        ("ann", "\u200b\u2060"),
        ("ann", "\ufdd0"),
        ("ann", "x" * 100_000),
        ("nobody", "password of ann"),
        ("*", "password of ann"),
        ("ann*", "password of ann"),
        ("an?", "password of ann"),
        ("ann)(uid=*", "password of ann"),
        ("*)(|(uid=*", "password of ann"),
        ("\\61nn", "password of ann"),
        (" ann", "password of ann"),
        ("ann\n", "password of ann"),
        ("Rossi, Ann (Physics)", "password of ann"),
        (SERVICE, SERVICE_PASSWORD),
        ("paas", SERVICE_PASSWORD),
        ("a" * 100_000, "x"),
        ("\udcff", "x"),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_all_refusals_are_the_same(paas: Site, name: str, password: str) -> None:
    browser = visitor(paas)
    if "\udcff" in name:
        answer = browser.http.post(
            "/ui/sign-in",
            content="name=%FF&password=x",
            headers={
                "Origin": "https://paas.example.org",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        assert answer.status_code == 400
    else:
        answer = enter(browser, name, password)
        assert answer.status_code == 401
        assert browser.page.select_one("[role=alert]").text == WRONG
        assert browser.page.select_one("#password").get("value") is None
    assert not signed_in(browser)


def test_the_name_is_the_one_that_the_directory_has(paas: Site) -> None:
    browser = visitor(paas)
    enter(browser, "ANN", "password of ann")
    browser.get("/ui/quotas")
    assert browser.page.select_one(".out bdi").text == "ann"
    enter(browser, "star*(x)", "password of star")
    browser.get("/ui/quotas")
    assert browser.page.select_one(".out bdi").text == "star*(x)"


def test_the_page_escapes_what_was_entered(paas: Site) -> None:
    browser = visitor(paas)
    enter(browser, '"><script>alert(1)</script>', "x", next="https://evil.example.org/")
    assert [one.get("src") for one in browser.page.select("script")] == ["/ui/static/pages.js"]
    assert browser.fields()["next"] == "/ui/deployments"


def test_a_page_of_another_site_signs_nobody_in(paas: Site) -> None:
    browser = visitor(paas)
    for origin in ("https://evil.example.org", "null", ""):
        sent = {"name": "ann", "password": "password of ann"}
        assert browser.post("/ui/sign-in", sent, Origin=origin).status_code == 403
    assert not signed_in(browser)


def test_a_new_sign_in_ends_the_old_login(paas: Site) -> None:
    browser = visitor(paas)
    enter(browser, "ann", "password of ann")
    enter(browser, "eve", "password of eve")
    with paas.service.database.reading() as session:
        [login] = session.scalars(select(Login))
    assert login.claims["preferred_username"] == "eve"


def test_after_the_sign_out_nobody_is_signed_in(paas: Site) -> None:
    browser = visitor(paas)
    enter(browser, "ann", "password of ann")
    browser.get("/ui/deployments")
    browser.post("/ui/sign-out", browser.fields("header form"))
    browser.get("/ui/signed-out")
    assert "may still be signed in" not in browser.page.text
    assert not signed_in(browser)


def test_names_of_accounts_are_those_of_the_directory(paas: Site) -> None:
    browser = visitor(paas)
    enter(browser, "ann", "password of ann")
    browser.get("/ui/hours")
    assert "Hours of the account ann" in " ".join(browser.page.text.split())


def test_nothing_of_a_sign_in_is_in_the_log(paas: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    enter(visitor(paas), "ann", "password of ann")
    enter(visitor(paas), "secret-in-the-wrong-field", "another secret")
    for word in ("password of", "another secret", "secret-in-the-wrong-field", SERVICE_PASSWORD):
        assert word not in caplog.text


@pytest.mark.parametrize("claimed", ["ldaps", "as written"])
def test_no_token_is_of_the_directory(paas: Site, people: Directory, claimed: str) -> None:
    name = people.url if claimed == "as written" else people.url + "/"
    token = paas.iam.token(iss=name, sub="ann")
    told = paas.client(token).get("/deployments")
    assert told.status_code == 401 and "is not accepted" in told.text


def test_the_interface_takes_no_passwords(paas: Site) -> None:
    client = paas.client()
    client.auth = ("ann", "password of ann")
    assert client.get("/deployments").status_code == 401


def test_the_way_back_from_an_issuer_leads_nowhere(paas: Site) -> None:
    assert visitor(paas).get("/ui/signed-in?code=x&state=y").status_code == 404


# The directory itself.


def answered(people: Directory, folder: Path, iam: Issuer, **changes: Any) -> tuple[int, str]:
    with serving(people, folder, iam, **changes) as made:
        browser = visitor(made)
        answer = enter(browser, "ann", "password of ann")
        shown = browser.page.select_one("[role=alert]")
        return answer.status_code, shown.text if shown else ""


def test_start_tls_encrypts_before_any_password(people: Directory, tmp_path: Path, iam: Issuer) -> None:
    assert answered(people, tmp_path, iam, issuer=people.plain)[0] == 303


def test_another_server_is_asked_if_one_is_away(people: Directory, tmp_path: Path, iam: Issuer) -> None:
    assert answered(people, tmp_path, iam, servers=["ldaps://127.0.0.1:1", people.plain])[0] == 303


@pytest.mark.parametrize("scheme", ["ldaps", "ldap"])
def test_a_server_that_the_authority_does_not_vouch_for_gets_no_password(
    people: Directory, tmp_path: Path, iam: Issuer, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    public, _private = certificate(tmp_path / "other")
    url = people.url if scheme == "ldaps" else people.plain
    code, words = answered(people, tmp_path, iam, issuer=url, ca_file=str(public))
    assert code == 503 and words.startswith("the directory cannot tell now")
    assert "certificate verify failed" in caplog.text


def test_a_server_with_another_name_gets_no_password(people: Directory, tmp_path: Path, iam: Issuer) -> None:
    url = people.url.replace("127.0.0.1", "127.0.0.2")
    assert answered(people, tmp_path, iam, issuer=people.url, servers=[url])[0] == 503


OUT_OF_ORDER = pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bind_dn": f"cn=other,{BASE}"}, "does not accept bind_dn"),
        ({"user_base": f"ou=nowhere,{BASE}"}, "noSuchObject"),
        ({"group_base": f"ou=nowhere,{BASE}"}, "noSuchObject"),
        ({"user_filter": "(broken=(x)"}, "filter"),
        ({"servers": ["ldaps://127.0.0.1:1"]}, "ldaps://127.0.0.1:1"),
    ],
)


@OUT_OF_ORDER
def test_a_directory_that_is_out_of_order_is_told_to_the_operator_only(
    people: Directory,
    tmp_path: Path,
    iam: Issuer,
    changes: dict[str, Any],
    words: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    code, told = answered(people, tmp_path, iam, **changes)
    assert code == 503 and told.startswith("the directory cannot tell now")
    assert words in caplog.text and words not in told
    assert "password of ann" not in caplog.text and SERVICE_PASSWORD not in caplog.text


@OUT_OF_ORDER
def test_a_directory_that_is_out_of_order_fails_the_check(
    people: Directory, tmp_path: Path, iam: Issuer, changes: dict[str, Any], words: str
) -> None:
    with serving(people, tmp_path, iam, **changes):
        result = checked(tmp_path)
    assert result.exit_code == 1 and f"{iam.url} answers" in result.output
    assert f"directory {people.url}: " in result.output and words in result.output
    assert SERVICE_PASSWORD not in result.output


def test_a_directory_that_shows_no_user_fails_the_check(
    people: Directory, tmp_path: Path, iam: Issuer
) -> None:
    with serving(people, tmp_path, iam, user_filter="(sn=Nobody)"):
        assert f"shows no entry below ou=people,{BASE}" in checked(tmp_path).output


def test_a_directory_in_order_passes_the_check(people: Directory, tmp_path: Path, iam: Issuer) -> None:
    with serving(people, tmp_path, iam):
        result = checked(tmp_path)
    assert result.exit_code == 0 and f"{people.url} answers\n{iam.url} answers" in result.output


def test_two_entries_of_a_name_are_nobody(people: Directory, tmp_path: Path, iam: Issuer) -> None:
    with serving(people, tmp_path, iam) as made:
        assert enter(visitor(made), "twin", "password of twin").status_code == 503


def test_a_filter_leaves_users_out(people: Directory, tmp_path: Path, iam: Issuer) -> None:
    assert answered(people, tmp_path, iam, user_filter="(sn=Verdi)")[0] == 401


# Guesses.


class Fake:
    """A directory that knows one password, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def claims(self, name: str, password: str) -> dict[str, Any]:
        self.asked += 1
        if password != "right":
            raise Unauthorized(WRONG)
        return {"sub": name}


def checks(fake: Fake | None = None) -> Passwords:
    key = SimpleNamespace(digest=lambda value: f"digest of {value}")
    return Passwords(fake or Fake(), key)  # type: ignore[arg-type]


def guess(passwords: Passwords, name: str, address: str, mark: str = "") -> None:
    with pytest.raises(Unauthorized):
        passwords.claims(name, "wrong", address, mark)


def test_guesses_for_a_name_are_limited_from_all_addresses() -> None:
    fake = Fake()
    passwords = checks(fake)
    for number in range(10):
        guess(passwords, "ann" if number % 2 else " ANN ", f"192.0.2.{number}")
    with pytest.raises(TooMany):
        passwords.claims("ann", "right", "198.51.100.1")
    assert fake.asked == 10
    assert passwords.claims("bob", "right", "192.0.2.1") == {"sub": "bob"}


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::{}"])
def test_guesses_of_an_address_are_limited_for_all_names(address: str) -> None:
    passwords = checks()
    for number in range(20):
        guess(passwords, f"user{number}", address.format(number))
    with pytest.raises(TooMany):
        passwords.claims("ann", "right", address.format("ffff"))
    assert passwords.claims("ann", "right", "198.51.100.1") == {"sub": "ann"}


def test_right_passwords_are_not_counted_and_wrong_ones_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    passwords = checks()
    for _ in range(100):
        passwords.claims("ann", "right", "192.0.2.1")
    for _ in range(10):
        guess(passwords, "ann", "192.0.2.1")
    later = time.monotonic() + 61
    monkeypatch.setattr(limits.time, "monotonic", lambda: later)
    assert passwords.claims("ann", "right", "192.0.2.1") == {"sub": "ann"}


def test_a_course_that_signs_in_at_the_same_moment_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty people and more behind one address; nobody knows yet whether their passwords are right."""
    monkeypatch.setattr(module, "WAITS", PATIENCE)

    class Slow(Fake):
        def claims(self, name: str, password: str) -> dict[str, Any]:
            time.sleep(0.01)
            return super().claims(name, password)

    passwords, names = checks(Slow()), [f"user{number}" for number in range(40)]
    with ThreadPoolExecutor(len(names)) as course:
        answers = course.map(lambda name: passwords.claims(name, "right", "192.0.2.1"), names)
        assert [answer["sub"] for answer in answers] == names


def test_guesses_that_come_together_are_no_more_than_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITS", PATIENCE)
    fake = Fake()
    passwords, names = checks(fake), [f"user{number}" for number in range(40)]

    def wrong(name: str) -> type[Exception]:
        with pytest.raises((Unauthorized, TooMany)) as refused:
            passwords.claims(name, "wrong", "192.0.2.1")
        return refused.type

    with ThreadPoolExecutor(len(names)) as guessers:
        answers = list(guessers.map(wrong, names))
    assert answers.count(Unauthorized) == fake.asked == 20


def test_a_slow_directory_occupies_few_connections() -> None:
    passwords = checks()
    for _ in range(AT_ONCE):
        passwords._free.acquire()
    with pytest.raises(TooMany, match="many users sign in"):
        passwords.claims("ann", "right", "192.0.2.1")


def test_guesses_lock_no_browser_out_in_which_the_user_was_before(paas: Site) -> None:
    own, other = visitor(paas), visitor(paas)
    enter(own, "ann", "password of ann")
    enter(other, "eve", "password of eve")
    for number in range(10):
        enter(visitor(paas, f"198.51.100.{number}"), "ann", "wrong")
    assert enter(other, "ann", "password of ann").status_code == 429  # it is known for another name
    assert enter(visitor(paas), "ann", "password of ann").status_code == 429
    assert enter(own, "Ann", "password of ann").status_code == 303
    for _ in range(10):  # a stolen cookie helps with so many guesses only
        assert enter(own, "ann", "wrong").status_code == 401
    assert enter(own, "ann", "password of ann").status_code == 429


@pytest.mark.parametrize("mark", ["", ".", "x", "a.b", "." * 5000, "\xff.\xff"])
def test_another_cookie_makes_no_browser_known(mark: str) -> None:
    passwords = checks()
    for number in range(10):
        guess(passwords, "ann", f"192.0.2.{number}", mark=mark)
    with pytest.raises(TooMany):
        passwords.claims("ann", "right", "192.0.2.77", mark)


def test_the_page_says_that_there_were_too_many(paas: Site) -> None:
    browser = visitor(paas)
    for _ in range(10):
        assert enter(browser, "ann", "wrong").status_code == 401
    assert enter(browser, "ann", "password of ann").status_code == 429
    assert "wait a minute" in browser.page.select_one("[role=alert]").text


@pytest.fixture(scope="session")
def asked(people: Directory, tmp_path_factory: pytest.TempPathFactory) -> directory.Directory:
    secret = tmp_path_factory.mktemp("secret") / "ldap.secret"
    secret.write_text(SERVICE_PASSWORD)
    own = Settings(
        (people.url,),
        SERVICE,
        secret,
        f"ou=people,{BASE}",
        "uid",
        "",
        f"ou=groups,{BASE}",
        "cn",
        "(member={dn})",
    )
    return directory.Directory(Entry(people.url, ca_file=people.ca_file, directory=own))


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=40), st.text(min_size=1, max_size=20))
def test_no_text_is_anything_but_a_name(asked: directory.Directory, name: str, password: str) -> None:
    with pytest.raises(Unauthorized):
        asked.claims(name, password)
