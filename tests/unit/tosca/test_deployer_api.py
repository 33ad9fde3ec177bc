"""The deployer from Python: what the command does, beside a clone, in a thread, with a listener."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from deployer_site import DATA, SERVICE, Site
from deployer_stub import StubSite, install
from gpufarm.api import (
    BadInput,
    BadTemplate,
    Deployer,
    GpufarmError,
    Locked,
    NoMachine,
    Removal,
    Run,
    Silent,
)

FARM = DATA / "farm.yaml"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    return install(monkeypatch, site)


@pytest.fixture
def deployer(farm: StubSite) -> Deployer:
    return Deployer(farm.site.state)


class Told(Silent):
    """A listener that remembers the steps that are done."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def finished(self, step: Any, done: Any) -> None:
        self.steps.append(step.name)


def test_a_life(farm: StubSite, deployer: Deployer) -> None:
    pool = farm.site.pool
    assert deployer.validate(FARM, {"folder": "/x"}).nodes[0] == "head"
    plan = deployer.plan(FARM, pool, inputs={"folder": "/x"})
    assert plan.machines["head"].host == "m1" and deployer.list() == []
    told = Told()
    run = deployer.deploy(FARM, pool, inputs={"folder": "/x"}, group="physics", listener=told)
    assert run.deployment.status == "deployed" and run.deployment.group == "physics"
    assert sorted(told.steps) == sorted(entry.step for entry in run.applied)
    assert deployer.list() == [deployer.show("farm")] == [run.deployment]
    assert deployer.outputs("farm") == run.deployment.outputs
    changed = deployer.update("farm", inputs={"text": "new"})
    assert changed.deployment.inputs["text"] == "new" and changed.deployment.id == run.deployment.id
    assert deployer.scale("farm", {"worker": 1}).deployment.instances == {"worker": 1}
    assert [entry.what for entry in deployer.history("farm")][-1] == "scale worker=1"
    assert farm.gpufarm("show", "farm").output.startswith("farm: deployed"), "the command sees the same"
    gone = deployer.undeploy("farm")
    assert isinstance(gone, Removal) and gone.remove and deployer.names() == []
    assert deployer.history("farm")[-1].what == "undeploy"


def test_failures_are_exceptions(farm: StubSite, deployer: Deployer) -> None:
    with pytest.raises(BadInput, match="there is no deployment x; there is none at all"):
        deployer.show("x")
    with pytest.raises(BadInput, match="has no input nonsense"):
        deployer.plan(FARM, farm.site.pool, inputs={"nonsense": 1})
    with pytest.raises(BadTemplate) as wrong:
        deployer.validate(DATA / "types.yaml")
    assert wrong.value.problems[0].text
    with pytest.raises(NoMachine) as full:
        deployer.plan(SERVICE, farm.site.pool, inputs={"folder": "/x", "num_cpus": 1000})
    assert full.value.exit_code == 3
    farm.mark("broken", "list")
    with pytest.raises(GpufarmError, match="list is broken"):
        deployer.deploy(FARM, farm.site.pool, inputs={"folder": "/x"})
    farm.mark("broken")
    assert isinstance(deployer.resume("farm"), Run)


def test_nothing_is_removed_but_what_was_agreed_to(farm: StubSite, deployer: Deployer) -> None:
    deployer.deploy(FARM, farm.site.pool, inputs={"folder": "/x"})
    seen = deployer.removal("farm")
    deployer.scale("farm", {"worker": 3})
    with pytest.raises(Locked, match="was changed meanwhile"):
        deployer.undeploy("farm", agreed=seen)
    assert deployer.undeploy("farm", agreed=deployer.removal("farm")).remove


def test_it_warns(farm: StubSite) -> None:
    sentences: list[str] = []
    deployer = Deployer(farm.site.state, warn=sentences.append)
    deployer.deploy(SERVICE, farm.site.pool, inputs={"folder": "/x"})
    (farm.site.state / "notes.json").write_text("")
    plan = deployer.plan(FARM, farm.site.pool, inputs={"folder": "/x"})
    assert plan.warnings == sentences and "keeps server: m1" in sentences[0]
    assert deployer.list()[0].status == "unusable"


def test_in_a_thread_with_ansible_itself(site: Site) -> None:
    """As a web service calls it: signals reach only the main thread."""
    found: list[Any] = []

    def deploy() -> None:
        try:
            deployer = Deployer(site.state)
            found.append(deployer.deploy(SERVICE, site.pool, inputs={"folder": str(site.notes)}))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=deploy)
    thread.start()
    thread.join()
    assert isinstance(found[0], Run), found
    assert site.journal() == ["configure first", "configure second"]


def test_beside_a_clone(tmp_path: Path) -> None:
    """Another program puts the folder of the clone into its path, and imports nothing that is slow."""
    program = (
        "import sys; from gpufarm.api import Deployer; print(Deployer().list());"
        "assert not {'toscaparser', 'requests', 'rich', 'ansible'} & sys.modules.keys()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tosca"), "GPUFARM_STATE_DIR": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert not (tmp_path / "state").exists(), "looking writes nothing"
