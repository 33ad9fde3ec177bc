"""Templates take types and playbooks from their own folder, the collection, and where the operator says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deployer_site import DATA, Answer, Site
from gpufarm import library

ROOT = Path(__file__).resolve().parents[3]
OWN = """\
tosca_definitions_version: tosca_simple_yaml_1_3
imports:
  - types.yaml
topology_template:
  node_templates:
    note:
      type: tosca.nodes.test.Note
      properties: {{folder: /x, label: first}}
      requirements: [host: server]
      interfaces: {{Standard: {{operations: {{start: {implementation}}}}}}}
    server: {{type: tosca.nodes.Compute}}
"""


def validate(site: Site, implementation: str, **environment: str) -> Answer:
    """Ask about a template in a folder of its own, beside which there is another folder with a playbook."""
    own, other = site.root / "own", site.root / "other"
    if not own.exists():
        shutil.copytree(DATA, own)
        shutil.copytree(DATA, other)
        (own / "link.yml").symlink_to(other / "playbooks" / "configure.yml")
        (own / "folder").symlink_to(other / "playbooks")
        (own / "circle.yml").symlink_to(own / "circle.yml")
    (own / "mine.yaml").write_text(OWN.format(implementation=implementation))
    return site.gpufarm("validate", own / "mine.yaml", **environment)


OUTSIDE = [
    "../other/playbooks/configure.yml",
    "../../../../../../../../etc/evil.yml",
    "/etc/evil.yml",
    "link.yml",
    "folder/configure.yml",
    "../own/../other/playbooks/configure.yml",
    "{primary: ../other/playbooks/configure.yml}",
    "{primary: {type: tosca.artifacts.File, file: ../other/playbooks/configure.yml}}",
    "{primary: playbooks/configure.yml, dependencies: [../other/playbooks/configure.yml]}",
]


@pytest.mark.parametrize("implementation", OUTSIDE)
def test_playbooks_outside_of_the_folder_are_refused(site: Site, implementation: str) -> None:
    answer = validate(site, f"{{implementation: {implementation}}}")
    assert answer.status == 2 and "is not in the folder of the template; move it there" in answer.error, (
        answer
    )
    allowed = validate(site, f"{{implementation: {implementation}}}", GPUFARM_LIBRARY=f"/x:{site.root}")
    assert allowed.status == (2 if "etc" in implementation else 0), allowed


@pytest.mark.parametrize(
    "implementation", ["https://example.org/evil.yml", "circle.yml", f"{'a' * 5000}.yml"]
)
def test_what_is_no_file_is_refused(site: Site, implementation: str) -> None:
    answer = validate(site, f"{{implementation: {implementation}}}", GPUFARM_LIBRARY="/")
    assert answer.status == 2 and "there is no file" in answer.error


def test_playbooks_of_the_folder_and_of_the_collection_are_taken(site: Site) -> None:
    assert validate(site, "{implementation: playbooks/configure.yml}").status == 0
    assert validate(site, "{implementation: ../own/playbooks/configure.yml}").status == 0
    ours = ROOT / "tosca" / "playbooks" / "mig_partition" / "configure.yml"
    assert validate(site, f"{{implementation: {ours}}}").status == 0
    beyond = validate(site, f"{{implementation: {ROOT / 'playbooks' / 'site.yml'}}}")
    assert beyond.status == 2 and "is not in the folder of the template" in beyond.error


@pytest.mark.parametrize("name", ["../other/types.yaml", "{other}/types.yaml", "folder/../types.yaml"])
def test_types_outside_of_the_folder_are_refused(site: Site, name: str) -> None:
    validate(site, "{implementation: playbooks/configure.yml}")
    path = site.root / "own" / "mine.yaml"
    path.write_text(path.read_text().replace("types.yaml", name.format(other=site.root / "other")))
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and "is not in the folder of the template" in answer.error, answer
    assert site.gpufarm("validate", path, GPUFARM_LIBRARY=str(site.root / "other")).status == 0


def test_types_of_another_folder_may_name_files_there_alone(site: Site) -> None:
    """Where a file is imported from does not widen what it may name."""
    validate(site, "{implementation: playbooks/configure.yml}")
    types = site.root / "own" / "types.yaml"
    types.write_text(types.read_text().replace("playbooks/delete.yml", "../other/playbooks/delete.yml"))
    answer = site.gpufarm("validate", site.root / "own" / "mine.yaml")
    assert answer.status == 2 and f"{types}:" in answer.error and "is not in the folder" in answer.error


@pytest.mark.parametrize(
    "name", ["ansible_ssh_common_args", "ansible_python_interpreter", "a b", "{{ x }}", "1a"]
)
def test_inputs_of_operations_do_not_say_how_ansible_works(site: Site, name: str) -> None:
    answer = validate(site, f'{{implementation: playbooks/configure.yml, inputs: {{"{name}": x}}}}')
    assert answer.status == 2 and "is no name for an input of operation start" in answer.error, answer


def test_files_of_artifacts_are_not_packed_from_anywhere(site: Site) -> None:
    validate(site, "{implementation: playbooks/configure.yml}")
    path, secret = site.root / "own" / "mine.yaml", site.root / "secret"
    secret.write_text("secret")
    text = path.read_text().replace(
        "      requirements", f"      artifacts: {{a: {secret}}}\n      requirements"
    )
    path.write_text(text)
    answer = site.gpufarm("package", path, "--output", site.root / "mine.csar")
    assert answer.status == 2 and "is not in the folder of the template" in answer.error


def test_the_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("GPUFARM_LIBRARY", f"{tmp_path}/link:")
    ours = (ROOT / "tosca").resolve()
    assert library.folders(tmp_path / "link" / "x.yaml") == (tmp_path / "real", tmp_path / "real", ours)
