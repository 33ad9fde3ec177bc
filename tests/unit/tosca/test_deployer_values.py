"""Values: what is none, or comes to none, is refused in a short sentence before any machine is looked at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployer_site import SERVICE, Site
from deployer_stub import StubSite, install

LONG = "a" * 100_000
SERVICES = Path(__file__).resolve().parents[3] / "tosca" / "templates" / "ml_infn.yaml"
NEEDED = ("--input", "iam_url=https://iam.example.org/")
MACHINE = "{type: tosca.nodes.Compute, capabilities: {host: {properties: {num_cpus: 1}}}}"
INPUTS = """
    number: {type: integer, default: 1}
    fraction: {type: float, default: 1.5}
    text: {type: string, default: a}
    texts: {type: list, default: []}
    pairs: {type: map, default: {}}
    words: {type: list, entry_schema: {type: string}, default: []}
    names: {type: map, entry_schema: {type: string}, default: {}}
    password: {type: string, default: ""}
"""


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    return install(monkeypatch, site)


def template(site: Site, host: str = "num_cpus: {get_input: number}", inputs: str = INPUTS) -> Path:
    path = site.root / "one.yaml"
    path.write_text(
        "tosca_definitions_version: tosca_simple_yaml_1_3\n"
        f"topology_template:\n  inputs:{inputs}\n  node_templates:\n"
        "    server:\n      type: tosca.nodes.Compute\n      capabilities:\n"
        f"        host:\n          properties:\n            {host}\n"
    )
    return path


WRONG = {
    "a function for a number": (
        "number",
        "{get_input: number}",
        "the function get_input, which works in templ",
    ),
    "functions inside of each other": ("number", "{concat: [{concat: []}]}", "the function concat"),
    "a function for a text": ("text", {"get_attribute": ["server", "public_address"]}, "get_attribute"),
    "a function in a list": ("texts", "[{get_property: [server, x]}]", "the function get_property"),
    "a function in a map": ("pairs", "{a: {get_artifact: [server, x]}}", "the function get_artifact"),
    "another function": ("number", "{join: [a, b]}", "is no integer"),
    "a number with 5000 digits": ("number", "9" * 5000, "is no integer"),
    "a number with 5000 other digits": ("number", "0x" + "f" * 5000, "is no integer"),
    "a number beyond 64 bits": ("number", str(2**64), "is too large a number"),
    "no number": ("fraction", ".nan", "is too large a number, or none"),
    "no end": ("fraction", ".inf", "is too large a number, or none"),
    "too deep": ("texts", "[" * 5000, "is no list"),
    "a circle": ("texts", "&a [*a]", "is no list"),
    "NUL": ("words", ["a\0"], "contains a NUL character"),
    "NUL in a map": ("pairs", {"a": {"b\0": "c"}}, "contains a NUL character"),
    "a number as a key": ("names", {1: "a"}, '"1" is no key of a map; write it in quotes'),
    "a long text for a number": ("number", LONG, "is no integer"),
    "a long key": ("words", {LONG: "a"}, "is no list"),
    "a long entry": ("names", {LONG: 1}, "is no string; write it in quotes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_value_is_refused(farm: StubSite, name: str) -> None:
    which, value, sentence = WRONG[name]
    path = template(farm.site)
    given: tuple[str | Path, ...] = ("--input", f"{which}={value}")
    if not isinstance(value, str) or "\0" in value:
        file = farm.site.root / "inputs.yaml"
        file.write_text(yaml.safe_dump({which: value}))
        given = ("--inputs", file)
    for command in (["validate", path], ["deploy", path, "--pool", farm.site.pool]):
        answer = farm.gpufarm(*command, *given)
        assert answer.status == 2 and sentence in answer.error, answer
        assert len(answer.error) < 2500
    assert farm.stub.processes == 0


@pytest.mark.parametrize("value", ["2", "2.0"])
def test_a_whole_number_is_a_float(farm: StubSite, value: str) -> None:
    answer = farm.gpufarm("validate", SERVICES, "--input", f"jupyter_cpu_limit={value}", *NEEDED)
    assert answer.status == 0, answer


@pytest.mark.parametrize("value", ["{token: abc}", "{join: abc, get_input: abc}"])
def test_maps_may_have_other_words_of_tosca(farm: StubSite, value: str) -> None:
    file = farm.site.root / "inputs.yaml"
    file.write_text(f"names: {value}\n")
    answer = farm.gpufarm("plan", template(farm.site), "--pool", farm.site.pool, "--inputs", file)
    assert answer.status == 0, answer


def test_a_text_that_is_no_text(farm: StubSite) -> None:
    odd = os.fsdecode(b"\xff")
    answer = farm.gpufarm("validate", template(farm.site), "--input", f"text={odd}")
    assert answer.status == 2 and "input text: is no text in UTF-8" in answer.error


COMES_TO: dict[str, tuple[str, list[str], str]] = {
    "a text": ("num_cpus: {concat: [a, {get_input: text}]}", [], 'num_cpus of server: "aa" is no integer'),
    "a size": ("mem_size: {get_input: text}", [], "mem_size"),
    "an endless size": ("mem_size: {get_input: text}", [f"text={'9' * 400} GB"], "too large"),
    "a map": ("mem_size: {concat: [{get_input: pairs}, GB]}", [], "concat in node server has a map"),
    "nothing": ("num_cpus: {concat: []}", [], "concat needs a list with at least one entry"),
    "nothing inside": ("num_cpus: {concat: [{concat: []}]}", [], "concat needs a list with at least one"),
    "a secret": ("num_cpus: {get_input: password}", [], "the value is not what its type allows"),
}


@pytest.mark.parametrize("name", COMES_TO)
def test_what_functions_come_to_is_checked(farm: StubSite, name: str) -> None:
    host, given, sentence = COMES_TO[name]
    options = [word for entry in given for word in ("--input", entry)]
    environment = {"GPUFARM_INPUT_PASSWORD": "hunter2"} if name == "a secret" else {}
    path = template(farm.site, host)
    for command in (["validate", path], ["plan", path, "--pool", farm.site.pool]):
        answer = farm.site.gpufarm(*command, *options, **environment)
        assert answer.status == 2 and sentence in answer.error, answer
        assert "hunter2" not in answer.error


def test_outputs_are_computed_before_anything_is_done(farm: StubSite) -> None:
    path = template(farm.site)
    path.write_text(path.read_text() + "  outputs: {x: {value: {concat: [a, {get_input: pairs}]}}}\n")
    answer = farm.gpufarm("deploy", path, "--pool", farm.site.pool)
    assert answer.status == 2 and "concat in an output has a map; give it texts" in answer.error
    assert farm.stub.processes == 0 and not list(farm.site.state.glob("*.json"))


@pytest.mark.parametrize(
    "default", ["{get_input: number}", "{concat: [{concat: []}]}", "1e400", "0x" + "f" * 5000]
)
def test_defaults_are_values(site: Site, default: str) -> None:
    path = template(site, inputs=f"\n    number: {{type: integer, default: {default}}}\n")
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and "Traceback" not in answer.error and len(answer.error) < 2500


LONG_TEMPLATES: dict[str, Any] = {
    "node": ("    server:", f"    {LONG}:"),
    "type": ("tosca.nodes.Compute", LONG),
    "property": ("num_cpus", LONG),
    "value": ("{get_input: number}", LONG),
    "input": ("get_input: number", f"get_input: {LONG}"),
    "function": ("{get_input: number}", f"{{get_attribute: [server, {LONG}]}}"),
    "version": ("tosca_simple_yaml_1_3", LONG),
    "import": ("topology_template", f"imports: [{LONG}]\ntopology_template"),
    "circle": ("{get_input: number}", f"{{get_property: [server, host, {LONG}]}}"),
}


@pytest.mark.parametrize("name", LONG_TEMPLATES)
def test_long_words_of_templates_are_cut(site: Site, name: str) -> None:
    path = template(site)
    before, after = LONG_TEMPLATES[name]
    path.write_text(path.read_text().replace(before, after))
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and len(answer.error) < 5000, len(answer.error)


def test_long_words_of_the_command_line_are_cut(site: Site) -> None:
    for arguments in (
        ["validate", SERVICE, "--input", LONG],
        ["validate", SERVICE, "--input", f"{LONG}=1"],
        ["validate", LONG],
        ["validate", SERVICE, "--inputs", LONG],
        ["plan", SERVICE, "--pool", LONG, "--input", "folder=/x"],
        ["plan", SERVICE, "--pool", site.pool, "--input", "folder=/x", "--name", LONG],
        ["status", LONG],
        ["history", LONG],
        ["scale", "notes", LONG],
        ["package", SERVICE, "--address", LONG],
        ["package", SERVICE, "--address", f"{LONG}=1"],
    ):
        answer = site.gpufarm(*arguments)
        assert answer.status in (1, 2) and len(answer.error) < 2500, (arguments[0], len(answer.error))
