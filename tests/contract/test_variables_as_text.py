"""Variables that `-e NAME=VALUE` gives as texts do what the same values do in a playbook."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from ansible.module_utils.common.parameters import DEFAULT_TYPE_VALIDATORS
from ansible.plugins.loader import fragment_loader, module_loader
from ansible.utils.plugin_docs import get_plugin_docs
from harness import CASES, Call, Run
from harness.other_values import FOUND, NEEDS, REFUSED, WITH, other
from harness.specs import defaults, options

EVERY_ROLE = pytest.mark.parametrize("role", sorted(CASES))
SWITCHES = [
    (role, name) for role in sorted(CASES) for name, one in options(role).items() if one["type"] == "bool"
]


def text(value: Any) -> str:
    """A value as somebody types it after `-e NAME=`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def types(module: str) -> dict[str, tuple[str, str | None]]:
    """The types of a module's options and of the elements of lists, from its documentation."""
    documentation = get_plugin_docs(module, "module", module_loader, fragment_loader, False)[0]
    return {
        name: (one.get("type", "str"), one.get("elements")) for name, one in documentation["options"].items()
    }


def coerced(call: Call) -> tuple[str, str, dict[str, Any]]:
    """A call with its arguments as the module takes them."""
    args: dict[str, Any] = {}
    for name, value in call.args.items():
        kind, elements = types(call.action).get(name, ("raw", None))
        args[name] = DEFAULT_TYPE_VALIDATORS[kind](value)
        if kind == "list" and elements in ("int", "str", "float", "bool"):
            args[name] = [DEFAULT_TYPE_VALIDATORS[elements](one) for one in args[name]]
    return call.host, call.name, args


def same(one: Run, other: Run) -> None:
    """Fail where two runs differ in what they do."""
    assert [(step.name, step.status) for step in one.steps] == [
        (step.name, step.status) for step in other.steps
    ], other.refusal
    for mine, theirs in zip(one.calls, other.calls, strict=True):
        if mine != theirs:
            assert coerced(mine) == coerced(theirs)


@EVERY_ROLE
def test_numbers_and_switches_may_be_given_as_texts(role: str) -> None:
    values = {**defaults(role), **CASES[role].variables}
    texts = {
        name: text(values[name])
        for name, one in options(role).items()
        if one["type"] in ("int", "float", "bool")
    }
    as_they_are = CASES[role].run(role)
    assert not as_they_are.failed, as_they_are.refusal
    same(as_they_are, CASES[role].run(role, extra=texts))


@pytest.mark.parametrize(("role", "name"), SWITCHES, ids=[name for _role, name in SWITCHES])
def test_a_switch_that_is_given_as_a_text_is_not_simply_on(role: str, name: str) -> None:
    other = not {**defaults(role), **CASES[role].variables}[name]
    same(CASES[role].run(role, {name: other}), CASES[role].run(role, extra={name: text(other)}))


def test_repositories_may_be_a_list() -> None:
    name, case = "cvmfs_client_repositories", CASES["cvmfs_client"]
    as_list = case.run("cvmfs_client", {name: case.variables[name].split()})
    assert not as_list.failed, as_list.refusal
    same(case.run("cvmfs_client"), as_list)


@pytest.mark.parametrize("nothing", ["", "  ", [], [""]], ids=repr)
def test_without_repositories_nothing_is_done(nothing: str | list[str]) -> None:
    done = CASES["cvmfs_client"].run("cvmfs_client", {"cvmfs_client_repositories": nothing})
    assert not done.failed, done.refusal
    assert {call.action for call in done.calls} == {"gpufarm.cluster.role_record"}


CONTAINERS = [
    (role, name)
    for role in sorted(CASES)
    for name, one in options(role).items()
    if one["type"] in ("list", "dict")
]
ENTRIES = [(role, name) for role, name in CONTAINERS if "options" in options(role)[name]]


def texts_within(value: Any, option: Mapping[str, Any]) -> Any:
    """A value with texts for the numbers and switches in its entries.

    Args:
        value: the value.
        option: its part of the argument spec.
    """
    inner = option.get("options")
    if inner is None:
        return text(value) if option["type"] in ("int", "float", "bool") else value
    if isinstance(value, list):
        return [texts_within(one, {"options": inner}) for one in value]
    return {name: texts_within(one, inner[name]) for name, one in value.items()}


@pytest.mark.parametrize(("role", "name"), ENTRIES, ids=[name for _role, name in ENTRIES])
def test_numbers_and_switches_in_entries_may_be_texts(role: str, name: str) -> None:
    case, value = CASES[role].with_answers(FOUND.get(name, {})), other(role, name)
    needs = {**NEEDS.get(name, {}), **WITH.get(name, {})}
    as_they_are = case.run(role, {**needs, name: value})
    assert name in REFUSED or not as_they_are.failed, as_they_are.refusal
    same(as_they_are, case.run(role, {**needs, name: texts_within(value, options(role)[name])}))


@pytest.mark.parametrize(("role", "name"), CONTAINERS, ids=[name for _role, name in CONTAINERS])
def test_a_text_in_place_of_a_list_or_dict_is_refused(role: str, name: str) -> None:
    option = options(role)[name]
    refused = CASES[role].run(role, extra={name: "a=b"})
    if option.get("options") or option.get("choices") or option.get("elements") in ("int", "float"):
        assert name in refused.refusal  # by Ansible, which finds no such entry in the text
    else:
        wish = "a list, also of one value" if option["type"] == "list" else "a dict"
        assert f"{name} is a text; give {wish}" in refused.refusal
    assert not [call for call in refused.calls if not call.asks]


INNER_LISTS = [
    (role, name, inner)
    for role, name in ENTRIES
    for inner, one in options(role)[name]["options"].items()
    if one.get("type") == "list"
]


@pytest.mark.parametrize(
    ("role", "name", "inner"), INNER_LISTS, ids=[f"{name}.{inner}" for _role, name, inner in INNER_LISTS]
)
def test_a_text_in_place_of_a_list_in_an_entry_is_refused(role: str, name: str, inner: str) -> None:
    first, *others = other(role, name)
    refused = CASES[role].run(role, {name: [{**first, inner: "physics"}, *others]})
    assert f"{name}[0].{inner} is a text; give a list, also of one value" in refused.refusal
    assert not [call for call in refused.calls if not call.asks]
