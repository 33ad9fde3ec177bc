"""Killed with SIGKILL at every moment at which it could matter, a deployment can always be continued."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deployer_site import DATA, Site
from deployer_stub import StubSite, exit_now, install

FARM = DATA / "farm.yaml"
LAST = 400  # far more moments than a run has


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    made = install(monkeypatch, site, hosts=4)
    fsync, replace = os.fsync, Path.replace

    # a file that is written is in danger before it is complete, before it is in its place, and after
    def risky_fsync(descriptor: int) -> None:
        made.stub.point()
        fsync(descriptor)

    def risky_replace(path: Path, target: Path) -> Path:
        made.stub.point()
        try:
            return replace(path, target)
        finally:
            made.stub.point()

    monkeypatch.setattr(os, "fsync", risky_fsync)
    monkeypatch.setattr(Path, "replace", risky_replace)
    return made


def killed(farm: StubSite, moment: int, action: Callable[[], object]) -> bool:
    """Do something in a process of its own that is killed at its n-th moment; False if it was over before."""
    child = os.fork()
    if child == 0:
        left = moment

        def count_down() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                exit_now()

        farm.stub.point = count_down
        try:
            action()
        finally:
            os._exit(0)
    _child, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def fresh(farm: StubSite) -> None:
    for path in sorted(farm.site.state.rglob("*"), reverse=True):
        if path.is_symlink():
            shutil.rmtree(path.readlink())
            path.unlink()
        elif path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    (farm.stub.root / "journal").unlink(missing_ok=True)


def test_deploying(farm: StubSite) -> None:
    moments = range(1, LAST, 3)
    for moment in moments:
        fresh(farm)
        if not killed(farm, moment, lambda: farm.deploy(FARM)):
            break
        before = farm.stub.journal()
        listed = farm.gpufarm("status")
        assert listed.status == 0, (moment, listed)
        done = set(farm.site.remembered("farm")["steps"]) if "interrupted" in listed.output else set()
        recorded = {name for name in done if farm.site.remembered("farm")["steps"][name]["digest"]}
        # two plays run side by side, one of them on two machines
        assert len(recorded) >= len(before) - 3, (moment, "at most the plays that ran are not written down")
        again = farm.deploy(FARM)
        assert again.status == 0 and "paths:" in again.output, (moment, again)
        assert len(farm.stub.journal()) - len(before) == 6 - len(recorded), (
            moment,
            "nothing twice, nothing left out",
        )
        assert list((farm.site.state / "runs").iterdir()) == []
        what = [run for run in farm.gpufarm("history", "farm").output.splitlines() if " killed " in run]
        assert len(what) <= 1
    else:
        raise AssertionError("there are more moments than that")
    assert moment > 30


def test_scaling_and_undeploying(farm: StubSite) -> None:
    commands = (["scale", "farm", "worker=1"], ["undeploy", "farm", "--yes"])
    for command in commands:
        for moment in range(1, LAST, 4):
            fresh(farm)
            assert farm.deploy(FARM).status == 0
            if not killed(farm, moment, lambda command=command: farm.gpufarm(*command)):
                break
            assert farm.gpufarm("status").status == 0
            again = farm.gpufarm(*command)
            # after its very last moment an undeployment is over
            assert again.status == 0 or (command[0] == "undeploy" and "no deployment farm" in again.error), (
                moment,
                again,
            )
            taken = {tuple(line.split()[:3]) for line in farm.stub.journal() if line.startswith("delete")}
            if command[0] == "scale":
                assert taken == {("delete", "tool", "m3"), ("delete", "base", "m3")}, moment
                assert set(farm.site.remembered("farm")["machines"]) == {"head", "worker"}
            else:
                assert len(taken) == 6 and not (farm.site.state / "farm.json").exists()
        else:
            raise AssertionError("there are more moments than that")
        assert moment > 10
