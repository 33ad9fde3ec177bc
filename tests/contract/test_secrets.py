"""Secrets are in no output of a role, and in no file that others can read."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from ansible.module_utils.basic import AnsibleModule
from harness import CASES, Call, Run
from harness.certificates import CERTIFICATE
from harness.specs import options
from harness.stubs import PUBLIC_KEY, SECRET

# A variable that is called so carries a secret, and its spec says no_log.
NAME = re.compile(r"_(password|secret|secret_env|token|login)$")
NO_SECRET = {
    "jupyterhub_login": "the way of logging in",
}
# Secrets inside of lists.
WITHIN: dict[str, Any] = {
    "jupyterhub_registries": [
        {"registry": "registry.example.org", "username": "hub", "password": f"{SECRET}registry"}
    ],
    "monitoring_hubs": [
        {
            "name": "hub",
            "url": "https://hub.example.org",
            "ca_certificate": Path(CERTIFICATE).read_text(),
            "token": f"{SECRET}token",
        }
    ],
    "monitoring_alert_webhooks": [{"url": "https://chat.example.org/hook", "token": f"{SECRET}hook"}],
}
# Settings without which a secret is refused.
BESIDE: dict[str, dict[str, Any]] = {
    "chronos_mesos_secret": {"chronos_mesos_principal": "chronos"},
    "chronos_zookeeper_login": {"chronos_zookeeper_login": f"chronos:{SECRET}login"},
    "jupyterhub_iam_client_secret": {"jupyterhub_iam_client_id": "hub"},
    "marathon_mesos_secret": {"marathon_mesos_principal": "marathon"},
    "monitoring_alert_mail_password": {
        "monitoring_alert_mail_to": ["ops@example.org"],
        "monitoring_alert_mail_from": "farm@example.org",
        "monitoring_alert_mail_server": "smtp.example.org:587",
        "monitoring_alert_mail_user": "farm",
    },
}
# Variables with which other secrets are used.
OTHER_WAYS: list[tuple[str, dict[str, Any]]] = [
    *((role, {}) for role in sorted(CASES)),
    (
        "chronos",
        {
            "chronos_zookeeper": "",
            "chronos_zookeeper_servers": ["zk1"],
            "chronos_mesos_masters": ["host1"],
            "chronos_mesos_secret": "",
            "chronos_zookeeper_login": "",
        },
    ),
    (
        "container_request",
        {
            "container_request_kind": "ssh",
            "container_request_password": "",
            "container_request_ssh_keys": PUBLIC_KEY,
        },
    ),
    (
        "marathon",
        {
            "marathon_zookeeper": "",
            "marathon_zookeeper_servers": ["zk1"],
            "marathon_mesos_masters": ["host1"],
            "marathon_mesos_secret": "",
        },
    ),
    (
        "jupyterhub",
        {
            "jupyterhub_login": "ldap",
            "jupyterhub_ldap_url": "ldaps://ldap.example.org",
            "jupyterhub_ldap_bind_dn": "cn=hub",
            "jupyterhub_ldap_user_base": "ou=people",
            "jupyterhub_ldap_group_base": "ou=groups",
            "jupyterhub_ldap_groups": ["gpu-users"],
            "jupyterhub_spawner": "docker",
            "jupyterhub_images": [{"image": "registry.example.org/notebook:1"}],
        },
    ),
]


class Specified(Exception):
    """A module has said what it takes."""


@cache
def censored(action: str) -> frozenset[str]:
    """The options that a module of this collection keeps out of all output itself."""
    if not action.startswith("gpufarm.cluster."):
        return frozenset()
    name = f"ansible_collections.gpufarm.cluster.plugins.modules.{action.rpartition('.')[2]}"
    module = importlib.import_module(name)
    if not hasattr(module, "main"):  # documentation of an action, which calls a module
        return frozenset()
    with (
        mock.patch.object(AnsibleModule, "__init__", side_effect=Specified) as made,
        pytest.raises(Specified),
    ):
        module.main()
    spec = made.call_args.kwargs.get("argument_spec") or made.call_args.args[0]
    return frozenset(option for option, one in spec.items() if one.get("no_log"))


def with_secrets(role: str, changed: Mapping[str, Any]) -> Run:
    """Run a role with secrets wherever it takes any."""
    secrets: dict[str, Any] = {name: value for name, value in WITHIN.items() if name in options(role)}
    for name, one in options(role).items():
        if one.get("no_log") and name not in WITHIN and changed.get(name) != "":
            secrets[name] = {"TOKEN": f"{SECRET}{name}"} if one["type"] == "dict" else f"{SECRET}{name}"
            secrets |= BESIDE.get(name, {})
    run = CASES[role].run(role, {**secrets, **changed})
    assert not run.failed, run.refusal
    return run


def writes(call: Call) -> str | None:
    """The permissions of the file that a call writes; None where it writes none."""
    if call.action in ("ansible.builtin.copy", "ansible.builtin.template"):
        return str(call.args["mode"])
    return str(call.args.get("mode", "0644")) if call.action == "gpufarm.cluster.text_files" else None


# Tasks that write secrets and are not those of the role _common, and why.
APART = {
    "chronos": {"Configure | Write the file of options": "the output shows the file where it has no secret"},
}


@pytest.mark.parametrize(("role", "changed"), OTHER_WAYS, ids=lambda one: one if isinstance(one, str) else "")
def test_secrets_are_written_at_one_place(role: str, changed: dict[str, Any]) -> None:
    if role == "jupyterhub":
        pytest.skip("its own program writes most of them")
    for call in with_secrets(role, changed).calls:
        name = call.name.rpartition(" : ")[2]
        if name in APART.get(role, {}) or name.startswith(("Secrets | ", "Keystore | ")):
            continue
        assert call.action != "gpufarm.cluster.secret_files" or call.args.get("create") is False, name
        assert writes(call) is None or SECRET not in str(call.args), name


@pytest.mark.parametrize("role", sorted(CASES))
def test_variables_that_are_called_secrets_are_declared_so(role: str) -> None:
    undeclared = {
        name for name, one in options(role).items() if NAME.search(name) and not one.get("no_log")
    } - set(NO_SECRET)
    assert not undeclared


@pytest.mark.parametrize(("role", "changed"), OTHER_WAYS, ids=lambda one: one if isinstance(one, str) else "")
def test_secrets_are_in_no_output_and_in_no_file_for_others(role: str, changed: dict[str, Any]) -> None:
    run = with_secrets(role, changed)
    for step in run.steps:
        assert step.no_log or SECRET not in str(step.result), step.name
    for call in run.calls:
        shown = {name: value for name, value in call.args.items() if name not in censored(call.action)}
        if SECRET in str(shown):
            assert call.no_log, call.name
            mode = writes(call)
            assert mode is None or int(mode, 8) & 0o077 == 0, (call.name, mode)
