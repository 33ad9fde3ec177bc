"""A template as an archive for other orchestrators."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from deployer_site import DATA, SERVICE, Site
from toscaparser.prereq.csar import CSAR
from toscaparser.tosca_template import ToscaTemplate

ML_INFN = Path(__file__).resolve().parents[3] / "tosca" / "templates" / "ml_infn.yaml"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of ml_infn."""
    site = Site(tmp_path_factory.mktemp("package"))
    path = site.root / "ml_infn.csar"
    answer = site.gpufarm("package", ML_INFN, "--output", path, "--address", "server=192.0.2.11")
    assert answer.status == 0, answer.error
    return path


def test_tosca_parser_opens_the_package(archive: Path) -> None:
    csar = CSAR(str(archive))
    csar.validate()
    assert csar.get_main_template() == "ml_infn.yaml"
    names = {node.name for node in ToscaTemplate(str(archive)).nodetemplates}
    assert {"server", "driver", "partitions", "hub"} <= names


def test_everything_that_the_template_needs_is_inside(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as package:
        package.extractall(tmp_path)
    template = yaml.safe_load((tmp_path / "ml_infn.yaml").read_text())
    assert template["imports"] == ["types/gpufarm_types.yaml"]
    assert template["topology_template"]["node_templates"]["server"]["attributes"] == {
        "public_address": "192.0.2.11",
        "private_address": "192.0.2.11",
    }
    assert (tmp_path / "playbooks" / "jupyterhub" / "configure.yml").is_file()
    (collection,) = (tmp_path / "collections").iterdir()
    with tarfile.open(collection) as content:
        assert "roles/jupyterhub/tasks/main.yml" in content.getnames()


def test_it_packs_where_the_programs_of_ansible_are_not_in_the_path(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    answer = site.gpufarm("package", ML_INFN, "--output", site.root / "x.csar")
    assert answer.status == 0, answer.error


def test_own_operations_of_a_template_keep_their_playbooks(site: Site) -> None:
    folder = site.root / "service" / "templates"
    shutil.copytree(DATA, folder.parent / "library")
    folder.mkdir()
    text = SERVICE.read_text().replace("- types.yaml", "- ../library/types.yaml")
    content = yaml.safe_load(text)
    content["topology_template"]["node_templates"]["first"]["interfaces"] = {
        "Standard": {"start": {"implementation": "../library/playbooks/configure.yml"}}
    }
    (folder / "mine.yaml").write_text(yaml.safe_dump(content))
    path = site.root / "mine.csar"
    library = {"GPUFARM_LIBRARY": str(folder.parent)}
    answer = site.gpufarm("package", folder / "mine.yaml", "--output", path, **library)
    assert answer.status == 0, answer.error
    with zipfile.ZipFile(path) as package:
        template = yaml.safe_load(package.read("mine.yaml"))
        start = template["topology_template"]["node_templates"]["first"]["interfaces"]["Standard"]["start"]
        assert start["implementation"] in package.namelist()
        assert template["imports"][0] in package.namelist()


def test_artifacts_and_what_playbooks_depend_on_are_inside(site: Site) -> None:
    folder = site.root / "service" / "templates"
    shutil.copytree(DATA, folder.parent / "library")
    folder.mkdir()
    (folder.parent / "files").mkdir()
    for name in ("disk.img", "words.txt"):
        (folder.parent / "files" / name).write_text(name)
    content = yaml.safe_load(SERVICE.read_text().replace("- types.yaml", "- ../library/types.yaml"))
    first = content["topology_template"]["node_templates"]["first"]
    playbook = {"primary": "../library/playbooks/configure.yml", "dependencies": ["../files/words.txt"]}
    first["interfaces"] = {"Standard": {"operations": {"start": {"implementation": playbook}}}}
    first["artifacts"] = {
        "disk": "../files/disk.img",
        "image": {"file": "example/image:1", "type": "tosca.artifacts.Deployment.Image"},
    }
    (folder / "mine.yaml").write_text(yaml.safe_dump(content))
    path = site.root / "mine.csar"
    library = {"GPUFARM_LIBRARY": str(folder.parent)}
    answer = site.gpufarm("package", folder / "mine.yaml", "--output", path, **library)
    assert answer.status == 0, answer.error
    with zipfile.ZipFile(path) as package:
        first = yaml.safe_load(package.read("mine.yaml"))["topology_template"]["node_templates"]["first"]
        start = first["interfaces"]["Standard"]["operations"]["start"]["implementation"]
        assert package.read(first["artifacts"]["disk"]) == b"disk.img"
        assert [package.read(name) for name in start["dependencies"]] == [b"words.txt"]
        assert start["primary"] in package.namelist()
        assert first["artifacts"]["image"]["file"] == "example/image:1"
    (folder.parent / "files" / "words.txt").unlink()
    refused = site.gpufarm("validate", folder / "mine.yaml", **library)
    assert refused.status == 2
    assert "the operation depends on: there is no file '../files/words.txt'" in refused.error


@pytest.mark.parametrize(
    ("address", "sentence"),
    [("srver=192.0.2.1", "did you mean server?"), ("server", "write it as NODE=ADDRESS")],
)
def test_an_address_for_nobody_is_refused(site: Site, address: str, sentence: str) -> None:
    answer = site.gpufarm("package", SERVICE, "--output", site.root / "x.csar", "--address", address)
    assert answer.status == 2
    assert sentence in answer.error
    assert not (site.root / "x.csar").exists()


def test_a_package_that_cannot_be_written_is_refused_with_a_sentence(site: Site) -> None:
    answer = site.gpufarm("package", SERVICE, "--output", site.root / "nowhere" / "x.csar")
    assert answer.status == 1
    assert "No such file or directory" in answer.error
