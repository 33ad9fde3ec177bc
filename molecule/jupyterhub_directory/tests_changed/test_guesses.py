"""Guesses of passwords wait, with any headers; other users neither wait nor are locked out."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shlex
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from lab.visitor import Refused

ALLOWED = 20  # wrong passwords at once from one address
ONE_MORE = 30  # seconds until it is allowed another one
GUESSES = 25
# A login from the address of the hub's own machine; it prints the status of HTTP.
LOGIN = """
set -eu
cd "$(mktemp --directory)"
curl --silent --insecure --cookie-jar jar --output /dev/null {hub}/hub/login
curl --silent --insecure --cookie jar --output /dev/null --write-out '%{{http_code}}' \
  --data-urlencode "_xsrf=$(awk '/_xsrf/ {{print $7}}' jar)" --data-urlencode username={name} \
  --data-urlencode 'password=password of {name}' {hub}/hub/login
"""


def test_guesses_are_bounded_and_disturb_nobody_else(host, visitor):
    host.check_output("systemctl restart jupyterhub")  # what tests before have tried does not count
    carol = visitor()
    deadline = time.monotonic() + 60
    while host.run("curl --fail --silent http://127.0.0.1:8081/hub/api/").rc:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    carol.login("carol")
    guessers = [visitor() for _ in range(GUESSES)]

    def guess(number: int) -> int:
        for header in ("X-Real-Ip", "X-Forwarded-For", "X-Gpufarm-Client"):
            guessers[number]._http.headers[header] = f"198.51.100.{number}"
        with pytest.raises(Refused) as caught:
            guessers[number].login(f"user{number}", "guess")
        return caught.value.status

    began = time.monotonic()
    with ThreadPoolExecutor(GUESSES) as pool:
        guesses = [pool.submit(guess, number) for number in range(GUESSES)]
        time.sleep(2)
        started = time.monotonic()
        login = LOGIN.format(hub=carol.hub, name="frank")
        assert host.check_output(f"sh -c {shlex.quote(login)}") == "302"
        assert time.monotonic() - started < 3  # a wrong password takes three seconds, and twenty took thirty
        assert not all(each.done() for each in guesses)
        counted = Counter(each.result() for each in guesses)
    more = int((time.monotonic() - began) / ONE_MORE) + 1
    assert set(counted) <= {403, 429} and ALLOWED <= counted[403] <= ALLOWED + more
    # The twenty took as long as it takes until one more is allowed.
    assert 429 in [guess(number) for number in range(3)]
    with pytest.raises(Refused, match="in a browser in which you have signed in before") as caught:
        visitor().login("frank")
    assert caught.value.status == 429
    carol._http.cookies.delete("jupyterhub-session-id")
    carol._http.get(f"{carol.hub}/hub/logout")
    assert carol.login("carol").name == "carol", "a browser that is known"
