# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new release of the collection with other defaults changes no deployment."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deployer_site import DATA, SERVICE, Site
from deployer_stub import StubSite, install
from gpufarm import collection, former, prepare, template
from gpufarm.catalogue import Catalogue
from gpufarm.library import Library
from gpufarm.prepare import Request
from gpufarm.state import Deployment
from gpufarm.topology import Topology

TEMPLATE = Path(__file__).resolve().parents[3] / "tosca" / "templates" / "slurm_cluster.yaml"
GIVEN = {"node_count": 2}
FARM = "ansible_collections/gpufarm/cluster/tosca/templates/farm.yaml"


@pytest.fixture(scope="module", name="read")
def _read() -> tuple[Library, Topology]:
    return template.read(TEMPLATE)


def before(text: str, **changes: Any) -> Deployment:
    return Deployment("farm", str(TEMPLATE), "pool", template_text=text, inputs=dict(GIVEN), **changes)


def of_release(topology: Topology, **defaults: str) -> str:
    """The template as a former release had it, with other defaults."""
    text = topology.text
    for name, default in defaults.items():
        now = topology.inputs[name].default
        start = text.index(f"\n    {name}:\n")
        place = text.index(f"      default: {now}\n", start)
        text = text[:place] + f"      default: {default}\n" + text[place + len(f"      default: {now}\n") :]
    assert text != topology.text
    return text


def values(read: tuple[Library, Topology], previous: Deployment, **given: Any) -> dict[str, Any]:
    library, topology = read
    return prepare.values(Request(topology, library, None, "farm", given), previous)[1]


def kept(read: tuple[Library, Topology], previous: Deployment) -> dict[str, Any]:
    library, topology = read
    return former.defaults(topology, previous, Catalogue(library).names("data_types"))


def test_values_that_nobody_gave_stay_those_of_the_first_release(read: tuple[Library, Topology]) -> None:
    previous = before(of_release(read[1], home_kind="local", home_path="/home"))
    found = values(read, previous, node_count=3)
    assert (found["node_count"], found["home_kind"], found["home_path"]) == (3, "local", "/home")
    # Defaults that are the same in both releases are not remembered.
    assert found["controller_num_cpus"] == read[1].inputs["controller_num_cpus"].default


def test_they_stay_when_the_text_of_the_next_release_is_remembered(read: tuple[Library, Topology]) -> None:
    previous = before(read[1].text, defaults={"home_kind": "local"})
    assert values(read, previous)["home_kind"] == "local"
    # Two releases later, that of the first counts.
    previous = before(of_release(read[1], home_kind="nfs"), defaults={"home_kind": "local"})
    assert values(read, previous)["home_kind"] == "local"


def test_a_value_that_is_given_counts(read: tuple[Library, Topology]) -> None:
    previous = before(of_release(read[1], home_kind="local"))
    assert values(read, previous, home_kind="cluster")["home_kind"] == "cluster"


def test_a_default_that_the_template_no_longer_takes_is_forgotten(read: tuple[Library, Topology]) -> None:
    assert kept(read, before(of_release(read[1], home_kind="floppy"))) == {}
    assert kept(read, before(read[1].text, defaults={"no_such_input": 1})) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", "a: b", "topology_template: {inputs: [a]}", "x: {{ y }}"])
def test_a_text_that_says_nothing_keeps_nothing(read: tuple[Library, Topology], text: str) -> None:
    assert kept(read, before(text)) == {}


def test_operators_change_defaults_of_templates_of_their_own(tmp_path: Path) -> None:
    shutil.copytree(SERVICE.parent, tmp_path / "own")
    own = tmp_path / "own" / SERVICE.name
    library, topology = template.read(own)
    name = next(name for name, entry in topology.inputs.items() if isinstance(entry.default, str))
    previous = Deployment("notes", str(own), "pool", template_text="", defaults={name: "former"})
    assert former.defaults(topology, previous, Catalogue(library).names("data_types")) == {}


@pytest.fixture
def upgraded(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    """A farm of a release in which `text` is hello, and the next release, in which it is another word.

    The pool says `text` for m2 and not for m3.
    """
    farm = install(monkeypatch, site)
    farm.stub.hosts["m2"]["text"] = "of the pool"
    root = site.root / "ansible_collections/gpufarm/cluster"
    shutil.copytree(DATA, root / "tosca/templates")
    monkeypatch.setattr(collection, "root", lambda: root)
    assert farm.deploy(site.root / FARM).status == 0
    assert passed(farm, "configure") == {"m2": "", "m3": ""}, "the pool and the role say it"
    for name in ("types.yaml", "farm.yaml"):
        path = root / "tosca/templates" / name
        changed = path.read_text().replace("default: hello", "default: howdy")
        assert changed != path.read_text()
        path.write_text(changed)
    return farm


def passed(farm: StubSite, operation: str) -> dict[str, str]:
    """The text that the last run passed to the tool on each machine."""
    lines = [line.split(" ", 3) for line in farm.stub.journal()]
    return {line[2]: "".join(line[3:]) for line in lines if line[:2] == [operation, "tool"]}


def test_the_pool_goes_before_a_former_default_of_the_type(upgraded: StubSite) -> None:
    for _run in range(2):
        assert upgraded.gpufarm("deploy", upgraded.site.root / FARM).status == 0
        assert passed(upgraded, "configure") == {"m2": "", "m3": "hello"}
    assert upgraded.gpufarm("undeploy", "farm", "--yes").status == 0
    assert passed(upgraded, "delete") == {"m2": "", "m3": "hello"}


def test_the_pool_goes_before_it_also_where_it_is_removed_at_once(upgraded: StubSite) -> None:
    assert upgraded.gpufarm("undeploy", "farm", "--yes").status == 0
    assert passed(upgraded, "delete") == {"m2": "", "m3": "hello"}


def test_new_instances_get_what_the_others_have(upgraded: StubSite) -> None:
    upgraded.stub.hosts["m4"]["text"] = "of the pool"
    assert upgraded.gpufarm("scale", "farm", "worker=3").status == 0
    assert passed(upgraded, "configure")["m4"] == ""


def test_a_value_that_is_given_goes_before_the_pool(upgraded: StubSite) -> None:
    assert upgraded.gpufarm("update", "farm", "--input", "text=hello").status == 0
    assert passed(upgraded, "configure") == {"m2": "hello", "m3": "hello"}
