"""Inputs of users reach the roles unchanged, and Ansible evaluates none of them as a template."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, is_trusted_as_template, trust_as_template
from gpufarm import inputs, plan, template, waves
from gpufarm.functions import Scope
from gpufarm.plan import Step
from gpufarm.run import compile_playbook
from gpufarm.topology import Input
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TEMPLATES = sorted((Path(__file__).resolve().parents[2] / "tosca" / "templates").glob("*.yaml"))

# ansible-core evaluates a text with a delimiter of Jinja, or that begins with #jinja2: and may choose others.
REDEFINED = "#jinja2: variable_start_string:'[[', variable_end_string:']]'\n[[ {} ]]"
FORMS = ("{{{{ {} }}}}", REDEFINED, "{{% set x = {} %}}", "{{# {} #}}{{{{ x")


def evil(form: str, victim: Path) -> str:
    return form.format(f"lookup('ansible.builtin.pipe', 'touch {victim}')")


def loaded(text: str, folder: Path) -> list[dict[str, Any]]:
    """The plays of a playbook, as Ansible reads the files that it trusts."""
    path = folder / "playbook.yml"
    path.write_text(text, encoding="utf-8")
    plays = DataLoader().load_from_file(str(path), trusted_as_template=True)
    assert isinstance(plays, list)
    return plays


def resolved(play: dict[str, Any], host: str, name: str) -> Any:
    """Value that a role gets on a host for a variable of a play."""
    templar = Templar(DataLoader(), variables={**play["vars"], "inventory_hostname": host})
    return templar.template(trust_as_template(f"{{{{ {name} }}}}"))


def trusted(value: Any) -> Iterable[str]:
    """The texts in a value that Ansible would evaluate."""
    if isinstance(value, str):
        if is_trusted_as_template(value) and Templar(DataLoader()).is_possibly_template(value):
            yield value
    elif isinstance(value, dict):
        for item in value.items():
            yield from trusted(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from trusted(item)


def typed(definition: Input, text: str) -> Any:
    """A value with a text wherever a user can put one into an input; None where it takes no text."""
    inner = definition.schema.get("entry_schema", {})
    inner = inner.get("type", "string") if isinstance(inner, dict) else inner
    entry = text if inner == "string" else {text: text}
    if definition.kind == "string":
        return text
    if definition.kind == "list":
        return [entry]
    return {text: entry} if definition.kind == "map" else None


def steps_with(path: Path, text: str) -> list[Step]:
    """The steps of a template whose inputs all hold a text, also where constraints would refuse it."""
    _library, topology = template.read(path)
    values = inputs.known(topology, {}, {})
    for name, definition in topology.inputs.items():
        value = typed(definition, text)
        if value is not None:
            values[name] = value
    hosts = {node.name: "gpu1" for node in topology.nodes.values() if node.is_machine}
    return plan.steps(Scope(topology, values).on(hosts), hosts, frozenset(values))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_no_input_of_a_template_is_evaluated(path: Path, form: str, tmp_path: Path) -> None:
    text = evil(form, tmp_path / "evil")
    steps = steps_with(path, text)
    seen = 0
    plays = waves.plays(steps)
    for play, content in zip(plays, loaded(compile_playbook(plays, "me"), tmp_path), strict=True):
        assert not list(trusted(content["vars"]["gpufarm_values"])), content["import_playbook"]
        ((host, step),) = play.steps.items()
        for name, value in step.variables.items():
            assert resolved(content, host, name) == value, name
            seen += text in str(value)
    assert seen, "no input reaches any step"
    assert not (tmp_path / "evil").exists()


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
AWKWARD = st.sampled_from(
    [
        "",
        "535",
        "0o17",
        "1e3",
        "yes",
        "null",
        "~",
        "=",
        "<<",
        "2026-11-23",
        "!unsafe x",
        "!vault |",
        "&a",
        "*a",
        "\x85",
        "a\u2028b",
        "\ufeff",
    ]
    + [evil(form, Path("/nowhere")) for form in FORMS]
)
KEYS = TEXTS | AWKWARD
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(mine=VALUES, theirs=VALUES)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_values_keep_their_types_and_are_never_evaluated(mine: Any, theirs: Any, tmp_path: Path) -> None:
    """One play on two machines, whose values may differ; 535 stays a number and "535" a text."""
    playbook = tmp_path / "configure.yml"
    playbook.write_text("- hosts: all\n")
    play = waves.Play(
        {
            host: Step(f"on_{host}", "configure", host, playbook, {"value": value}, frozenset(), {})
            for host, value in (("one", mine), ("two", theirs))
        }
    )
    (content,) = loaded(compile_playbook([play], "me"), tmp_path)
    for host, value in (("one", mine), ("two", theirs)):
        found = resolved(content, host, "value")
        assert found == value and repr(found) == repr(value)
    assert not list(trusted(content["vars"]["gpufarm_values"]))
