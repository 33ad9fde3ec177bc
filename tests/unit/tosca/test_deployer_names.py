"""Names of deployments lead to no file outside of the state folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deployer_site import Site
from gpufarm import history
from gpufarm.errors import BadInput
from gpufarm.state import Deployment, Store

OUTSIDE = (
    "../x",
    "..",
    ".",
    "",
    "a/b",
    "/etc/x",
    "-x",
    ".x",
    "x\n",
    "x\0",
    "a" * 64,
    "ä",
    "a b",
    "$(id)",
    "{{ 1 }}",
)
COMMANDS = ("status", "history", "outputs", "resume", "update", "diff", "undeploy")
USES: dict[str, Callable[[Store, str], Any]] = {
    "load": lambda store, name: store.load(name),
    "save": lambda store, name: store.save(Deployment(name, "t", "p")),
    "remove": lambda store, name: store.remove(name),
    "lock": lambda store, name: store.is_locked(name),
    "log": lambda store, name: store.log(name),
    "run": lambda store, name: store.run_path(name),
    "folder of a run": lambda store, name: store.run_directory(name).__enter__(),
    "history": history.read,
    "entry of the history": lambda store, name: history.recorded(store, name, "x").__enter__(),
}


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("use", USES)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, use: str, name: str) -> None:
    store = Store(tmp_path / "state")
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "x.jsonl").write_text("{}")
    with pytest.raises(BadInput, match="is no name for a deployment"):
        USES[use](store, name)
    assert {path.name for path in tmp_path.iterdir()} <= {"x.json", "x.jsonl", "state"}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_refuse_them(site: Site, command: str) -> None:
    answer = site.gpufarm(command, "../../x")
    assert answer.status == 2 and answer.error.startswith('gpufarm: "../../x" is no name'), answer


def test_all_files_of_a_deployment_are_in_the_folder(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    name = "a..b.json"
    with store.locked(name), store.run_directory(name):
        store.save(Deployment(name, "t", "p"))
        store.log(name).write_text("")
        with history.recorded(store, name, "x"):
            pass
        found = [Path(folder) / file for folder, _own, files in os.walk(tmp_path) for file in files]
        assert found and all(path.is_relative_to(tmp_path / "state") for path in found)
    assert store.load(name) is not None and len(history.read(store, name)) == 1
