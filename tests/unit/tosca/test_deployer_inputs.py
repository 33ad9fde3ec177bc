"""Inputs: every wrong one is refused before any machine is looked at, in a sentence that helps."""

from __future__ import annotations

from pathlib import Path

import pytest
from deployer_site import SERVICE, Site

ML_INFN = Path(__file__).resolve().parents[3] / "tosca" / "templates" / "ml_infn.yaml"

WRONG = {
    "unknown": (["--input", "txet=x"], "the template service.yaml has no input txet; did you mean text?"),
    "no value": (["--input", "text"], "--input text: write it as NAME=VALUE"),
    "no integer": (["--input", "seconds=soon"], 'input seconds: "soon" is no integer'),
    "no boolean": (["--input", "fails=maybe"], 'input fails: "maybe" is no boolean'),
    "a boolean for a number": (["--input", "num_cpus=true"], 'input num_cpus: "True" is no integer'),
    "out of range": (["--input", "num_cpus=0"], 'input num_cpus: "0" is out of range: 1 to 100000'),
    "breaks the property": (["--input", "seconds=900"], '"900" of property "seconds" is out of range'),
    "not YAML": (["--input", "seconds=[1"], "input seconds: [1 is no integer"),
    "a secret in argv": (["--input", "access_token=hunter2"], "GPUFARM_INPUT_ACCESS_TOKEN"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_inputs(site: Site, name: str) -> None:
    options, sentence = WRONG[name]
    answer = site.deploy(*options)
    assert answer.status == 2
    assert sentence in answer.error and answer.error.count("\n") == 1
    assert "hunter2" not in answer.error
    assert list(site.notes.iterdir()) == []


def test_all_that_are_wrong_are_told(site: Site) -> None:
    wrong = ("--input", "seconds=soon", "--input", "num_cpus=0", "--input", "fails=maybe")
    answer = site.gpufarm("deploy", SERVICE, "--pool", site.pool, *wrong)
    assert answer.status == 2 and answer.error.count("\n") == 4
    for name in ("num_cpus", "fails", "seconds", "the template needs the input folder"):
        assert name in answer.error
    answer = site.gpufarm("validate", SERVICE, "--input", "txet=x", "--input", "fails")
    assert answer.status == 2 and "did you mean text?" in answer.error and "NAME=VALUE" in answer.error
    assert site.gpufarm("validate", SERVICE, "--input", "seconds=5").status == 0, (
        "nothing has to be given yet"
    )
    answer = site.gpufarm("validate", SERVICE, "--input", "seconds=900")
    assert answer.status == 2 and '"900" of property "seconds" is out of range' in answer.error


def test_missing(site: Site) -> None:
    answer = site.gpufarm("deploy", SERVICE, "--pool", site.pool)
    assert answer.status == 2
    assert (
        "the template needs the input folder (Where the notes go): give it with --input folder=VALUE"
        in answer.error
    )


def test_files(site: Site) -> None:
    path = site.root / "inputs.yaml"
    path.write_text("text: 5\n")
    answer = site.deploy("--inputs", path)
    assert answer.status == 2 and 'input text: "5" is no string; write it in quotes' in answer.error
    path.write_text("text: hello\nfodler: /x\n")
    answer = site.deploy("--inputs", path)
    assert answer.status == 2 and f"{path}:2:1: the template service.yaml has no input fodler" in answer.error
    assert "cannot be read" in site.deploy("--inputs", site.root / "none.yaml").error


def test_pools(site: Site) -> None:
    missing = site.gpufarm("plan", SERVICE, "--input", "folder=/x")
    assert missing.status == 2 and "--pool is missing" in missing.error
    nowhere = site.gpufarm("plan", SERVICE, "--input", "folder=/x", "--pool", site.root / "nowhere")
    assert nowhere.status == 2 and "there is no such inventory" in nowhere.error
    site.pool.write_text("all: {hosts: {}}\n")
    empty = site.deploy()
    assert empty.status == 2 and "names no machine" in empty.error
    site.pool.write_text("all: [\n")
    broken = site.deploy()
    assert broken.status == 2 and "the inventory cannot be read" in broken.error
    assert broken.error.count("\n") == 1


def test_a_dynamic_inventory_that_fails_says_why_itself(site: Site) -> None:
    script = site.root / "machines"
    script.write_text("#!/bin/sh\necho 'Error: the database of machines is down' >&2\nexit 1\n")
    script.chmod(0o755)
    answer = site.gpufarm("plan", SERVICE, "--input", "folder=/x", "--pool", script)
    assert answer.status == 2
    assert answer.error.strip().endswith("the inventory cannot be read: the database of machines is down")


def test_a_value_of_the_wrong_form_is_answered_with_what_is_asked_for(site: Site) -> None:
    wrong = ("--input", "iam_url=https://iam.example.org", "--input", "gpu_partition_flavor=seven")
    answer = site.gpufarm("plan", ML_INFN, "--pool", site.pool, *wrong)
    assert answer.status == 2
    assert '"seven" is not what is asked for: Partitions of every chosen GPU' in answer.error


def test_names(site: Site) -> None:
    answer = site.deploy("--name", "../../etc/passwd")
    assert answer.status == 2 and "is no name for a deployment" in answer.error


def test_more_than_there_is(site: Site) -> None:
    answer = site.deploy("--input", "num_cpus=99999")
    assert answer.status == 3
    assert "no free machine of" in answer.error and "nearest: here lacks 99999 CPUs (has " in answer.error
