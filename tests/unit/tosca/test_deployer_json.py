"""Every command answers as JSON, in the shape that docs/api.md has for it, and says the rest elsewhere."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from deployer_site import DATA, HERE, SERVICE, Answer, Site
from deployer_stub import StubSite, install
from gpufarm import answers
from gpufarm.cli import main
from gpufarm.history import Entry

FARM = DATA / "farm.yaml"


def fits(value: Any, kind: Any, where: str) -> None:
    """Compare a value of JSON with the type of an answer, to its last entry."""
    origin = get_origin(kind)
    if kind is Any:
        return
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        assert isinstance(value, dict) and value.keys() == hints.keys(), (where, value)
        for name, hint in hints.items():
            fits(value[name], hint, f"{where}.{name}")
    elif origin is list:
        assert isinstance(value, list), (where, value)
        for item in value:
            fits(item, get_args(kind)[0], f"{where}[]")
    elif origin is dict:
        assert isinstance(value, dict), (where, value)
        for item in value.values():
            fits(item, get_args(kind)[1], f"{where}{{}}")
    elif origin is UnionType:
        assert value is None or any(type(value) is part for part in get_args(kind)), (where, value)
        assert value is not None or NoneType in get_args(kind), (where, value)
    else:
        assert type(value) in ((int, float) if kind is float else (kind,)), (where, value, kind)


def shaped(answer: Answer, kind: Any, *, status: int = 0) -> Any:
    """Check an answer in JSON. All of standard output is one value."""
    assert answer.status == status, answer.error
    value = json.loads(answer.output)
    fits(value, kind, "answer")
    return value


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    return install(monkeypatch, site)


def deploy(farm: StubSite, *arguments: str) -> Answer:
    return farm.deploy(FARM, "--json", *arguments)


def test_commands_without_it() -> None:
    """`completion` prints a script for a shell, `log` a text, and `serve` does not end."""
    without = {
        name
        for name, command in main.commands.items()
        if not any("--json" in option.opts for option in command.params)
    }
    assert without == {"completion", "log", "serve"}


def test_a_template(farm: StubSite, tmp_path: Path) -> None:
    found = shaped(farm.gpufarm("validate", SERVICE, "--json"), answers.Validation)
    assert found["valid"] and found["nodes"] == ["server", "first", "second"]
    token = next(entry for entry in found["inputs"] if entry["name"] == "access_token")
    assert token["secret"] and not token["required"]
    broken = tmp_path / "broken.yaml"
    broken.write_text(SERVICE.read_text().replace("type: tosca.nodes.test.Note", "type: x", 1))
    wrong = shaped(farm.gpufarm("validate", broken, "--json"), answers.Validation, status=2)
    assert not wrong["valid"] and wrong["problems"][0]["line"] > 0
    number = ("validate", SERVICE, "--json", "--input", "num_cpus=0")
    assert shaped(farm.gpufarm(*number), answers.Validation, status=2)["problems"][0]["file"]


def test_a_package(site: Site, tmp_path: Path) -> None:
    template = Path(__file__).parents[3] / "tosca" / "templates" / "gpu_node.yaml"
    archive = tmp_path / "x.csar"
    found = shaped(site.gpufarm("package", template, "--output", archive, "--json"), answers.Package)
    assert found["file"] == str(archive) and found["bytes"] == archive.stat().st_size


def test_a_life(farm: StubSite) -> None:
    pool = ("--pool", str(farm.site.pool), "--input", "folder=/x")
    plan = shaped(farm.gpufarm("plan", FARM, *pool, "--json"), answers.Plan)
    assert plan["machines"]["head"]["gpus"] == ["A100"] and plan["steps"][0]["reason"] == "new"

    made = deploy(farm)
    run = shaped(made, answers.Run)
    assert run["deployment"]["status"] == "deployed" and run["log"] == run["deployment"]["log"]
    assert {entry["step"] for entry in run["applied"]} == {*run["deployment"]["steps"]}
    assert "clock.configure on m1: ok" in made.error, "progress goes to standard error"

    check = shaped(deploy(farm, "--check"), answers.Difference)
    assert check == shaped(farm.gpufarm("diff", "farm", "--json"), answers.Difference, status=5) | {
        "log": check["log"]
    }
    again = shaped(farm.gpufarm("update", "farm", "--json"), answers.Run)
    assert again["applied"] == [] and again["log"] == ""
    assert shaped(farm.gpufarm("scale", "farm", "worker=3", "--json"), answers.Run)["applied"]

    listed = shaped(farm.gpufarm("list", "--json"), list[answers.Deployment])
    shown = shaped(farm.gpufarm("show", "farm", "--json"), answers.Deployment)
    assert listed == [shown] and shown["instances"] == {"worker": 3}
    assert json.loads(farm.gpufarm("outputs", "farm", "--json").output) == shown["outputs"]
    assert shaped(farm.gpufarm("history", "farm", "--json"), list[Entry])[0]["result"] == "done"

    farm.mark("broken", "delete:tool")
    failed = farm.gpufarm("undeploy", "farm", "--yes", "--json")
    assert failed.status == 1 and failed.output == ""
    farm.mark("broken")
    gone = shaped(farm.gpufarm("resume", "farm", "--json"), answers.Removal)
    assert gone["name"] == "farm" and gone["remove"]


def test_an_undeployment(farm: StubSite) -> None:
    farm.mark("there", "base")
    shaped(deploy(farm), answers.Run)
    gone = shaped(farm.gpufarm("undeploy", "farm", "--yes", "--json"), answers.Removal)
    assert {entry["step"] for entry in gone["keep"]} == {"base.delete", "base[2].delete"}
    assert {entry["step"] for entry in gone["remove"]} > {"list.delete", "clock.delete"}


def test_a_failed_run_that_is_resumed(farm: StubSite) -> None:
    farm.mark("broken-late", "list")
    failed = deploy(farm)
    assert failed.status == 1 and failed.output == ""
    shown = shaped(farm.gpufarm("show", "farm", "--json"), answers.Deployment)
    assert shown["status"] == "failed" and shown["begun"] == ["list.configure"]
    farm.mark("broken-late")
    assert shaped(farm.gpufarm("resume", "farm", "--json"), answers.Run)["applied"]


def test_an_unusable_state_has_the_same_shape(farm: StubSite) -> None:
    shaped(deploy(farm), answers.Run)
    (farm.site.state / "farm.json").write_text("{")
    (found,) = shaped(farm.gpufarm("list", "--json"), list[answers.Deployment])
    assert found["status"] == "unusable" and found["machines"] and found["failure"]
    warned = shaped(deploy(farm, "--name", "b"), answers.Run)
    assert warned["deployment"]["name"] == "b"
    plan = farm.gpufarm("plan", FARM, "--name", "b", "--json")
    assert shaped(plan, answers.Plan)["warnings"][0] in plan.error


def test_with_ansible_itself(site: Site) -> None:
    site.machines(here=HERE)
    run = shaped(site.deploy("--json"), answers.Run)
    assert run["deployment"]["outputs"]["address"] == "here"
