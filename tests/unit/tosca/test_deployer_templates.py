"""Templates, good and bad: every refusal is one sentence that says where and why."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import FlavorError, parse_flavor
from deployer_site import DATA, SERVICE, Site
from gpufarm import deployment, inputs, match, plan, template, values
from gpufarm.catalogue import Catalogue
from gpufarm.conformance import check_template
from gpufarm.errors import GpufarmError
from gpufarm.functions import Scope
from gpufarm.state import Deployment
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toscaparser.tosca_template import ToscaTemplate

ML_INFN = Path(__file__).resolve().parents[3] / "tosca" / "templates" / "ml_infn.yaml"
GPU_NODE = ML_INFN.with_name("gpu_node.yaml")


def test_ml_infn_is_valid(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site.root)
    answer = site.gpufarm("validate", ML_INFN)
    assert answer.status == 0
    first = "server, driver, repositories, lustre, partitions, environments, homes, settings"
    assert f"valid, 12 nodes: {first}, containers, accounts, hub, monitoring" in answer.output
    ToscaTemplate(str(ML_INFN))  # also for those who use tosca-parser itself


def test_what_nobody_chose_is_left_to_the_role_and_the_inventory() -> None:
    _library, topology = template.read(ML_INFN)
    given_values = {
        "iam_url": "https://iam.example.org/",
        "gpu_partition_flavor": "7x 1g.10gb",
        "jupyter_port": 8888,
    }
    scope = Scope(topology, inputs.complete(topology, given_values, {}))
    steps = plan.steps(scope, {"server": "gpu1"}, frozenset(given_values))
    assert [(step.name, step.variables) for step in steps] == [
        ("driver.configure", {}),
        ("repositories.configure", {}),
        ("lustre.configure", {}),
        ("partitions.configure", {"mig_partition_flavor": "7x 1g.10gb"}),
        ("environments.configure", {}),
        ("homes.configure", {}),
        ("settings.configure", {}),
        ("containers.configure", {"nvidia_container_enabled": False}),
        ("accounts.configure", {}),
        ("hub.configure", {"jupyterhub_iam_url": "https://iam.example.org/", "jupyterhub_port": 8888}),
        ("monitoring.configure", {"monitoring_enabled": False}),
    ]
    request = match.MachineRequest.of(topology.nodes["server"], scope)
    assert (request.gpus, request.cpus, request.memory) == (1, 2, 4 * 10**9)


GPUS = {"gpu_partition_gpus": ["capable"], "gpu_settings": [{"gpus": ["0"], "power_limit": "300"}]}


@pytest.mark.parametrize("path", [ML_INFN, GPU_NODE], ids=lambda path: path.stem)
def test_settings_and_the_gpus_to_partition_are_given_to_the_roles(path: Path) -> None:
    library, topology = template.read(path)
    given_values = {**GPUS, **({"iam_url": "https://iam.example.org/"} if path == ML_INFN else {})}
    scope = Scope(topology, inputs.complete(topology, given_values, Catalogue(library).names("data_types")))
    steps = {one.name: one for one in plan.steps(scope, {"server": "gpu1"}, frozenset(given_values))}
    assert steps["partitions.configure"].variables == {"mig_gpus": ["capable"]}
    assert steps["settings.configure"].variables == {"gpu_settings_entries": GPUS["gpu_settings"]}
    order = list(steps)
    assert order.index("partitions.configure") < order.index("settings.configure")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"power_limt": "300"}, "power_limt"),
        ({"compute_mode": "shared"}, "shared"),
        ({"gpus": "0"}, "gpus"),
    ],
)
def test_settings_of_gpus_are_checked_before_a_machine_is_touched(entry: dict[str, Any], words: str) -> None:
    library, topology = template.read(GPU_NODE)
    with pytest.raises(GpufarmError, match=words):
        inputs.complete(topology, {"gpu_settings": [entry]}, Catalogue(library).names("data_types"))


FLAVORS = (
    """
None|disabled|7x 1g.10gb MIG GPUs|2x 3g.40gb|1x 3g.40gb, 2x 2g.20gb|1x 1g.10gb+me|1 x 7g.80gb
1x 1g.12gb+me.all MIG GPU|none||7x|1g.10gb|0x 1g.10gb|7x 1g.10gb MIG|7x 1g.10gb; 1x 1g.10gb
""".strip()
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_template_reads_the_flavors_that_the_role_reads(flavor: str) -> None:
    _library, topology = template.read(ML_INFN)
    try:
        parse_flavor(flavor)
        readable = True
    except FlavorError:
        readable = False
    try:
        inputs.complete(topology, {"iam_url": "https://x", "gpu_partition_flavor": flavor}, {})
    except GpufarmError:
        assert not readable
    else:
        assert readable


@pytest.mark.parametrize("ends", [[0, 10], [10, 65536]])
def test_both_ends_of_a_range_of_ports_are_checked(site: Site, ends: list[int]) -> None:
    ports = {"notebooks": {"source_range": ends}}
    given = ("--input", "iam_url=https://x", "--input", f"ports={json.dumps(ports)}")
    answer = site.gpufarm("validate", ML_INFN, *given)
    assert answer.status == 2 and "is out of range: 1 to 65535" in answer.error


BROKEN = {
    "not YAML": ("{get_input: text}", "{get_input: text", "is no valid YAML"),
    "a key twice": ("  outputs:", "  inputs: {}\n\n  outputs:", 'the key "inputs" stands here a second time'),
    "an unknown type": ("test.Note\n", "test.Nota\n", "there is no type tosca.nodes.test.Nota; did you mean"),
    "an unknown property": (
        "label: second",
        "label: second\n        lable: x",
        "has no property lable; did you mean label?",
    ),
    "a missing property": ("        label: second\n", "", "node second needs the property label"),
    "a bad literal": ("label: second", "label: '22'", '"22" does not match the pattern [a-z]+'),
    "a bad kind": ("label: second", "label: 22", '"22" is no string; write it in quotes'),
    "a missing input": (
        "{get_input: text}",
        "{get_input: txt}",
        "get_input names txt, which is no input; did you mean",
    ),
    "a missing node": (
        "host: server\n        - dep",
        "host: sever\n        - dep",
        "not sever; did you mean server?",
    ),
    "a type for a node": (
        "host: server\n        - dep",
        "host: tosca.nodes.Compute\n        - dep",
        "that is a type",
    ),
    "a target of the wrong type": (
        "host: server\n        - dep",
        "host: first\n        - dep",
        "cannot be met by first, a tosca.nodes.test.Note: it has to be a tosca.nodes.Compute",
    ),
    "an unknown requirement": (
        "- dependency: first",
        "- dependancy: first",
        "no requirement dependancy; did you mean",
    ),
    "no host": (
        "        - host: server\n        - dep",
        "        - dep",
        "needs the requirement host; add it",
    ),
    "a filter instead of a node": (
        "- dependency: first",
        "- dependency: {node: first, node_filter: {}}",
        "node_filter of requirement dependency is not supported",
    ),
    "a missing attribute": ("[second, path]", "[second, paht]", "no attribute paht; did you mean path?"),
    "an attribute too early": (
        "{get_property: [first, text]}",
        "{get_attribute: [first, path]}",
        "is known only after operations have run; use a property",
    ),
    "properties in a circle": (
        "text: {get_input: text}",
        "text: {get_property: [second, text]}",
        "properties refer to each other in a circle: ",
    ),
    "a missing import": ("- types.yaml", "- typos.yaml", ":8:5: there is no file 'typos.yaml'"),
    "a URL": ("- types.yaml", "- https://example.org/types.yaml", "import a copy beside the template"),
    "a missing artifact": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      artifacts:\n        disk: disk.img",
        "artifact disk: there is no file 'disk.img'",
    ),
    "a missing image": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      artifacts:\n"
        "        disk: {file: disk.iso, type: tosca.artifacts.Deployment.Image.VM.ISO}",
        "artifact disk: there is no file 'disk.iso'",
    ),
    "an artifact of no type": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      artifacts:\n"
        "        disk: {file: types.yaml, type: tosca.artifacts.Fiel}",
        "artifact disk: there is no type tosca.artifacts.Fiel; did you mean tosca.artifacts.File?",
    ),
    "an artifact of another type": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      artifacts:\n"
        "        disk: {file: types.yaml, type: tosca.artifacts.Implementation.Bash}",
        "artifact disk: a tosca.artifacts.Implementation.Bash ends in .sh, not as 'types.yaml'",
    ),
    "a missing implementation": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      interfaces: {Standard: {operations: {start: start.yml}}}",
        "there is no file 'start.yml'",
    ),
    "a missing implementation with a long name": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      interfaces: {Standard: {operations: {start: "
        f"{'a' * 300}.yml}}}}}}",
        f"there is no file '{'a' * 200}'",
    ),
    "an implementation of no type": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      interfaces: {Standard: {operations: {start: {implementation: "
        "{primary: {file: playbooks/configure.yml, type: tosca.artifacts.Implementation.Ansible}}}}}}",
        "operation start: there is no type tosca.artifacts.Implementation.Ansible; did you mean",
    ),
    "an implementation of another type": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      interfaces: {Standard: {operations: {start: {implementation: "
        "{primary: {file: playbooks/configure.yml, type: tosca.artifacts.Implementation.Bash}}}}}}",
        "operation start: a tosca.artifacts.Implementation.Bash ends in .sh, not as 'playbooks/",
    ),
    "an implementation that is no playbook": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      interfaces: {Standard: {operations: {start: start.sh}}}",
        "operation start: 'start.sh' is no playbook of Ansible (.yml, .yaml), and nothing else is run",
    ),
    "a missing implementation that has a type": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      interfaces: {Standard: {operations: {start: {implementation: "
        "{primary: {file: start.yml, type: tosca.artifacts.Implementation}}}}}}",
        "there is no file 'start.yml'",
    ),
    "an unknown operation": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      interfaces: {Standard: {operations: {restart: start.yml}}}",
        "operation restart is unknown",
    ),
    "groups": ("  outputs:", "  groups: {a: {}}\n\n  outputs:", "groups of a template are not supported"),
    "what would be ignored": (
        "num_cpus: {",
        "cpu_frequency: 1 GHz\n            num_cpus: {",
        "machines are not chosen by it",
    ),
    "a filter": (
        "      type: tosca.nodes.Compute",
        "      type: tosca.nodes.Compute\n      node_filter: {}",
        "is not supported",
    ),
    "a default that breaks a constraint": (
        "default: 1\n",
        "default: 0\n",
        'the default of input num_cpus: "0" is out of range',
    ),
    "a constraint that is none": ("- in_range: [1, 100000]", "- in_range: seven", "constraint in_range:"),
    "an input of no type": (
        "type: boolean",
        "type: bool",
        "input fails has no type that TOSCA knows; did you mean boolean?",
    ),
    "a version": ("yaml_1_3", "yaml_1_1", 'version "tosca_simple_yaml_1_1" is invalid'),
}


def broken_site(site: Site, text: str) -> Path:
    broken = site.root / "broken.yaml"
    (site.root / "types.yaml").write_text((DATA / "types.yaml").read_text())
    if not (site.root / "playbooks").exists():
        (site.root / "playbooks").symlink_to(DATA / "playbooks")
    broken.write_text(text)
    return broken


@pytest.mark.parametrize("name", BROKEN)
def test_broken_templates(site: Site, name: str) -> None:
    old, new, sentence = BROKEN[name]
    text = SERVICE.read_text()
    assert old in text
    answer = site.gpufarm("validate", broken_site(site, text.replace(old, new, 1)))
    assert answer.status == 2, answer
    assert sentence in answer.error and answer.error.count("\n") == 1, answer.error


def test_everything_is_told_at_once_with_line_and_column(site: Site) -> None:
    text = SERVICE.read_text()
    for old, new in (
        ("label: second", "lable: second"),
        ("{get_input: fails}", "{get_input: fales}"),
        ("- dependency: first", "- dependency: fist"),
        ("[second, path]", "[second, paht]"),
    ):
        text = text.replace(old, new, 1)
    broken = broken_site(site, text)
    lines = text.splitlines()
    answer = site.gpufarm("validate", broken, "--json")
    found = json.loads(answer.output)
    assert answer.status == 2 and not found["valid"]
    told = [(entry["line"], entry["column"], entry["text"]) for entry in found["problems"]]
    assert [text for _line, _column, text in told] == [
        "node second needs the property label",
        "node second has no property lable; did you mean label?",
        "get_input names fales, which is no input; did you mean fails?",
        "requirement dependency of node second has to name a node of the template, not fist; "
        "did you mean first?",
        "get_attribute [second, paht]: node second has no attribute paht; did you mean path?",
    ]
    line, column, _text = told[1]
    assert lines[line - 1][column - 1 :] == "lable: second"
    assert all(entry["file"] == str(broken) for entry in found["problems"])
    assert answer.error.count("\n") == 6 and "5 problems; nothing was touched" in answer.error
    found = json.loads(site.gpufarm("validate", SERVICE, "--json").output)
    assert found["valid"] and found["problems"] == []


def test_wrong_inputs_are_told_together_with_a_wrong_template(site: Site) -> None:
    broken = site.root / "broken.yaml"
    broken.write_text(
        SERVICE.read_text().replace("label: second", "lable: second").replace("- types", f"- {DATA}/types")
    )
    answer = site.gpufarm("validate", broken, "--json", "--input", "txet=x", "--input", "num_cpus=0")
    assert answer.status == 2
    told = [(entry["file"], entry["text"]) for entry in json.loads(answer.output)["problems"]]
    assert ("--input", "the template broken.yaml has no input txet; did you mean text?") in told
    assert (str(broken), "node second has no property lable; did you mean label?") in told
    answer = site.gpufarm("plan", broken, "--pool", site.pool, "--input", "num_cpus=0")
    assert 'input num_cpus: "0" is out of range' in answer.error and "lable" in answer.error
    answer = site.gpufarm("validate", SERVICE, "--json", "--input", "num_cpus=0")
    (problem,) = json.loads(answer.output)["problems"]
    assert (problem["file"], problem["text"]) == ("input num_cpus", '"0" is out of range: 1 to 100000')


TYPES = {
    "a parent that is not there": (
        "tosca.nodes.SoftwareComponent",
        "tosca.nodes.Softwear",
        "which is no type",
    ),
    "a property of no type": (
        "        type: boolean",
        "        type: bool",
        "property fails has no type that TOSCA knows",
    ),
    "a default out of range": (
        "default: 0",
        "default: 700",
        'the default of property seconds: "700" is out of range',
    ),
    "an output that is no attribute": (
        "[SELF, path]",
        "[SELF, paht]",
        "sets paht, which is no attribute; did you mean path?",
    ),
    "an input that is no property": (
        "[SELF, text]",
        "[SELF, txt]",
        "has no property txt; did you mean text?",
    ),
    "a playbook that is not there": (
        "playbooks/delete.yml",
        "playbooks/del.yml",
        "there is no file 'playbooks/del.yml'",
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_broken_types(site: Site, name: str) -> None:
    old, new, sentence = TYPES[name]
    path = broken_site(site, SERVICE.read_text())
    types = site.root / "types.yaml"
    assert old in types.read_text()
    types.write_text(types.read_text().replace(old, new, 1))
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and sentence in answer.error and f"{types}:" in answer.error, answer.error


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("[1, 2]", "is no mapping"),
        ("a: &a [*a]", "the alias contains itself"),
        ("a: " + "[" * 500 + "]" * 500, "too deeply nested"),
        ("a: " + "[" * 50_000, "too deeply nested"),
        ("- " * 50_000, "too deeply nested"),
        (
            "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            + "".join(
                f"{key}: &{key} [{', '.join(['*' + previous] * 10)}]\n"
                for previous, key in zip("abcdefg", "bcdefgh", strict=True)
            ),
            "too large",
        ),
        ("\x00", "is no valid YAML"),
        ("tosca_definitions_version: tosca_simple_yaml_1_3", "has no topology_template"),
    ],
)
def test_hostile_files(site: Site, text: str, sentence: str) -> None:
    path = site.root / "hostile.yaml"
    path.write_text(text)
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and sentence in answer.error and answer.error.count("\n") == 1
    path.write_bytes(b"\xff\xfe\xfa")
    assert "is no text in UTF-8" in site.gpufarm("validate", path).error
    assert site.gpufarm("validate", site.root / "nothing.yaml").status == 2


@pytest.mark.parametrize("name", ["first[2]", "a\\e]0;x", "a\\nb", "", "x" * 200])
@pytest.mark.parametrize("place", ["    second:\n", "    path:\n", "    text:\n"])
def test_names_that_would_confuse(site: Site, name: str, place: str) -> None:
    path = site.root / "odd.yaml"
    text = SERVICE.read_text().replace("- types", f"- {DATA}/types")
    assert place in text
    path.write_text(text.replace(place, f'    "{name}":\n', 1))
    answer = site.gpufarm("validate", path)
    assert (
        answer.status == 2
        and "is no name; use letters, digits" in answer.error
        and "\x1b" not in answer.error
    )


def test_a_pattern_that_would_take_years(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "PATIENCE", 0.2)
    path = site.root / "slow.yaml"
    text = SERVICE.read_text().replace("- types", f"- {DATA}/types")
    path.write_text(
        text.replace("default: hello", f"default: {'a' * 50}\n      constraints: [{{pattern: (a+)+b}}]")
    )
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and "cannot be checked: the pattern (a+)+b takes too long" in answer.error


def test_more_instances_than_can_be_managed(site: Site) -> None:
    path = site.root / "huge.yaml"
    text = (DATA / "farm.yaml").read_text().replace("- types", f"- {DATA}/types")
    path.write_text(
        text.replace("instances: 2, max_instances: 4", "instances: 90000000, max_instances: 90000000")
    )
    answer = site.gpufarm("plan", path, "--pool", site.pool, "--input", "folder=/x")
    assert answer.status == 2 and "90000000 instances are more than the 10000" in answer.error


def test_nodes_in_a_circle(site: Site) -> None:
    text = SERVICE.read_text().replace(
        "      requirements:\n        - host: server\n\n",
        "      requirements:\n        - host: server\n        - dependency: second\n\n",
    )
    answer = site.gpufarm("validate", broken_site(site, text))
    assert answer.status == 2 and "need each other in a circle: " in answer.error


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in entries:
        yield from places(item, (*path, key))


JUNK = st.sampled_from(
    [
        None,
        1,
        -1,
        1.5,
        True,
        "",
        "x",
        "SELF",
        [],
        [1],
        {},
        {"a": 1},
        {"get_input": "nope"},
        {"get_input": ["a", 1]},
        {"get_property": ["SELF"]},
        {"get_attribute": ["second", "path"]},
        {"get_property": ["second", "text"]},
        {"concat": 3},
        {"token": ["a", "b", 0]},
        "a" * 3000,
        ["second"],
        {"node": "second"},
        float("inf"),
        "\0",
        "2024-01-01",
    ]
)
DOCUMENTS = {name: yaml.safe_load((DATA / name).read_text()) for name in ("service.yaml", "types.yaml")}


@st.composite
def mutations(draw: st.DrawFn) -> dict[str, Any]:
    """The service and its types with up to three things replaced, removed, renamed or moved."""
    documents = copy.deepcopy(DOCUMENTS)
    for _count in range(draw(st.integers(1, 3))):
        document = documents[draw(st.sampled_from(sorted(documents)))]
        path = draw(st.sampled_from(list(places(document)) or [()]))
        if not path:
            continue
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        kind = draw(st.sampled_from(["replace", "remove", "rename"]))
        if kind == "replace":
            parent[path[-1]] = copy.deepcopy(draw(JUNK))
        elif kind == "remove":
            del parent[path[-1]]
        elif isinstance(parent, dict):
            parent[draw(st.sampled_from(["x", "type", 1, None, "operations", "node", "description"]))] = (
                parent.pop(path[-1])
            )
    return documents


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents=mutations())
def test_no_template_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, documents: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("mutant")
    (folder / "playbooks").symlink_to(DATA / "playbooks")
    for name, content in documents.items():
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
    try:
        library, topology = template.read(folder / "service.yaml")
        values = inputs.complete(topology, {"folder": "/tmp"} if "folder" in topology.inputs else {}, {})
        check_template(library, values)
        hosts = {name: "gpu1" for name, node in topology.nodes.items() if node.is_machine}
        scope = Scope(topology, values, {name: {"public_address": "gpu1"} for name in hosts})
        for name in hosts:
            str(match.MachineRequest.of(topology.nodes[name], scope))
        plan.steps(scope, hosts, frozenset(values))
        plan.steps(scope, hosts, frozenset(values), undeploy=True)
        deployment.evaluate_outputs(scope, Deployment("a", "b", "c"))
    except GpufarmError as error:
        assert error.message and len(error.message) < 20_000
