"""Inputs of users reach the roles unchanged, and Ansible evaluates none of them as a template."""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ansible_runner
import pytest
import yaml
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, is_trusted_as_template, trust_as_template
from ansible_collections.gpufarm.cluster.plugins.inventory.tosca import InventoryModule
from gpufarm import inputs, plan, run, template, waves
from gpufarm.functions import Scope
from gpufarm.plan import Step
from gpufarm.recorded import Claim
from gpufarm.run import compile_playbook
from gpufarm.topology import Input
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "tosca" / "templates").glob("*.yaml"))

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


def steps_with(path: Path, *texts: str) -> list[Step]:
    """The steps of a template whose inputs all hold one of the texts, also where constraints would refuse it.

    Inputs that name files are refused with such texts: tests/unit/tosca/test_deployer_files.py tries that.
    """
    _library, topology = template.read(path)
    values = inputs.known(topology, {}, {})
    files = {
        name
        for node in topology.nodes.values()
        for variable in topology.file_variables & node.properties.keys()
        for name in Scope(topology, {}).inputs_of(node.properties[variable], node.name)
    }
    for index, (name, definition) in enumerate(topology.inputs.items()):
        value = typed(definition, texts[index % len(texts)])
        if value is not None and name not in files:
            values[name] = value
    hosts = {node.name: "gpu1" for node in topology.nodes.values() if node.is_machine}
    return plan.steps(Scope(topology, values).on(hosts), hosts, frozenset(values))


def only_own_templates(content: dict[str, Any], variables: Iterable[str]) -> bool:
    """Whether all that Ansible would evaluate of a play is where its variables come from."""
    return set(trusted(content)) == {
        f"{{{{ gpufarm_values[inventory_hostname][{n!r}] }}}}" for n in variables
    }


def steps_of(playbook: str, folder: Path) -> list[dict[str, Any]]:
    """The plays of the steps, after the one that compares machines with their records by the same values."""
    comparison, *plays = loaded(playbook, folder)
    assert {*trusted(comparison)} == {"{{ gpufarm_roles[inventory_hostname] }}"}
    return plays


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_no_input_of_a_template_is_evaluated(path: Path, form: str, tmp_path: Path) -> None:
    text = evil(form, tmp_path / "evil")
    steps = steps_with(path, text)
    seen = 0
    plays = waves.plays(steps)
    for play, content in zip(plays, steps_of(compile_playbook(plays, Claim("me")), tmp_path), strict=True):
        assert only_own_templates(content, next(iter(play.steps.values())).variables), play
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
    (content,) = steps_of(compile_playbook([play], Claim("me")), tmp_path)
    for host, value in (("one", mine), ("two", theirs)):
        found = resolved(content, host, "value")
        assert found == value and repr(found) == repr(value)
    assert only_own_templates(content, ["value"])


class Silent:
    """Does not listen."""

    def started(self, step: Step) -> None: ...

    def task(self, step: Step, name: str) -> None: ...

    def finished(self, step: Step, done: run.Done) -> None: ...

    def failed(self, step: Step, failure: str, done: run.Done) -> None: ...


# Asks for every variable of the step, as a role does, and writes what it gets to a file of the machine.
ECHO = """
- hosts: "{{{{ gpufarm_hosts }}}}"
  gather_facts: false
  tasks:
    - name: Write
      ansible.builtin.copy:
        dest: {path}
        content: "{{{{ dict(names | zip(query('ansible.builtin.vars', *names))) | to_json }}}}"
      vars:
        names: "{{{{ gpufarm_values[inventory_hostname] | list }}}}"
"""


def test_ansible_itself_evaluates_no_input(tmp_path: Path) -> None:
    """All templates in one run of Ansible, as the deployer starts it, with a hostile text in every input."""
    victim = tmp_path / "evil"
    texts = (evil(REDEFINED, victim), "".join(evil(form, victim) for form in FORMS if form != REDEFINED))
    steps = []
    for path in TEMPLATES:
        for step in (step for step in steps_with(path, *texts) if step.variables):
            playbook = tmp_path / f"{len(steps)}.yml"
            playbook.write_text(ECHO.format(path=tmp_path / f"{len(steps)}.json"))
            name = f"{path.stem}_{step.node}"
            steps.append(
                dataclasses.replace(step, node=name, playbook=playbook, needs=(), secrets=frozenset())
            )
    pool = tmp_path / "hosts.yml"
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    pool.write_text(yaml.safe_dump({"all": {"hosts": {"gpu1": host}}}))
    (tmp_path / "run").mkdir()
    log = tmp_path / "log"
    outcome = run.run(steps, Claim("me"), pool, tmp_path / "run", log, Silent(), threading.Event())
    assert outcome.status == "successful", log.read_text()[-2000:]
    assert not victim.exists()
    for number, step in enumerate(steps):
        assert json.loads((tmp_path / f"{number}.json").read_text()) == step.variables, step.name


def test_nothing_but_the_playbook_brings_values_to_ansible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`compile_playbook` is the one place at which values become variables of Ansible."""
    asked: dict[str, Any] = {}

    def start(**arguments: Any) -> Any:
        asked.update(arguments)
        asked["files"] = {path.name for path in (tmp_path / "run").iterdir()}
        return SimpleNamespace(status="successful", rc=0)

    monkeypatch.setattr(ansible_runner, "run", start)
    playbook = tmp_path / "configure.yml"
    playbook.write_text("- hosts: all\n")
    (tmp_path / "run").mkdir()
    step = Step("a", "configure", "gpu1", playbook, {"value": "hostile"}, frozenset(), {})
    run.run([step], Claim("me"), tmp_path, tmp_path / "run", tmp_path / "log", Silent(), threading.Event())
    assert asked["files"] == {"playbook.yml"}
    passed = {"private_data_dir", "playbook", "inventory", "envvars", "settings", "cmdline", "quiet"}
    assert asked.keys() - {"files", "event_handler", "cancel_callback"} == passed
    told = {key: asked[key] for key in passed}
    assert "hostile" not in str(told)
    sources = {path.name: path.read_text() for path in sorted((ROOT / "tosca" / "gpufarm").rglob("*.py"))}
    assert [name for name, text in sources.items() if "ansible_runner.run(" in text] == ["ansible.py"]
    assert [name for name, text in sources.items() if '"import_playbook"' in text] == [
        "checks.py",
        "pool.py",
        "question.py",
        "run.py",
    ]


@given(value=VALUES)
@settings(deadline=None)
def test_the_inventory_plugin_gives_data_too(value: Any) -> None:
    plugin = InventoryModule()
    plugin.inventory = InventoryData()
    plugin._fill(
        SimpleNamespace(groups={"g": ["h"]}, parents={}, pool={"h": {}}, chosen={"h": {"value": value}})
    )
    found = plugin.inventory.get_host("h").get_vars()["value"]
    assert not list(trusted(found)) and repr(found) == repr(value)
