"""Templates, their forms in the dashboard and their documentation agree; nothing impossible is offered."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import (
    FLAVOR_PATTERN,
    parse_flavor,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import plan as plan_settings
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError
from click.testing import CliRunner
from gpufarm import inputs, plan, template
from gpufarm.catalogue import Catalogue
from gpufarm.cli import main
from gpufarm.errors import GpufarmError
from gpufarm.functions import Scope
from toscaparser.tosca_template import ToscaTemplate

from lab import gpu_models

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "tosca" / "dashboard"
TEMPLATES = sorted((ROOT / "tosca" / "templates").glob("*.yaml"))
FORMS = sorted((DASHBOARD / "tosca-parameters").glob("*.parameters.yml"))
EVERY_TEMPLATE = pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
EVERY_FORM = pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name.partition(".")[0])
NEEDED = {"iam_url": "https://iam.example.org/"}
# Inputs for which a form can suggest no value.
ASKED = {
    "owner": "ada",
    "docker_image": "registry.example.org/lab:1",
    "ssh_keys": "ssh-ed25519 AAAA",
    "jupyter_password": "correct horse battery",
    "app_name": "plots",
    "users": [{"os_user_name": "ada", "os_user_ssh_public_key": "ssh-ed25519 AAAA", "os_user_guid": 3001}],
    "job_name": "train",
    "schedule": "R/2027-01-01T02:00:00Z/P1D",
    "command": "serve",
}

# The inputs of INFN Cloud's templates ml_infn and jupyter_vm, release 3.4.0, and the kinds of their values.
# jupyterlab_collaborative_image has no meaning here: that server runs what the others run.
INFN = {
    "num_cpus": "integer",
    "num_gpus": "integer",
    "gpu_model": "string",
    "mem_size": "scalar-unit.size",
    "disk_size": "scalar-unit.size",
    "os_distribution": "string",
    "os_version": "string",
    "users": "list",
    "iam_url": "string",
    "iam_subject": "string",
    "iam_groups": "string",
    "iam_admin_groups": "string",
    "enable_monitoring": "boolean",
    "jupyter_images": "string",
    "jupyter_use_gpu": "boolean",
    "jupyterlab_collaborative": "boolean",
    "jupyterlab_collaborative_use_gpu": "boolean",
    "cvmfs_repos": "string",
    "gpu_partition_flavor": "string",
    "ports": "map",
    "certificate_type": "string",
    "contact_email": "string",
}
WITHOUT_GPU = {
    "num_gpus",
    "gpu_model",
    "jupyter_use_gpu",
    "jupyterlab_collaborative_use_gpu",
    "cvmfs_repos",
    "gpu_partition_flavor",
}
FLAVORS = ("None", "2x 3g.40gb MIG GPUs", "3x 2g.20gb MIG GPUs", "7x 1g.10gb MIG GPUs")


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def check_schema(name: str, document: Any) -> None:
    schema = json.loads((DASHBOARD / "schemas" / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)


def form(name: str) -> dict[str, Any]:
    return load(DASHBOARD / "tosca-parameters" / f"{name}.parameters.yml")


def offered() -> dict[str, list[str]]:
    """The flavors that the form of ml_infn offers for each GPU model; labels name the models of a flavor."""
    inputs = form("ml_infn")["inputs"]
    models = [one["value"] for one in inputs["gpu_model"]["constraints"]]
    found: dict[str, list[str]] = {model: [] for model in models}
    for one in inputs["gpu_partition_flavor"]["constraints"]:
        flavor, _, named = one["label"].partition(" (")
        assert flavor == one["value"]
        for model in named.removesuffix(")").split(", ") if named else models:
            found[model].append(flavor)
    return found


def planned(name: str, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The variables of each step of a deployment, in their order, with one machine of each kind."""
    library, topology = template.read(ROOT / "tosca" / "templates" / f"{name}.yaml")
    hosts = {node.name: "gpu1" for node in topology.nodes.values() if node.is_machine}
    scope = Scope(topology, inputs.complete(topology, given, Catalogue(library).names("data_types")))
    return {step.name: step.variables for step in plan.steps(scope.on(hosts), hosts, frozenset(given))}


@cache
def gpus() -> dict[str, Any]:
    return {gpu.name: gpu for gpu in gpu_models.read()}


@pytest.mark.parametrize("name", ["gpu_node", "ml_infn"])
def test_templates_take_the_flavors_that_the_role_takes(name: str) -> None:
    flavor = load(ROOT / "tosca" / "templates" / f"{name}.yaml")["topology_template"]["inputs"][
        "gpu_partition_flavor"
    ]
    assert flavor["constraints"] == [{"pattern": FLAVOR_PATTERN}]
    for text in ("3x 1c.3g.40gb", "7x 1g", "enabled"):
        assert mig_flavors(name, text) == [text]


def mig_flavors(name: str, text: str) -> list[str]:
    """Arguments of role mig for a deployment with this flavor."""
    given = {**(NEEDED if name == "ml_infn" else {}), "gpu_partition_flavor": text}
    steps = planned(name, given).values()
    return [step["mig_partition_flavor"] for step in steps if "mig_partition_flavor" in step]


@EVERY_TEMPLATE
def test_stock_tosca_parser_reads_the_template(path: Path) -> None:
    assert ToscaTemplate(str(path)).nodetemplates


@EVERY_TEMPLATE
def test_the_dashboard_can_list_the_template(path: Path) -> None:
    check_schema("template_metadata", load(path)["metadata"])
    assert load(path)["metadata"]["template_name"] == path.stem


@EVERY_FORM
def test_a_plan_is_made_of_the_forms_defaults_alone(path: Path) -> None:
    name = path.name.partition(".")[0]
    shown = load(path)["inputs"]
    given = {key: one["default"] for key, one in shown.items() if "default" in one}
    declared = load(ROOT / "tosca" / "templates" / f"{name}.yaml")["topology_template"]["inputs"]
    written = {key for key, value in given.items() if declared[key]["type"] in ("list", "map") and value}
    given |= {key: yaml.safe_load(str(given[key])) for key in written}
    given |= {key: value for key, value in ASKED.items() if key in shown and key not in given}
    steps = list(planned(name, given))
    assert steps
    if "hub.configure" in steps:
        people = [name for name in steps if name.startswith(("accounts.", "users_of_"))]
        assert people and max(map(steps.index, people)) < steps.index("hub.configure")


@EVERY_FORM
def test_the_form_places_every_input_on_a_tab(path: Path) -> None:
    name = path.name.partition(".")[0]
    shown, topology = load(path), load(ROOT / "tosca" / "templates" / f"{name}.yaml")["topology_template"]
    check_schema("parameters", shown)
    assert list(shown["inputs"]) == list(topology["inputs"])
    assert set(shown["outputs"]) == set(topology["outputs"])
    unplaced = {key for key, one in shown["inputs"].items() if one.get("tab") not in shown["tabs"]}
    unplaced -= {key for key, one in shown["inputs"].items() if one.get("updatable")}
    assert {shown["inputs"][key]["type"] for key in unplaced} <= {"hidden", "ssh_user"}


def test_every_template_has_a_form() -> None:
    assert [path.name.partition(".")[0] for path in FORMS] == [path.stem for path in TEMPLATES]


def test_the_catalogue_lists_what_is_there_but_the_template_that_formats_disks() -> None:
    catalogue = load(DASHBOARD / "tosca-metadata" / "metadata.yml")
    check_schema("catalogue", catalogue)
    listed = [one["name"] for service in catalogue["services"] for one in service["templates"]]
    assert sorted([*listed, "lustre_filesystem"]) == [path.stem for path in TEMPLATES]


@pytest.mark.parametrize(
    ("name", "expected"), [("ml_infn", set(INFN)), ("jupyter_vm", set(INFN) - WITHOUT_GPU)]
)
def test_inputs_of_infn_cloud_are_understood(name: str, expected: set[str]) -> None:
    declared = load(ROOT / "tosca" / "templates" / f"{name}.yaml")["topology_template"]["inputs"]
    assert {key: declared.get(key, {}).get("type") for key in expected} == {
        key: INFN[key] for key in expected
    }


@pytest.mark.parametrize("name", ["ml_infn", "jupyter_vm"])
@pytest.mark.parametrize("wrong", ["iam_group", "jupyter_prot", "user"])
def test_misspelt_inputs_are_refused(name: str, wrong: str) -> None:
    path = ROOT / "tosca" / "templates" / f"{name}.yaml"
    answer = CliRunner().invoke(main, ["validate", str(path), "--input", f"{wrong}=x"])
    assert answer.exit_code == 2
    assert f"has no input {wrong}; did you mean" in answer.stderr


def test_users_are_those_of_indigo() -> None:
    user = {
        "os_user_name": "ada",
        "os_user_ssh_public_key": "ssh-ed25519 AAAA",
        "os_user_add_to_sudoers": True,
    }
    steps = planned("ml_infn", NEEDED | {"users": [user]})
    assert steps["accounts.configure"] == {"user_accounts_users": [user]}
    with pytest.raises(GpufarmError, match="os_user_nme"):
        planned("ml_infn", NEEDED | {"users": [{"os_user_nme": "ada"}]})


def test_no_form_offers_a_flavor_that_the_planner_refuses() -> None:
    assert set(gpus()) <= set(offered())
    for model, gpu in gpus().items():
        for flavor in offered()[model]:
            assert plan_settings({"partition_flavor": flavor})["problems"] == []
            if flavor != "None":
                assert gpu.mig_capable, model
                plan_flavor(gpu, parse_flavor(flavor))


def test_as_many_slices_as_fit_are_offered() -> None:
    for model, gpu in gpus().items():
        for flavor in offered()[model]:
            count, _x, profile = flavor.removesuffix(" MIG GPUs").partition("x ")
            if count.isdecimal() and "," not in profile:
                with pytest.raises(GpuError):
                    plan_flavor(gpu, parse_flavor(f"{int(count) + 1}x {profile}"))


def test_every_model_can_be_picked_and_without_one_nothing_is_promised() -> None:
    models = [one["value"] for one in form("ml_infn")["inputs"]["gpu_model"]["constraints"]]
    assert models == list(offered())
    assert offered()[""] == ["None"]
    assert offered()["Tesla T4"] == ["None"]
    assert all(flavor in offered()["NVIDIA A100-SXM4-80GB"] for flavor in FLAVORS)


def test_forms_and_documentation_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "template-docs", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
