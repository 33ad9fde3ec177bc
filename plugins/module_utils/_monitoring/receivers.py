# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Receivers of alerts: problems of their settings, and the configuration of Alertmanager. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[1-9][0-9]{0,4}")
# RFC 5322, 3.4.1, addr-spec without quotes; without braces, as Alertmanager takes addresses for templates.
MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`|~-]+@[A-Za-z0-9.-]+")
# Without an account, which would be seen in messages of Alertmanager.
WEBHOOK = re.compile(
    r"https://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:[1-9][0-9]{0,4})?(/[A-Za-z0-9._~%!$&'()*+,;=:@?/-]*)?"
)
# YAML 1.1, 5.1 and 5.4: characters that are not printable, or that break lines.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

# Alertmanager, "Notification template reference".
SUBJECT = (
    "{{ .GroupLabels.instance }}: {{ if .Alerts.Firing }}{{ len .Alerts.Firing }}"
    " {{ if eq (len .Alerts.Firing) 1 }}problem{{ else }}problems{{ end }}{{ else }}resolved{{ end }}"
)
TEXT = (
    "{{ range .Alerts.Firing }}{{ .Labels.severity }}: {{ .Annotations.summary }}\n"
    "Next step: {{ .Annotations.next_step }}\n"
    'Since {{ .StartsAt.UTC.Format "2006-01-02 15:04" }} UTC ({{ .Labels.alertname }}).\n\n{{ end }}'
    "{{ range .Alerts.Resolved }}resolved: {{ .Annotations.summary }}\n{{ end }}"
)


def configuration(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of Alertmanager; empty if alerts are sent to nobody.

    Args:
        settings: the role's variables without ``monitoring_``, in which there are no problems.
    """
    receiver = {
        "name": "administrators",
        "email_configs": [_mail(settings)] if settings["alert_mail_to"] else [],
        "webhook_configs": [_webhook(one) for one in settings["alert_webhooks"]],
    }
    if not receiver["email_configs"] and not receiver["webhook_configs"]:
        return {}
    return {
        # One message for each machine, and none about parts of a machine that is not seen at all.
        "route": {
            "receiver": receiver["name"],
            "group_by": ["instance"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "1d",
        },
        "inhibit_rules": [
            {
                "source_matchers": ['alertname="MachineNotSeen"'],
                "target_matchers": ['alertname!="MachineNotSeen"'],
                "equal": ["instance"],
            }
        ],
        "receivers": [receiver],
    }


def _mail(settings: Mapping[str, Any]) -> dict[str, Any]:
    login = (
        {"auth_username": settings["alert_mail_user"], "auth_password": settings["alert_mail_password"]}
        if settings["alert_mail_user"]
        else {}
    )
    return {
        "to": ", ".join(settings["alert_mail_to"]),
        "from": settings["alert_mail_from"],
        "smarthost": settings["alert_mail_server"],
        **login,
        "require_tls": True,
        "send_resolved": True,
        "headers": {"Subject": SUBJECT},
        "html": "",
        "text": TEXT,
    }


def _webhook(entry: Mapping[str, Any]) -> dict[str, Any]:
    # A token must not follow a redirect to another server.
    http: dict[str, Any] = {"follow_redirects": False}
    if entry.get("token"):
        http["authorization"] = {"type": "Bearer", "credentials": entry["token"]}
    return {"url": entry["url"], "send_resolved": True, "http_config": http}


def problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of the settings, each a sentence without secrets."""
    if settings["alert_mail_to"]:
        yield from _mail_problems(settings)
    if bool(settings["alert_mail_user"]) != bool(settings["alert_mail_password"]):
        yield (
            "Only one of monitoring_alert_mail_user and monitoring_alert_mail_password is given; give both or"
            " none."
        )
    if any(CONTROL.search(settings[f"alert_mail_{name}"]) for name in ("user", "password")):
        yield (
            "monitoring_alert_mail_user or monitoring_alert_mail_password has a line break or another control"
            " character; remove it."
        )
    # Addresses of webhooks often are secrets themselves, so they are told of by number.
    for number, one in enumerate(settings["alert_webhooks"], 1):
        if not WEBHOOK.fullmatch(one["url"]):
            yield (
                f"The URL of entry {number} in monitoring_alert_webhooks is not understood; write one like"
                " https://chat.example.org/hooks/alerts, without an account."
            )
        if CONTROL.search(one.get("token") or ""):
            yield (
                f"The token of entry {number} in monitoring_alert_webhooks has a line break or another"
                " control character; remove it."
            )


def _mail_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    for one in settings["alert_mail_to"]:
        if not MAIL.fullmatch(one):
            yield f"monitoring_alert_mail_to has '{one}', no mail address; write one like ops@example.org."
    if not MAIL.fullmatch(settings["alert_mail_from"]):
        yield (
            f"monitoring_alert_mail_from is '{settings['alert_mail_from']}'; give the address from which mail"
            " is sent to monitoring_alert_mail_to, such as gpufarm@example.org."
        )
    if not ADDRESS.fullmatch(settings["alert_mail_server"]):
        yield (
            f"monitoring_alert_mail_server is '{settings['alert_mail_server']}'; give host and port of the"
            " server that takes the mail, such as smtp.example.org:587."
        )
