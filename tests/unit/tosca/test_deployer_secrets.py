"""Secrets: everything that runs leave behind or show is searched for them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from deployer_site import DATA, Site
from gpufarm import template
from gpufarm.deployment import evaluate_outputs
from gpufarm.functions import Scope
from gpufarm.secrecy import forms, holds_secret, veiled
from gpufarm.state import Deployment

SAFE = DATA / "safe.yaml"
PHRASE = "-----BEGIN KEY-----\nMIIEvhunter1hunter1\n{{ hunter2 'quoted' }}\n-----END KEY-----"
TOKEN, PASSWORD = "tok-hunter3", 'pass-"hunter4"'
WORDS = ("hunter1", "hunter2", "hunter3", "hunter4")


def told(text: str) -> list[str]:
    return [word for word in WORDS if word in text]


@pytest.fixture
def given(site: Site) -> Path:
    path = site.root / "given" / "inputs.yaml"
    path.parent.mkdir()
    accounts = [{"user": "ada", "password": PASSWORD}]
    path.write_text(yaml.safe_dump({"phrase": PHRASE, "folder": str(site.notes), "accounts": accounts}))
    return path


def left_behind(site: Site) -> Iterator[Path]:
    """Every file but the user's own and those that the service was to write."""
    for path in site.root.rglob("*"):
        if path.is_file() and site.notes not in path.parents and path.parent.name != "given":
            yield path


def processes() -> Iterator[tuple[str, str]]:
    """Command line and environment of every process that runs Ansible."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
            if (
                entry.name.isdigit()
                and "ansible" in command
                and "gpufarm" not in command.partition("\0")[2][:40]
            ):
                yield command, (entry / "environ").read_bytes().decode(errors="replace")


def test_no_secret_is_left_or_shown(site: Site, given: Path) -> None:
    environment = {"GPUFARM_INPUT_ACCESS_TOKEN": TOKEN}
    arguments = ("--pool", site.pool, "--inputs", given, "--input", "seconds=2")
    run = subprocess.Popen(
        [sys.executable, "-m", "gpufarm", "--events", site.root / "events", "deploy", SAFE, *arguments],
        env=site.environment() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    seen = 0
    while run.poll() is None:
        for command, inherited in processes():
            seen += 1
            assert not told(command) and not told(inherited), command
        time.sleep(0.05)
    output, _none = run.communicate()
    assert run.returncode == 0 and seen, output
    assert (site.notes / "first").read_text() == PHRASE and TOKEN in (site.notes / "first-token").read_text()
    assert f"<<{PHRASE}>>" == (site.notes / "second").read_text()
    assert PASSWORD in yaml.safe_load((site.notes / "ledger").read_text())[0]["password"]

    shown = [output]
    for command in (
        ("plan", SAFE, "--json"),
        ("plan", SAFE),
        ("outputs", "safe", "--json"),
        ("outputs", "safe"),
        ("status", "safe", "--json"),
        ("status", "safe"),
        ("history", "safe", "--json"),
        ("diff", "safe"),
        ("validate", SAFE, "--inputs", given),
    ):
        answer = site.gpufarm(*command)
        assert answer.status in (0, 5), answer
        shown += [answer.output, answer.error]
    assert not told("".join(shown))
    outputs = json.loads(site.gpufarm("outputs", "safe", "--json").output)
    assert outputs["phrase"] == "(secret)" and outputs["accounts"] == [
        {"user": "ada", "password": "(secret)"}
    ]
    leaks = {str(path): told(path.read_text(errors="replace")) for path in left_behind(site)}
    assert leaks and not any(leaks.values()), leaks
    assert all(path.stat().st_mode & 0o077 == 0 for path in left_behind(site) if site.state in path.parents)

    before = len(site.journal())
    assert site.gpufarm("update", "safe").status == 0 and len(site.journal()) == before, "they are remembered"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("phrase: [hunter1, hunter2]\n", "input phrase: the value does not meet the template's constraints"),
        ("access_token: {hunter1: 1}\n", "input access_token: the value does not meet"),
        ("accounts: {password: hunter1}\n", "input accounts: "),
        ("phrase: hunter1\nphrase: hunter2\n", "phrase"),
        ("phrase: [hunter1\n", "inputs.yaml"),
        ('phrase: "hunter1\n', "inputs.yaml"),
        ("phrase: !hunter1 x\n", "inputs.yaml"),
        ("- hunter1\n", "inputs.yaml"),
    ],
)
def test_a_refusal_does_not_repeat_them(site: Site, given: Path, content: str, sentence: str) -> None:
    given.write_text(content)
    answer = site.gpufarm("validate", SAFE, "--inputs", given)
    assert answer.status == 2 and sentence in answer.error, answer
    assert not told(answer.error), answer.error


def test_a_secret_inside_a_list_is_refused_on_the_command_line(site: Site) -> None:
    answer = site.gpufarm("validate", SAFE, "--input", "accounts=[{user: ada, password: hunter4}]")
    assert answer.status == 2 and "every user of this machine can read command lines" in answer.error
    assert not told(answer.error)


@pytest.mark.parametrize(
    "form", ["{{{{ {} }}}}", "#jinja2: variable_start_string:'[[', variable_end_string:']]'\n[[ {} ]]"]
)
def test_expressions_of_users_are_data_wherever_they_stand(site: Site, given: Path, form: str) -> None:
    evil = form.format(f"lookup('pipe', 'touch {site.notes}/evil')")
    accounts = [{evil: evil, "list": [evil, {"deep": evil}]}, {"{% raw": "{# x", "!vault |": "!unsafe x"}]
    content = {"phrase": evil, "folder": str(site.notes), "accounts": accounts, "access_token": evil}
    given.write_text(yaml.safe_dump(content))
    answer = site.gpufarm("deploy", SAFE, "--pool", site.pool, "--inputs", given)
    assert answer.status == 0, answer.error
    assert (site.notes / "first").read_text() == evil and not (site.notes / "evil").exists()
    assert yaml.safe_load((site.notes / "ledger").read_text()) == accounts


MAKER = """\
tosca_definitions_version: tosca_simple_yaml_1_3
node_types:
  tosca.nodes.test.Maker:
    derived_from: tosca.nodes.SoftwareComponent
    attributes:
      admin_password: {type: string}
      path: {type: string}
    interfaces:
      Standard:
        operations:
          configure:
            implementation: playbooks/configure.yml
            outputs: {admin_password: [SELF, admin_password], path: [SELF, path]}
topology_template:
  node_templates:
    server: {type: tosca.nodes.Compute}
    hub: {type: tosca.nodes.test.Maker, requirements: [{host: server}]}
  outputs:
    login: {value: {concat: ["admin:", {get_attribute: [hub, admin_password]}]}}
    path: {value: {get_attribute: [hub, path]}}
"""


def test_what_an_operation_returns_is_no_output_where_it_is_secret(site: Site) -> None:
    (site.root / "playbooks").symlink_to(DATA / "playbooks")
    path = site.root / "maker.yaml"
    path.write_text(MAKER)
    _library, topology = template.read(path)
    returned = {"admin_password": "hunter4", "path": "/x"}
    remembered = Deployment("a", "b", "c", steps={"hub.configure": {"attributes": returned}})
    assert evaluate_outputs(Scope(topology, {}), remembered) == {"login": "(secret)", "path": "/x"}


def test_secrets_by_the_names_of_their_entries() -> None:
    value = [{"url": "https://x", "token": "abcdef", "more": {"password": ["one-two", "three"], "port": 1}}]
    assert holds_secret(value) and not holds_secret([{"token": ""}, {"a": ["token"]}])
    pairs = [{"key": "DB_PASSWORD", "value": "hunter2"}, {"key": "PORT", "value": "5432"}]
    assert holds_secret(pairs) and not holds_secret(pairs[1:])
    assert veiled(pairs) == [{"key": "DB_PASSWORD", "value": "(secret)"}, pairs[1]]
    assert forms(pairs, whole=False) == {"hunter2"}
    assert veiled(value) == [
        {"url": "https://x", "token": "(secret)", "more": {"password": "(secret)", "port": 1}}
    ]
    assert set(forms(value, whole=False)) == {"abcdef", "one-two", "three"}
    assert set(forms("it's\n  two lines", whole=True)) >= {"it's", "it''s", "two lines"}
    assert forms([True, None, 1, "abc"], whole=True) == set(), "too short to hide"
    assert os.linesep == "\n"
