"""Receivers of alerts: what Alertmanager gets of their settings, and settings that are refused."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._monitoring.receivers import (
    configuration,
    problems,
)
from hypothesis import given
from hypothesis import strategies as st

NOBODY: dict[str, Any] = {
    "alert_mail_to": [],
    "alert_mail_from": "",
    "alert_mail_server": "",
    "alert_mail_user": "",
    "alert_mail_password": "",
    "alert_webhooks": [],
}
MAIL = {
    "alert_mail_to": ["ops@example.org", "gpu@example.org"],
    "alert_mail_from": "farm@example.org",
    "alert_mail_server": "smtp.example.org:587",
}
LOGIN = {"alert_mail_user": "farm", "alert_mail_password": "pass"}


def webhook(url: str = "https://chat.example.org/hook", token: str = "") -> dict[str, Any]:
    return {"alert_webhooks": [{"url": url, "token": token}]}


def receiver(**changes: Any) -> dict[str, Any]:
    """Return the only receiver, of settings without problems."""
    settings = {**NOBODY, **changes}
    assert list(problems(settings)) == []
    receivers = configuration(settings)["receivers"]
    assert len(receivers) == 1
    return dict(receivers[0])


def test_without_receivers_there_is_no_alertmanager() -> None:
    assert configuration(NOBODY) == {}
    assert configuration({**NOBODY, **MAIL, "alert_mail_to": []}) == {}


def test_one_mail_goes_to_all_addresses_over_tls() -> None:
    (mail,) = receiver(**MAIL)["email_configs"]
    assert (mail["to"], mail["from"]) == ("ops@example.org, gpu@example.org", "farm@example.org")
    assert (mail["smarthost"], mail["require_tls"], mail["send_resolved"]) == (
        "smtp.example.org:587",
        True,
        True,
    )
    assert "auth_username" not in mail and "tls_config" not in mail


def test_mail_has_a_login_where_there_is_one() -> None:
    (mail,) = receiver(**MAIL, **LOGIN)["email_configs"]
    assert (mail["auth_username"], mail["auth_password"]) == ("farm", "pass")


def test_a_token_is_sent_to_no_other_server() -> None:
    (hook,) = receiver(**webhook(token="secret"))["webhook_configs"]
    assert (hook["url"], hook["send_resolved"]) == ("https://chat.example.org/hook", True)
    assert hook["http_config"] == {
        "follow_redirects": False,
        "authorization": {"type": "Bearer", "credentials": "secret"},
    }


def test_a_webhook_without_a_token_has_no_authorization() -> None:
    for entry in (webhook(), {"alert_webhooks": [{"url": "https://chat.example.org/hook"}]}):
        (hook,) = receiver(**entry)["webhook_configs"]
        assert hook["http_config"] == {"follow_redirects": False}


def test_a_machine_is_one_message() -> None:
    found = configuration({**NOBODY, **webhook()})
    assert found["route"]["group_by"] == ["instance"]
    assert found["route"]["receiver"] == found["receivers"][0]["name"]
    assert [one["equal"] for one in found["inhibit_rules"]] == [["instance"]]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({**MAIL, "alert_mail_from": ""}, "monitoring_alert_mail_from is ''"),
        ({**MAIL, "alert_mail_server": "smtp.example.org"}, "give host and port"),
        ({**MAIL, "alert_mail_server": "smtp:25\n"}, "give host and port"),
        ({**MAIL, "alert_mail_to": ["ops"]}, "'ops', no mail address"),
        ({**MAIL, "alert_mail_to": ["a@b\nBcc: c@d"]}, "no mail address"),
        ({**MAIL, "alert_mail_to": ["a@b, c@d"]}, "no mail address"),
        ({**MAIL, "alert_mail_to": ["{{ .Labels }}@b"]}, "no mail address"),
        ({**MAIL, "alert_mail_user": "farm"}, "give both or none"),
        ({**MAIL, "alert_mail_password": "pass"}, "give both or none"),
        ({**MAIL, **LOGIN, "alert_mail_password": "pa\nss"}, "has a line break"),
        ({**MAIL, **LOGIN, "alert_mail_user": "fa\x00rm"}, "has a line break"),
        (webhook("http://chat.example.org/"), "URL of entry 1"),
        (webhook("https://me:word@chat.example.org/"), "URL of entry 1"),
        (webhook("https://chat.example.org/{{ .Env }}"), "URL of entry 1"),
        (webhook("https://chat.example.org/\n"), "URL of entry 1"),
        (webhook(token="a\r\nX: y"), "token of entry 1"),
    ],
)
def test_receivers_that_cannot_work_are_refused(changes: dict[str, Any], said: str) -> None:
    (problem,) = problems({**NOBODY, **changes})
    assert said in problem


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_no_problem_tells_a_secret(password: str, url: str, token: str) -> None:
    secret = "s3cret-"
    settings = {
        **NOBODY,
        **MAIL,
        "alert_mail_user": "farm",
        "alert_mail_password": secret + password,
        **webhook(secret + url, secret + token),
    }
    assert not any(secret in one for one in problems(settings))
