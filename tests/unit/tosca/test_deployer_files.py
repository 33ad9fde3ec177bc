"""Files of the controller: inputs name what the operator has put into the folder, and reach nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from deployer_site import DATA, Site
from deployer_stub import StubSite, install
from gpufarm import files
from gpufarm.errors import BadInput

ROOT = Path(__file__).resolve().parents[3]
NEEDED = {
    **{"marathon_urls": ["https://m1:8443"], "owner": "ada", "app_name": "a"},
    **{"command": "sleep", "docker_image": "debian"},
}
TEMPLATES = ROOT / "tosca" / "templates"


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    """A site whose folder of files has one file, a link to it, and links that lead elsewhere."""
    store = site.state / "files"
    store.mkdir(parents=True)
    (store / "ca.pem").write_text("a certificate")
    (store / "same.pem").symlink_to("ca.pem")
    (site.root / "secret").write_text("hunter2")
    (store / "out.pem").symlink_to(site.root / "secret")
    (store / "folder").mkdir()
    return install(monkeypatch, site)


def plan(farm: StubSite, value: str) -> tuple[int, str]:
    path = farm.site.root / "inputs.yaml"
    path.write_text(yaml.safe_dump({**NEEDED, "ca_file": value}))
    answer = farm.gpufarm("plan", TEMPLATES / "marathon_app.yaml", "--inputs", path, "--json")
    return answer.status, answer.output + answer.error


@pytest.mark.parametrize("value", ["ca.pem", "same.pem"])
def test_names_lead_to_files_of_the_folder(farm: StubSite, value: str) -> None:
    status, text = plan(farm, value)
    assert status == 0 and str(farm.site.state / "files" / "ca.pem") in text, text


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (
            "{root}/secret",
            "is no name; put the file into {root}/state/files and give its name without a path",
        ),
        ("/etc/shadow", "is no name"),
        ("../secret", "is no name"),
        ("./ca.pem", "is no name"),
        ("folder/ca.pem", "is no name"),
        ("..", "is no name"),
        (".hidden", "is no name"),
        ("~/secret", "is no name"),
        ("ca.pem\n", "is no name"),
        ("{{{{ 1 }}}}", "is no name"),
        ("out.pem", "leads out of its folder; put the file itself there"),
        ("folder", "there is no file"),
        ("none.pem", "there is no file {root}/state/files/none.pem; put it there"),
    ],
)
def test_nothing_else_is_read(farm: StubSite, value: str, sentence: str) -> None:
    status, text = plan(farm, value.format(root=farm.site.root))
    assert status == 2 and text.count("\n") <= 2, text
    assert text.startswith("gpufarm: input ca_file: ") and sentence.format(root=farm.site.root) in text, text


def test_a_template_names_them_likewise(farm: StubSite) -> None:
    path = farm.site.root / "mine.yaml"
    text = (TEMPLATES / "marathon_app.yaml").read_text().replace("../types", f"{ROOT}/tosca/types")
    path.write_text(text.replace("{get_input: ca_file}", "/etc/shadow"))
    given = farm.site.root / "inputs.yaml"
    given.write_text(yaml.safe_dump(NEEDED))
    answer = farm.gpufarm("plan", path, "--inputs", given)
    assert answer.status == 2, answer
    assert 'property marathon_app_ca_file of node app: "/etc/shadow" is no name' in answer.error


def test_the_operator_can_choose_the_folder(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    farm = install(monkeypatch, site)
    monkeypatch.setenv("GPUFARM_FILES_DIR", str(site.root / "mine"))
    (site.root / "mine").mkdir()
    (site.root / "mine" / "ca.pem").write_text("a certificate")
    status, text = plan(farm, "ca.pem")
    assert status == 0 and f"{site.root}/mine/ca.pem" in text


def test_an_empty_name_is_no_file() -> None:
    assert files.path(Path("/nowhere"), "input x", "") == ""
    with pytest.raises(BadInput, match=r"input x: \"\['a'\]\" is no name"):
        files.path(Path("/nowhere"), "input x", ["a"])


# A lookup, or what copies from the controller, and the variable that says which file.
READS = re.compile(r"lookup\('ansible\.builtin\.(?:file|fileglob|template)', (\w+)|src: \"{{ (\w+) }}\"")


def read_by_roles() -> set[str]:
    """The variables of roles that name files that Ansible reads on the controller."""
    found = set()
    for path in sorted(ROOT.glob("roles/*/*/*.yml")):
        for task in re.split(r"\n(?=\s*- name:)", path.read_text()):
            if "remote_src: true" not in task and "builtin.slurp" not in task:
                found |= {name for pair in READS.findall(task) for name in pair if name}
    return found


def marked() -> set[str]:
    types = yaml.safe_load((ROOT / "tosca" / "types" / "gpufarm_base.yaml").read_text())["node_types"]
    return {
        name
        for body in types.values()
        for name in body.get("metadata", {}).get("controller_files", "").split()
    }


def public() -> dict[str, str]:
    """The variables of roles with their descriptions."""
    types = yaml.safe_load((ROOT / "tosca" / "types" / "gpufarm_base.yaml").read_text())["node_types"]
    return {
        name: body.get("description", "")
        for kind in types.values()
        for name, body in kind.get("properties", {}).items()
    }


def test_every_property_that_names_a_file_of_the_controller_is_marked() -> None:
    properties = public()
    assert marked() <= properties.keys()
    assert read_by_roles() & properties.keys() <= marked()
    told = {name for name, text in properties.items() if re.search("on the controller", text)}
    ends = {name for name in properties if re.search("_(ca|certificate|key)_file$", name)}
    assert marked() == told | ends


def path_in_state(farm: StubSite, name: str, value: str) -> None:
    """Make a state like one of a version that took paths: the value of an input is what was given then."""
    path = farm.site.state / f"{name}.json"
    content = json.loads(path.read_text())
    content["inputs"]["certificate_file"] = value
    path.write_text(json.dumps(content))


@pytest.fixture
def deployed(farm: StubSite) -> StubSite:
    """A deployment that knows two files, of which the removal reads one."""
    done = farm.deploy(
        DATA / "files.yaml", "--input", "certificate_file=ca.pem", "--input", "authority_file=same.pem"
    )
    assert done.status == 0, done.error
    return farm


@pytest.mark.parametrize("value", ["/etc/ssl/certs/old.pem", "gone.pem"])
def test_a_removal_needs_no_file_that_it_does_not_read(deployed: StubSite, value: str) -> None:
    """The path is of a version that took paths, or the file is gone since."""
    path_in_state(deployed, "files", value)
    gone = deployed.gpufarm("undeploy", "files", "--yes")
    assert gone.status == 0, gone.error
    assert deployed.stub.journal()[-1].startswith("delete")


def test_a_removal_names_the_file_that_it_lacks(deployed: StubSite) -> None:
    (deployed.site.state / "files" / "same.pem").unlink()
    refused = deployed.gpufarm("undeploy", "files", "--yes")
    assert refused.status == 2 and "input authority_file: there is no file" in refused.error
    assert deployed.gpufarm("status", "files").output.startswith("files: deployed")


def removal_reads(role: str) -> set[str]:
    """The variables that the removal of a role uses, in its tasks or in variables that these use."""
    folder = ROOT / "roles" / role
    defined = "\n".join(path.read_text() for path in folder.glob("vars/**/*.yml"))
    expressions = dict(re.findall(r"^(__\w+):(.*(?:\n[ ]+.*)*)", defined, re.MULTILINE))
    files, text = ["remove.yml"], ""
    for name in files:  # grows meanwhile
        for path in folder.glob(f"tasks/{name}"):
            text += path.read_text()
            included = re.findall(r"include_tasks: (\S.*\.yml)", path.read_text())
            files += [found for entry in included if (found := re.sub(r"{{.*?}}", "*", entry)) not in files]
    words: set[str] = set()
    new = set(re.findall(r"\w+", text))
    while new:
        words |= new
        new = {word for name in new for word in re.findall(r"\w+", expressions.get(name, ""))} - words
    return words


def test_the_types_say_which_files_a_removal_reads() -> None:
    types = yaml.safe_load((ROOT / "tosca" / "types" / "gpufarm_base.yaml").read_text())["node_types"]
    found = set()
    for body in types.values():
        metadata = body.get("metadata", {})
        named = set(metadata.get("controller_files", "").split())
        if named:
            used = named & removal_reads(metadata["role"].rpartition(".")[2])
            assert set(metadata.get("removal_files", "").split()) == used, metadata["role"]
            found |= used
    assert "marathon_app_ca_file" in found and "jupyterhub_certificate_file" not in found
