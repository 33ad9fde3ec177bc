"""A file of the state that cannot be used stops its own deployment only, and frees no machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from deployer_site import SERVICE, Answer, Site
from deployer_stub import StubSite, install
from gpufarm.errors import GpufarmError
from gpufarm.state import Deployment, Store

DAMAGES = {
    "empty": "",
    "cut": None,
    "no UTF-8": b"\xff\xfe",
    "a list": "[]",
    "nothing": "{}",
    "newer": '{"format": 99, "machines": {"server": {"host": "m1", "address": "m1"}}}',
    "other kinds": '{"format": 1, "name": "a", "machines": [], "steps": 3, "secrets": ""}',
    "deep": "[" * 100_000,
}


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    """A site of two machines; the deployment a has the first."""
    made = install(monkeypatch, site, hosts=2)
    assert deploy(made, "a").status == 0
    return made


def deploy(farm: StubSite, name: str) -> Answer:
    return farm.deploy(SERVICE, "--name", name)


def damage(farm: StubSite, text: str | bytes | None) -> Path:
    """Replace the state of the deployment a; None cuts it in the middle."""
    path = farm.site.state / "a.json"
    content = path.read_bytes()[:300] if text is None else text.encode() if isinstance(text, str) else text
    path.write_bytes(content)
    return path


def host(farm: StubSite, name: str) -> str:
    return str(farm.site.remembered(name)["machines"]["server"]["host"])


@pytest.mark.parametrize("text", DAMAGES.values(), ids=DAMAGES)
def test_others_go_on_and_get_no_machine_of_it(farm: StubSite, text: str | bytes | None) -> None:
    path = damage(farm, text)
    done = deploy(farm, "b")
    assert done.status == 0, done.error
    assert f"gpufarm: warning: {path}" in done.error and "keeps server: m1" in done.error
    assert host(farm, "b") == "m2"
    refused = deploy(farm, "c")
    assert refused.status == 3 and "m1 is held by deployment a" in refused.error
    assert farm.gpufarm("undeploy", "b", "--yes").status == 0


@pytest.mark.parametrize("text", DAMAGES.values(), ids=DAMAGES)
def test_its_own_commands_say_why(farm: StubSite, text: str | bytes | None) -> None:
    path = damage(farm, text)
    for command in ("status", "outputs", "update", "resume", "undeploy", "diff"):
        answer = farm.gpufarm(command, "a")
        assert answer.status == 1 and answer.error.startswith(f"gpufarm: {path}"), (command, answer)
    assert deploy(farm, "a").status == 1


@pytest.mark.parametrize("text", DAMAGES.values(), ids=DAMAGES)
def test_the_list_shows_it_with_the_reason_and_the_next_step(
    farm: StubSite, text: str | bytes | None
) -> None:
    path = damage(farm, text)
    assert deploy(farm, "b").status == 0
    listed = farm.gpufarm("list")
    assert listed.status == 0
    rows = {line.split()[0]: line for line in listed.output.splitlines()}
    assert "unusable" in rows["a"] and "server: m1" in rows["a"] and "deployed" in rows["b"]
    assert f"gpufarm: warning: {path}" in listed.error
    (entry,) = [row for row in json.loads(farm.gpufarm("list", "--json").output) if row["name"] == "a"]
    assert entry["status"] == "unusable" and entry["failure"].startswith(str(path))
    assert "restore it from a backup" in entry["failure"] or "install the newer one" in entry["failure"]


def test_a_lost_state_frees_nothing(farm: StubSite) -> None:
    path = farm.site.state / "a.json"
    path.unlink()
    assert deploy(farm, "b").status == 0 and host(farm, "b") == "m2"
    again = deploy(farm, "a")
    assert again.status == 1 and f"{path} is missing; restore it from a backup" in again.error
    assert "machines/a.json" in again.error
    (farm.site.state / "machines" / "a.json").unlink()
    assert deploy(farm, "c").status == 0 and host(farm, "c") == "m1", "as the sentence says"


def test_a_file_of_another_program_stops_nothing(farm: StubSite) -> None:
    for name, text in (
        ("package.json", '{"name": "x", "version": 1}'),
        ("my notes.json", "x"),
        ("n.json", "7"),
    ):
        (farm.site.state / name).write_text(text)
    (farm.site.state / "folder.json").mkdir()
    done = deploy(farm, "b")
    assert done.status == 0 and host(farm, "b") == "m2"
    assert "package.json" not in done.error, "it names no machines"
    assert "package" in farm.gpufarm("list").output


def test_a_copy_holds_no_machine_against_its_original(farm: StubSite) -> None:
    (farm.site.state / "a.old.json").write_text((farm.site.state / "a.json").read_text())
    assert deploy(farm, "a").status == 0
    assert deploy(farm, "b").status == 0 and host(farm, "b") == "m2"
    refused = farm.gpufarm("undeploy", "a.old", "--yes")
    assert refused.status == 1 and "is a copy of the state of a; move it elsewhere" in refused.error
    assert farm.gpufarm("undeploy", "a", "--yes").status == 0


def test_without_any_list_no_machine_is_chosen(farm: StubSite) -> None:
    """A state of a version that kept no lists: which machines it holds, nobody knows."""
    assert deploy(farm, "b").status == 0
    damage(farm, None)
    (farm.site.state / "machines" / "a.json").unlink()
    refused = farm.gpufarm("plan", SERVICE, "--name", "c", "--pool", farm.site.pool, "--input", "folder=/x")
    assert refused.status == 3 and "may hold any machine" in refused.error
    assert "is held by deployment a, as far as is known" in refused.error
    assert farm.gpufarm("update", "b", "--input", "text=new").status == 0, "it has its machine"


def test_lists_are_completed_while_states_can_be_read(farm: StubSite) -> None:
    listed = farm.site.state / "machines" / "a.json"
    before = listed.read_text()
    for text in (None, "", '{"server": {"host": 1}}'):
        listed.unlink() if text is None else listed.write_text(text)
        assert deploy(farm, "b").status == 0
        assert listed.read_text() == before


def test_a_list_of_its_own_is_completed(farm: StubSite) -> None:
    """The lock of the deployment is held by the run itself."""
    listed = farm.site.state / "machines" / "a.json"
    listed.unlink()
    assert deploy(farm, "a").status == 0 and json.loads(listed.read_text())["server"]["host"] == "m1"


def test_a_backup_that_is_older_than_its_list_frees_nothing(farm: StubSite) -> None:
    older = farm.site.remembered("a") | {"machines": {}}
    (farm.site.state / "a.json").write_text(json.dumps(older))
    assert deploy(farm, "b").status == 0 and host(farm, "b") == "m2"


def machine(name: str) -> dict[str, str]:
    return {"host": name, "address": name}


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "first": ({}, {"n": machine("m1")}),
    "more": ({"n": machine("m1")}, {"n": machine("m1"), "n[2]": machine("m2")}),
    "fewer": ({"n": machine("m1"), "n[2]": machine("m2")}, {"n": machine("m1")}),
    "same": ({"n": machine("m1")}, {"n": machine("m1")}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moment", range(8))
def test_a_kill_at_any_moment_loses_no_machine(tmp_path: Path, change: str, moment: int) -> None:
    """After the kill, and then the loss of the state file, what it held counts as held."""
    before, after = CHANGES[change]
    store = Store(tmp_path)
    if before:
        store.save(Deployment("a", "t", "p", machines=before))
    child = os.fork()
    if child == 0:
        left = moment
        rename = Path.replace

        def replace(self: Path, target: Path) -> Any:
            nonlocal left
            if left == 0:
                os._exit(9)
            left -= 1
            done = rename(self, target)
            if left == 0:
                os._exit(9)
            left -= 1
            return done

        Path.replace = replace  # type: ignore[method-assign]
        store.save(Deployment("a", "t", "p", machines=after))
        os._exit(0)
    os.waitpid(child, 0)  # and no other one, which an earlier test may have left
    known = store.load("a", secrets=False)
    truth = {entry["address"] for entry in known.machines.values()} if known else set()
    assert truth <= store.held("b", ["m1", "m2", "m3"]).keys()
    if known:
        (tmp_path / "a.json").write_text("{")
        assert truth <= store.held("b", ["m1", "m2", "m3"]).keys()


def test_a_state_that_cannot_be_opened(farm: StubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    path = farm.site.state / "a.json"
    read = Path.read_text

    def refuse(self: Path, *arguments: Any, **options: Any) -> str:
        if self == path:
            raise PermissionError(13, "Permission denied", str(self))
        return read(self, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", refuse)
    assert deploy(farm, "b").status == 0
    with pytest.raises(GpufarmError, match="Permission denied"):
        Store(farm.site.state).load("a")
