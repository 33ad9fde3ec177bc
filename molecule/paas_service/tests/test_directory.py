"""People sign in on the pages with the passwords of a real directory, and hours are read."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from testinfra.host import Host


def entered(paas: Any, name: str, password: str) -> tuple[httpx.Client, httpx.Response]:
    browser = paas.client(headers={"Origin": paas.url.removesuffix(":443")})  # as browsers write it
    assert "current-password" in browser.get("/ui/deployments", follow_redirects=True).text
    return browser, browser.post("/ui/sign-in", data={"name": name, "password": password})


def test_a_member_of_a_group_of_the_directory_is_offered_its_templates(paas: Any) -> None:
    browser, answer = entered(paas, "alice", "password of alice")
    assert answer.status_code == 303
    assert "/ui/catalogue/accounts" in browser.get("/ui/catalogue").text
    assert browser.get("/ui/all").status_code == 403


def test_administrators_are_those_of_the_directory(paas: Any) -> None:
    browser, answer = entered(paas, "bob", "password of bob")
    assert answer.status_code == 303
    assert browser.get("/ui/all").status_code == 200


@pytest.mark.parametrize(
    ("name", "password"),
    [("alice", ""), ("alice", "password of bob"), ("*", "password of alice"), ("hub", "x")],
)
def test_others_get_one_answer(paas: Any, name: str, password: str) -> None:
    browser, answer = entered(paas, name, password)
    assert answer.status_code == 401 and "the name or the password is wrong" in answer.text
    assert browser.get("/ui/deployments").status_code == 303


def test_the_password_of_the_service_is_for_the_server_alone(host: Host) -> None:
    secret = "/etc/gpufarm-serve/server/ldap"
    assert host.run("runuser -u gpufarm-serve -- cat %s", secret).rc == 0
    for account in ("gpufarm-serve-worker", "gpufarm-serve-proxy", "nobody"):
        assert host.run("runuser -u %s -- cat %s", account, secret).rc != 0
    assert "password of" not in host.check_output("journalctl --unit=gpufarm-serve --output=cat")


def test_a_worker_has_read_the_hours(paas: Any, eventually: Callable[[Callable[[], bool]], None]) -> None:
    alice = paas.user("alice")
    eventually(lambda: alice.get("/hours").json()["read"] != "never")
    assert alice.get("/hours").json()["rows"] == []
    assert alice.get("/hours?of=all").status_code == 403
