"""Deploying, as its user sees it: real Ansible on this machine, a test service that writes files."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from deployer_site import DATA, HERE, SERVICE, Site
from gpufarm import collection

from lab.patience import PATIENCE

# looks like a template to Ansible, needs escaping in JSON, and must come out as it went in
TOKEN = 'to{{ 6 * 7 }}k"en'


def wait_for(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def processes_of(site: Site) -> list[str]:
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listing.splitlines() if f"{site.state}/runs/" in line]


def test_a_life(site: Site) -> None:
    """Deploy, look, deploy again, fail, continue, undeploy."""
    first = site.deploy("--input", "text={{ 7 * 6 }}", GPUFARM_INPUT_ACCESS_TOKEN=TOKEN)
    assert first.status == 0, first.error
    assert first.output.splitlines() == ["address: here", f"path: {site.notes}/second", "length: 11"]
    assert site.journal() == ["configure first", "configure second"], "in the order of requirements"
    assert (site.notes / "second").read_text() == "{{ 7 * 6 }} again", "values are never templates"
    assert (site.notes / "first-token").read_text() == TOKEN
    assert "first.configure on here: ok, 1 changed" in first.error

    listed = site.gpufarm("status")
    assert "notes" in listed.output and "deployed" in listed.output and "server: here" in listed.output
    assert json.loads(site.gpufarm("outputs", "notes", "--json").output)["length"] == 11

    again = site.deploy()
    assert again.status == 0
    assert again.error.count("nothing changed") == 2, (
        "inputs given earlier are kept, and nothing is left to do"
    )

    failed = site.deploy("--input", "fails=true")
    assert failed.status == 1
    sentence = (
        'second.configure on here: task "Refuse" failed: The note second was told to fail. Tell it not to'
    )
    assert sentence in failed.error and "Traceback" not in failed.error
    (log,) = [part.rstrip(")\n") for part in failed.error.split("(log: ")[1:]]
    assert "told to fail" in Path(log).read_text()
    status = json.loads(site.gpufarm("status", "notes", "--json").output)
    assert (
        status["status"] == "failed"
        and sentence in status["failure"]
        and status["steps"] == ["first.configure"]
    )
    assert site.gpufarm("outputs", "notes").status == 1

    before = len(site.journal())
    continued = site.deploy("--input", "fails=false")
    assert continued.status == 0
    assert site.journal()[before:] == ["configure second"], "what was done is not repeated"

    gone = site.gpufarm("undeploy", "notes", "--yes")
    assert gone.status == 0, gone.error
    assert site.journal()[-2:] == ["delete second", "delete first"], "in the opposite order"
    assert not (site.notes / "first").exists() and not (site.state / "notes.json").exists()
    assert site.gpufarm("undeploy", "notes", "--yes").status == 2

    everything = [path for path in site.state.rglob("*") if path.is_file()]
    assert everything
    for path in everything:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        content = path.read_text()
        assert TOKEN not in content and json.dumps(TOKEN)[1:-1] not in content, path
        assert "The token is" not in content or "***" in content, "a role that forgets no_log does not leak"


def test_a_string_arrives_as_a_string(site: Site) -> None:
    texts = ("", "535", "true", "null", "a: b", "{{ x }}")
    nodes = {
        f"n{index}": {
            "type": "tosca.nodes.test.Note",
            "properties": {"folder": str(site.notes), "label": "abcdef"[index], "text": text},
            "requirements": [{"host": "server"}],
        }
        for index, text in enumerate(texts)
    }
    content = {
        "tosca_definitions_version": "tosca_simple_yaml_1_3",
        "imports": ["types.yaml"],
        "topology_template": {"node_templates": {"server": {"type": "tosca.nodes.Compute"}, **nodes}},
    }
    (site.root / "types.yaml").write_text((SERVICE.parent / "types.yaml").read_text())
    (site.root / "playbooks").symlink_to(SERVICE.parent / "playbooks")
    (site.root / "strings.yaml").write_text(yaml.safe_dump(content))
    done = site.gpufarm("deploy", site.root / "strings.yaml", "--pool", site.pool)
    assert done.status == 0, done.error
    assert tuple((site.notes / label).read_text() for label in "abcdef") == texts


def test_secrets_are_encrypted_and_reach_the_role(site: Site) -> None:
    secrets = site.root / "secrets.yaml"
    secrets.write_text(f"access_token: {json.dumps(TOKEN)}\nfails: false\n")
    answer = site.deploy("--inputs", secrets)
    assert answer.status == 0, answer.error
    assert (site.notes / "first-token").read_text() == TOKEN
    remembered = site.remembered()
    assert remembered["secrets"].startswith("$ANSIBLE_VAULT") and "access_token" not in remembered["inputs"]
    (site.notes / "first-token").unlink()
    assert site.deploy().status == 0
    assert (site.notes / "first-token").read_text() == TOKEN, "remembered for the next run"
    shown = site.gpufarm("plan", SERVICE, "--json").output
    assert TOKEN not in shown and json.loads(shown)["steps"][0]["variables"]["access_token"] == "(secret)"


def test_check_changes_nothing(site: Site) -> None:
    answer = site.deploy("--check")
    assert answer.status == 0, answer.error
    assert "first.configure on here: ok, 1 changed" in answer.error
    assert list(site.notes.iterdir()) == [] and not (site.state / "notes.json").exists()


def test_two_at_once_then_interrupted_then_killed(site: Site) -> None:
    run = site.start("--input", "seconds=600")
    wait_for(lambda: site.journal() == ["configure first", "configure second"])
    other = site.deploy()
    assert other.status == 4 and "is being changed by another run" in other.error
    assert "deploying" in site.gpufarm("status", "notes").output

    run.send_signal(signal.SIGINT)
    _output, error = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130 and "run the same command again" in error and "Traceback" not in error
    assert processes_of(site) == []
    assert "notes: interrupted" in site.gpufarm("status", "notes").output

    run = site.start()
    wait_for(lambda: site.journal()[2:] == ["configure second"])
    run.kill()
    run.communicate()
    assert "notes: interrupted" in site.gpufarm("status", "notes").output
    continued = site.deploy("--input", "seconds=0")
    assert continued.status == 0, continued.error
    assert site.journal()[3:] == ["configure second"], "only what was not done"
    assert processes_of(site) == [], "Ansible survives its caller; the next run ends it"
    assert list((site.state / "runs").iterdir()) == []


def test_told_to_end(site: Site) -> None:
    run = site.start("--input", "seconds=600")
    wait_for(lambda: len(site.journal()) == 2)
    run.send_signal(signal.SIGTERM)
    _output, error = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130 and "run the same command again" in error and "Traceback" not in error
    assert processes_of(site) == [] and list((site.state / "runs").iterdir()) == []
    assert "notes: interrupted" in site.gpufarm("status", "notes").output


def test_a_machine_belongs_to_one_deployment(site: Site) -> None:
    site.machines(here=HERE, silent={"ansible_host": "127.0.0.1", "ansible_port": 1})
    assert site.deploy().status == 0
    other = site.deploy("--name", "others")
    assert other.status == 3
    assert "here is held by deployment notes" in other.error
    assert "silent cannot be reached (connect to host 127.0.0.1 port 1: Connection refused)" in other.error
    assert not (site.state / "others.json").exists()


def test_two_at_the_same_time_want_the_last_machine(site: Site) -> None:
    runs = {name: site.start("--name", name) for name in ("one", "two")}
    errors = {name: run.communicate(timeout=PATIENCE)[1] for name, run in runs.items()}
    assert sorted(run.returncode for run in runs.values()) == [0, 3], errors
    (loser,) = (name for name, run in runs.items() if run.returncode == 3)
    (winner,) = runs.keys() - {loser}
    assert f"here is held by deployment {winner}" in errors[loser]
    assert not (site.state / f"{loser}.json").exists()


def test_operations_return_exactly_what_the_type_declares(site: Site, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    (copy / "playbooks").mkdir(parents=True)
    for name in ("service.yaml", "types.yaml", "playbooks/configure.yml", "playbooks/delete.yml"):
        (copy / name).write_text((SERVICE.parent / name).read_text())
    playbook = copy / "playbooks" / "configure.yml"
    playbook.write_text(playbook.read_text().replace("          length:", "          size:"))
    arguments = ("deploy", copy / "service.yaml", "--pool", site.pool, "--input", f"folder={site.notes}")
    answer = site.gpufarm(*arguments)
    assert answer.status == 1 and "returned no length with set_stats" in answer.error
    playbook.write_text("---\n- name: Broken\n  hosts: all\n  tasks:\n    - no.such.module:\n")
    answer = site.gpufarm(*arguments)
    assert answer.status == 1 and "no.such.module" in answer.error and answer.error.count("\n") <= 2


def test_what_needs_no_machine_runs_here(site: Site) -> None:
    """An app of a cluster that is there already: no pool, no machine, no reservation."""
    template = DATA / "app.yaml"
    shown = site.gpufarm("plan", template, "--input", f"folder={site.notes}", "--json")
    assert shown.status == 0, shown.error
    (step,) = json.loads(shown.output)["steps"]
    assert step["host"] == "localhost" and json.loads(shown.output)["machines"] == {}
    done = site.gpufarm("deploy", template, "--input", f"folder={site.notes}")
    assert done.status == 0, done.error
    assert done.output == f"path: {site.notes}/app\n" and site.journal() == ["configure app"]
    assert "nothing to do" in site.gpufarm("update", "app").error
    assert site.gpufarm("deploy", template, "--pool", site.pool, "--name", "two").status == 2, (
        "folder is needed"
    )
    other = site.gpufarm(
        "deploy", template, "--pool", site.pool, "--name", "two", "--input", f"folder={site.notes}"
    )
    assert other.status == 0, other.error
    assert site.gpufarm("undeploy", "app", "--yes").status == 0 and site.journal()[-1].startswith("delete")
    assert site.gpufarm("undeploy", "two", "--yes").status == 0


def test_a_template_of_the_collection_survives_the_folder_of_a_release(site: Site) -> None:
    """Each release of a service has a folder of its own, which is removed when nobody uses it any more."""

    def age() -> None:
        old = Path("/opt/release-1/ansible_collections/gpufarm/cluster")
        state = site.remembered() | {"template": str(old / SERVICE.relative_to(collection.root()))}
        (site.state / "notes.json").write_text(json.dumps(state))

    assert site.deploy("--input", "fails=true").status == 1
    age()
    continued = site.deploy("--input", "fails=false")
    assert continued.status == 0, continued.error
    assert site.remembered()["template"] == str(SERVICE)
    age()
    assert "(missing)" not in site.gpufarm("status", "notes").output
    updated = site.gpufarm("update", "notes", "--input", "text=new")
    assert updated.status == 0, updated.error
    age()
    removed = site.gpufarm("undeploy", "notes", "--yes")
    assert removed.status == 0, removed.error
