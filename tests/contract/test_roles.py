"""Contracts of every role: specs that match the defaults, a README, a scenario, the standard steps."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from proof.releases import RELEASES, proofs

from lab import layers
from lab.spec import LAYERS

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir() and not path.name.startswith("_"))
# Roles that are proved on one release of Debian, and why that is enough.
ONE_RELEASE = {
    "chronos_job": "changes no machine, and asks Chronos by the code that container_request asks Marathon by",
    "fabric": "refuses Debian 12, as mpi does, to which it gives rails",
    "marathon_app": "changes no machine, and its module is that of container_request",
    "mpi": "refuses Debian 12, as slurm_node does, whose jobs it serves",
    "notebook_node": "refuses Debian 12, as slurm_node does",
    "slurm_controller": "refuses Debian 12, whose Slurm finds no slices",
    "slurm_job": "asks a cluster of Slurm, which is on Debian 13",
    "slurm_login": "refuses Debian 12, whose Slurm has no sackd",
    "slurm_node": "refuses Debian 12, whose Slurm finds no slices",
    "slurm_rest": "refuses Debian 12, as slurm_controller does",
}
EVERY_ROLE = pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def on_controller() -> set[str]:
    """The roles that set up nothing on a machine: they ask a service that is there."""
    types = load(ROOT / "tosca" / "types" / "gpufarm_base.yaml")["node_types"].values()
    metadata = [body.get("metadata", {}) for body in types]
    return {one["role"].rpartition(".")[2] for one in metadata if one.get("runs_on") == "controller"}


def options(role: Path) -> dict[str, Any]:
    return load(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]


def test_there_are_roles() -> None:
    assert {"nvidia_driver", "mig", "jupyterhub"} <= {role.name for role in ROLES}


@EVERY_ROLE
def test_specs_and_defaults_are_the_same_list(role: Path) -> None:
    defaults = load(role / "defaults" / "main.yml")
    spec = options(role)
    required = {name for name, option in spec.items() if option.get("required")}
    assert set(defaults) | required == set(spec)


@EVERY_ROLE
def test_specs_state_the_defaults_that_hold(role: Path) -> None:
    defaults = load(role / "defaults" / "main.yml")
    stated = {
        name: option.get("default") for name, option in options(role).items() if not option.get("required")
    }
    assert stated == defaults


@EVERY_ROLE
def test_every_variable_carries_the_name_of_its_role_and_a_description(role: Path) -> None:
    for name, option in options(role).items():
        assert name.startswith(f"{role.name}_"), name
        assert option.get("description"), name


@EVERY_ROLE
def test_main_is_a_table_of_contents(role: Path) -> None:
    missing = {"service", "install"} | ({"configure"} if role.name in on_controller() else set())
    text = (role / "tasks" / "main.yml").read_text()
    shared = [ROOT / "roles" / name for name in re.findall(r"gpufarm\.cluster\.(_\w+)", text)]
    for step in ("validate", "install", "configure", "service", "verify", "remove"):
        paths = [one / "tasks" / f"{step}.yml" for one in (role, *shared)]
        assert any(path.is_file() for path in paths) or step in missing, step
    # every task of main.yml does nothing but call a step, keep the record, or return a result
    calls = {"include_tasks", "import_tasks", "include_role", "role_record"}
    for task in load(role / "tasks" / "main.yml"):
        for one in task.get("block", [task]):
            names = {name.split(".")[-1] for name in one}
            assert names & calls or set(one.get("ansible.builtin.set_fact", {})) == {f"{role.name}_result"}, (
                one
            )


def modes(value: Any) -> Iterator[str]:
    """The permissions of files and folders anywhere in tasks."""
    if isinstance(value, dict):
        yield from (str(one) for name, one in value.items() if name == "mode" and str(one).isdigit())
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from modes(one)


@EVERY_ROLE
def test_nobody_but_owner_and_group_may_write_what_a_role_makes(role: Path) -> None:
    for path in (role / "tasks").rglob("*.yml"):
        for mode in modes(load(path)):
            assert int(mode, 8) & 0o002 == 0, (path.name, mode)


@EVERY_ROLE
def test_role_has_a_scenario_on_the_bench(role: Path) -> None:
    assert (ROOT / "molecule" / role.name / "molecule.yml").is_file()


def test_every_role_is_proved_on_both_releases_of_debian() -> None:
    proved = proofs(ROOT)
    partly = {role.name for role in ROLES if proved.get(role.name, {}).keys() < RELEASES.keys()}
    assert partly == set(ONE_RELEASE)
    assert all(proved[role] for role in ONE_RELEASE)


def installs(layer: str) -> set[str]:
    """The roles that install what a layer has: it is made of their files, or of tasks that they share."""
    owners = {path.relative_to(ROOT / "roles").parts[0] for path in layers.named(layer)}
    shared = [f"tasks_from: {path.stem}" for path in layers.named(layer) if path.match("_common/tasks/*.yml")]
    tasks = [
        path for path in ROOT.glob("roles/*/tasks/**/*.yml") if any(one in path.read_text() for one in shared)
    ]
    return (owners | {path.parts[-3] for path in tasks}) - {"_common"}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_role_is_also_proved_where_no_layer_has_installed_what_it_installs(layer: str) -> None:
    proved, cold = proofs(ROOT), proofs(ROOT, without=layer)
    assert installs(layer)
    for role in installs(layer):
        assert cold[role].keys() == proved[role].keys(), role


def test_generated_parts_of_readmes_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "role-docs", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
