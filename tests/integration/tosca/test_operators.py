# SPDX-License-Identifier: GPL-3.0-or-later
"""Operators with accounts of their own share a state folder by its group; others get nothing of it."""

from __future__ import annotations

import grp
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes accounts: needs root")

GROUP = "gpufarm-test"
ADA, BOB, EVE = (f"{GROUP}-{name}" for name in ("ada", "bob", "eve"))
TOKEN = "hunter2-of-ada"
TYPES = """
tosca_definitions_version: tosca_simple_yaml_1_3
node_types:
  tosca.nodes.test.Quiet:
    derived_from: tosca.nodes.SoftwareComponent
    properties:
      quiet_token: {type: string, default: ""}
    attributes:
      account: {type: string}
    interfaces:
      Standard:
        type: tosca.interfaces.node.lifecycle.Standard
        inputs:
          quiet_token: {type: string, value: {get_property: [SELF, quiet_token]}}
        operations:
          configure:
            implementation: configure.yml
            outputs:
              account: [SELF, account]
          delete:
            implementation: delete.yml
topology_template:
  inputs:
    access_token: {type: string, default: ""}
  node_templates:
    server:
      type: tosca.nodes.Compute
    quiet:
      type: tosca.nodes.test.Quiet
      properties:
        quiet_token: {get_input: access_token}
      requirements:
        - host: server
  outputs:
    account: {value: {get_attribute: [quiet, account]}}
"""
CONFIGURE = """
- name: Quiet
  hosts: "{{ gpufarm_hosts }}"
  gather_facts: false
  tasks:
    - name: Tell the account
      ansible.builtin.command: id -un
      register: account
    - name: Return it
      ansible.builtin.set_stats:
        data: {account: "{{ account.stdout }}"}
"""
DELETE = """
- name: Quiet, removal
  hosts: "{{ gpufarm_hosts }}"
  gather_facts: false
  tasks:
    - name: Change something
      ansible.builtin.command: "true"
"""


@dataclass(frozen=True)
class Office:
    """A folder that all accounts may read, with a pool of two machines, and a state folder."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / "state"

    def start(self, account: str, *words: str | Path, **options: Any) -> subprocess.Popen[str]:
        """Start Python with an account and with a umask that takes everything from others."""
        return subprocess.Popen(
            [sys.executable, *map(str, words)],
            user=account,
            group=account,
            extra_groups=[] if account == EVE else [GROUP],
            umask=0o077,
            cwd="/",
            env={
                "PATH": os.environ["PATH"],
                "LANG": "C.UTF-8",
                "HOME": f"/var/tmp/{account}",
                "GPUFARM_STATE_DIR": str(self.state),
                "GPUFARM_INPUT_ACCESS_TOKEN": TOKEN,
            },
            text=True,
            **options,
        )

    def run(self, account: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run `gpufarm` with an account."""
        pipe = subprocess.PIPE
        with self.start(account, "-m", "gpufarm", *words, stdout=pipe, stderr=pipe) as process:
            output, error = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, output, error)

    def deploy(self, account: str, name: str) -> subprocess.CompletedProcess[str]:
        pool = ("--pool", self.root / "hosts.yml")
        return self.run(account, "deploy", self.root / "quiet.yaml", *pool, "--name", name)


@pytest.fixture(scope="module")
def accounts() -> Iterator[None]:
    closed = [
        str(folder) for folder in Path(sys.executable).parents if not folder.stat().st_mode & stat.S_IXOTH
    ]
    if closed:
        pytest.skip(f"other accounts cannot enter {closed[-1]}, where Python is")
    subprocess.run(["groupadd", GROUP], check=True)
    made = []
    try:
        for account, groups in ((ADA, ["-G", GROUP]), (BOB, ["-G", GROUP]), (EVE, [])):
            home = ["--create-home", "--base-dir", "/var/tmp", *groups]
            subprocess.run(["useradd", *home, account], check=True)
            made.append(account)
        yield
    finally:
        for account in made:
            subprocess.run(["userdel", "--remove", account], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["groupdel", GROUP], check=False)


@pytest.fixture
def office(accounts: None) -> Iterator[Office]:
    made = Office(Path(tempfile.mkdtemp(prefix=f"{GROUP}-", dir="/var/tmp")))
    made.root.chmod(0o755)
    here = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}
    pool = {"all": {"hosts": {"one": here, "two": here | {"ansible_host": "localhost"}}}}
    files = {
        "quiet.yaml": TYPES,
        "configure.yml": CONFIGURE,
        "delete.yml": DELETE,
        "hosts.yml": yaml.safe_dump(pool),
    }
    for name, text in files.items():
        (made.root / name).write_text(text)
        (made.root / name).chmod(0o644)
    made.state.mkdir()
    shutil.chown(made.state, group=GROUP)
    made.state.chmod(0o2770)
    try:
        yield made
    finally:
        shutil.rmtree(made.root)


def modes(office: Office) -> dict[str, str]:
    """Owner's group and mode of everything in the state folder."""
    found = {}
    for path in sorted(office.state.rglob("*")):
        status = path.lstat()
        group = grp.getgrgid(status.st_gid).gr_name
        found[str(path.relative_to(office.state))] = f"{group} {stat.S_IMODE(status.st_mode):o}"
    return found


def shown(answer: subprocess.CompletedProcess[str]) -> Any:
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_two_operators_share_a_folder(office: Office) -> None:
    made = office.deploy(ADA, "hers")
    assert made.returncode == 0, made.stderr
    for name, found in modes(office).items():
        expected = "2770" if "." not in name and name != "key" else "640" if name == "key" else "660"
        assert found == f"{GROUP} {expected}", name

    (listed,) = shown(office.run(BOB, "list", "--json"))
    assert (listed["operator"], listed["outputs"]) == (ADA, {"account": ADA})
    assert office.run(BOB, "history", "hers").returncode == 0
    refused = office.run(BOB, "plan", office.root / "quiet.yaml", "--name", "third", "--json")
    assert refused.returncode == 2 and "--pool is missing" in refused.stderr

    his = office.deploy(BOB, "his")
    assert his.returncode == 0, his.stderr
    places = {
        entry["name"]: entry["machines"]["server"]["host"]
        for entry in shown(office.run(ADA, "list", "--json"))
    }
    assert places == {"hers": "one", "his": "two"}

    # with the secrets, which the key seals, and in the log that the other one has begun
    again = office.run(BOB, "deploy", office.root / "quiet.yaml", "--name", "hers", "--json")
    found = shown(again)["deployment"]
    assert (found["operator"], found["outputs"]) == (ADA, {"account": BOB})
    assert TOKEN not in Path(found["log"]).read_text()
    who = [entry["who"].partition("@")[0] for entry in shown(office.run(ADA, "history", "hers", "--json"))]
    assert who == [ADA, BOB]
    assert office.run(ADA, "undeploy", "his", "--yes").returncode == 0
    assert office.run(BOB, "undeploy", "hers", "--yes").returncode == 0
    assert shown(office.run(ADA, "list", "--json")) == []


def test_a_run_of_another_account_that_was_killed(office: Office) -> None:
    assert office.deploy(ADA, "hers").returncode == 0
    leftover = office.state / "runs" / "hers"
    private = Path(tempfile.mkdtemp(prefix="gpufarm-", dir="/dev/shm"))
    shutil.chown(private, ADA)
    leftover.symlink_to(private)
    (office.state / ".hers.json.new").write_text("half of it")
    (office.state / ".hers.json.new").chmod(0o600)
    try:
        program = ("-c", "import time; time.sleep(600)", f"{leftover}/playbook.yml")
        sleeper = office.start(ADA, *program)
        try:
            refused = office.run(BOB, "deploy", office.root / "quiet.yaml", "--name", "hers")
            sentence = f"process {sleeper.pid} of a run that was killed is still there and belongs to another"
            assert refused.returncode == 1 and sentence in refused.stderr
        finally:
            sleeper.kill()
            sleeper.wait()
        mended = office.run(BOB, "resume", "hers")
        assert mended.returncode == 0, mended.stderr
        assert not leftover.is_symlink()
    finally:
        shutil.rmtree(private, ignore_errors=True)


def test_a_folder_that_is_not_shared_is_private(office: Office) -> None:
    office.state.chmod(0o755)
    shutil.chown(office.state, ADA, ADA)
    assert office.deploy(ADA, "hers").returncode == 0
    for name, found in modes(office).items():
        assert name == "runs/hers" or int(found.split()[1], 8) & 0o077 == 0, name
    for account in (BOB, EVE):
        for words in (("list",), ("show", "hers"), ("plan", office.root / "quiet.yaml", "--name", "x")):
            refused = office.run(account, *words)
            assert refused.returncode == 1 and "Permission denied" in refused.stderr, words
            assert "share the state folder with a group" in refused.stderr, words
        assert office.deploy(account, "hers").returncode == 1


def test_others_get_nothing(office: Office) -> None:
    assert office.deploy(ADA, "hers").returncode == 0
    for words in (("list",), ("show", "hers"), ("history", "hers")):
        refused = office.run(EVE, *words)
        assert refused.returncode != 0 and "Permission denied" in refused.stderr, words
        assert "Traceback" not in refused.stderr and TOKEN not in refused.stdout
