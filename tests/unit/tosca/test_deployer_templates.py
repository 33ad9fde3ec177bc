"""Templates, good and bad: every refusal is one sentence that says where and why."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig_flavor import FlavorError, parse_flavor
from deployer_site import DATA, SERVICE, Site
from gpufarm import deployment, inputs, match, plan, template
from gpufarm.errors import GpufarmError
from gpufarm.functions import Scope
from gpufarm.state import Deployment
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toscaparser.tosca_template import ToscaTemplate

ML_INFN = Path(__file__).resolve().parents[3] / "tosca" / "templates" / "ml_infn.yaml"


def test_ml_infn_is_valid(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site.root)
    answer = site.gpufarm("validate", ML_INFN)
    assert answer.status == 0
    assert "valid, 4 nodes: server, driver, partitions, hub" in answer.output
    ToscaTemplate(str(ML_INFN))  # also for those who use tosca-parser itself


def test_what_nobody_chose_is_left_to_the_role_and_the_inventory() -> None:
    _library, topology = template.read(ML_INFN)
    given_values = {
        "iam_url": "https://iam.example.org/",
        "gpu_partition_flavor": "7x 1g.10gb",
        "jupyter_port": 8888,
    }
    scope = Scope(topology, inputs.complete(topology, given_values))
    steps = plan.steps(scope, {"server": "gpu1"}, frozenset(given_values))
    assert [(step.name, step.variables) for step in steps] == [
        ("driver.configure", {}),
        ("partitions.configure", {"mig_partition_flavor": "7x 1g.10gb"}),
        ("hub.configure", {"jupyterhub_iam_url": "https://iam.example.org/", "jupyterhub_port": 8888}),
    ]
    wish = match.Wish.of(topology.nodes["server"], scope)
    assert (wish.gpus, wish.cpus, wish.memory) == (1, 2, 4 * 10**9)


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
        inputs.complete(topology, {"iam_url": "https://x", "gpu_partition_flavor": flavor})
    except GpufarmError:
        assert not readable
    else:
        assert readable


BROKEN = {
    "not YAML": ("  text: {get", "text: {get", ":32: is no valid YAML"),
    "a key twice": ("  outputs:", "  inputs: {}\n\n  outputs:", 'the key "inputs" stands here a second time'),
    "an unknown type": ("test.Note\n", "test.Nota\n", 'Type "tosca.nodes.test.Nota" is not a valid type'),
    "an unknown property": ("label: second", "lable: second", 'contains unknown field "lable"'),
    "a bad literal": ("label: second", "label: '22'", '"22" of property "label" does not match pattern'),
    "a missing input": ("{get_input: text}", "{get_input: txt}", 'Unknown input "txt"'),
    "a missing node": ("host: server\n        - dep", "host: sever\n        - dep", "has to name a node"),
    "a missing attribute": ("[second, path]", "[second, paht]", 'Attribute "paht" was not found'),
    "a missing import": ("- types.yaml", "- typos.yaml", ":8: there is no file 'typos.yaml'"),
    "a URL": ("- types.yaml", "- https://example.org/types.yaml", "import a copy beside the template"),
    "no nodes": ("  node_templates:", "  groups:", "groups of a template are not supported"),
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
    "a version": ("yaml_1_3", "yaml_1_1", 'version "tosca_simple_yaml_1_1" is invalid'),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_templates(site: Site, name: str) -> None:
    old, new, sentence = BROKEN[name]
    text = SERVICE.read_text()
    assert old.removeprefix("  text") in text or name == "not YAML"
    broken = site.root / "broken.yaml"
    (site.root / "types.yaml").write_text((DATA / "types.yaml").read_text())
    (site.root / "playbooks").symlink_to(DATA / "playbooks")
    if name == "not YAML":
        broken.write_text(text.replace("{get_input: text}", "{get_input: text"))
        sentence = "is no valid YAML"
    else:
        broken.write_text(text.replace(old, new, 1))
    answer = site.gpufarm("validate", broken)
    assert answer.status == 2, answer
    assert sentence in answer.error and answer.error.count("\n") == 1


def test_where(site: Site) -> None:
    broken = site.root / "broken.yaml"
    (site.root / "types.yaml").write_text((DATA / "types.yaml").read_text())
    (site.root / "playbooks").symlink_to(DATA / "playbooks")
    broken.write_text(SERVICE.read_text().replace("label: second", "lable: second"))
    line = broken.read_text().splitlines().index("        lable: second") + 1
    assert f"broken.yaml:{line}: " in site.gpufarm("validate", broken).error


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("[1, 2]", "is no mapping"),
        ("a: &a [*a]", "the alias contains itself"),
        ("a: " + "[" * 500 + "]" * 500, "too deeply nested"),
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


def test_nodes_in_a_circle(site: Site) -> None:
    path = site.root / "circle.yaml"
    (site.root / "types.yaml").write_text((DATA / "types.yaml").read_text())
    (site.root / "playbooks").symlink_to(DATA / "playbooks")
    text = SERVICE.read_text().replace(
        "      requirements:\n        - host: server\n\n",
        "      requirements:\n        - host: server\n        - dependency: second\n\n",
    )
    path.write_text(text)
    answer = site.gpufarm("validate", path)
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
        values = inputs.complete(topology, {"folder": "/tmp"} if "folder" in topology.inputs else {})
        template.judge(library, values)
        hosts = {name: "gpu1" for name, node in topology.nodes.items() if node.is_machine}
        scope = Scope(topology, values, {name: {"public_address": "gpu1"} for name in hosts})
        for name in hosts:
            str(match.Wish.of(topology.nodes[name], scope))
        plan.steps(scope, hosts, frozenset(values))
        plan.steps(scope, hosts, frozenset(values), undeploy=True)
        deployment.evaluate_outputs(scope, Deployment("a", "b", "c"))
    except GpufarmError as error:
        assert error.message and "\n" not in error.message
