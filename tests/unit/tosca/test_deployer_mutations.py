"""Templates and inputs that are changed at random are refused in a sentence, or make sense to others as well.

No traceback and no loop without end. Accepted templates are verified by independent programs:
tosca-parser has accepted it too; two plans are equal; Ansible reads the playbook back as it was meant, with
nothing in it to evaluate; Ansible's own validator finds no fault in the variables by the argument specs of
the roles; a deployment with a fake Ansible ends well and can be taken away.

`make fuzz` tries more: FUZZ cases, from FUZZ_SEED. A failure prints the seed and the number of its case.
"""

from __future__ import annotations

import functools
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mutations
import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, is_trusted_as_template
from deployer_site import Answer, Site
from deployer_stub import StubSite, install
from gpufarm import checks, document, run, waves
from gpufarm.plan import Step
from gpufarm.recorded import Claim
from gpufarm.run import Done, Listener, Outcome

COUNT = int(os.environ.get("FUZZ", "1000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
PARTS = 20
# Seconds of the processor for one case, as a busy machine must fail none.
PATIENCE = 60
ROLES = mutations.ROOT / "roles"


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    """Machines that are none, on which every operation returns what its type declares."""
    monkeypatch.setattr(run, "run", applied)
    monkeypatch.setattr(checks, "check", checked)
    monkeypatch.setattr(document, "read", remembering(document.read))
    return install(monkeypatch, site, hosts=20)


def remembering(read: Any) -> Any:
    """Read the files of the collection once only."""
    known: dict[Any, Any] = {}

    def reading(path: Path, report: Any = None, folders: tuple[Path, ...] = (), text: str = "") -> Any:
        if not path.is_relative_to(mutations.ROOT / "tosca" / "types"):
            return read(path, report, folders, text)
        key = (path, folders)
        if key not in known:
            known[key] = read(path, report, folders)
        return known[key]

    return reading


def checked(steps: list[Step], claim: Claim, _pool: Path) -> list[str]:
    """Write the playbook of the checks, as no role can run here."""
    checks.compile_checks(steps, claim)
    return []


def applied(
    steps: list[Step],
    claim: Claim,
    _pool: Path,
    folder: Path,
    log: Path,
    listener: Listener,
    *_a: Any,
    **_k: Any,
) -> Outcome:
    """Do in Ansible's place what it does: read the playbook, and tell of every step."""
    plays = waves.plays(steps)
    path = folder / "playbook.yml"
    path.write_text(run.compile_playbook(plays, claim), encoding="utf-8")
    log.write_text("")
    comparison, *contents = DataLoader().load_from_file(str(path), trusted_as_template=True)
    assert {*evaluated(comparison)} == {"{{ gpufarm_roles[inventory_hostname] }}"}
    for play, content in zip(plays, contents, strict=True):
        (step, *_others) = play.steps.values()
        assert content["vars"]["gpufarm_values"] == {host: one.variables for host, one in play.steps.items()}
        own = {f"{{{{ gpufarm_values[inventory_hostname][{name!r}] }}}}" for name in step.variables}
        assert set(evaluated(content)) <= own, set(evaluated(content)) - own
    outcome = Outcome("successful")
    for step in steps:
        fits(step)
        listener.started(step)
        listener.finished(step, Done(dict.fromkeys(step.outputs, "returned"), ["Write"]))
        outcome.done.add(step.name)
    return outcome


def evaluated(value: Any) -> Iterator[str]:
    """The texts that Ansible would take for templates."""
    if isinstance(value, str):
        if is_trusted_as_template(value) and Templar(DataLoader()).is_possibly_template(value):
            yield value
    elif isinstance(value, dict | list):
        for item in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from evaluated(item)


@functools.cache
def options(role: str) -> dict[str, Any]:
    specs = yaml.safe_load((ROLES / role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    return without_required(specs["main"]["options"])


def without_required(known: dict[str, Any]) -> dict[str, Any]:
    """Return the options without their requirements: the inventory may have values that a template lacks."""
    kept = ("type", "elements", "choices", "default")
    return {
        name: {key: value for key, value in option.items() if key in kept}
        | ({"options": without_required(option["options"])} if "options" in option else {})
        for name, option in known.items()
    }


def fits(step: Step) -> None:
    """Assert that the role takes the variables, by Ansible's own validator."""
    role = step.playbook.parent.name
    ours = step.playbook.is_relative_to(mutations.ROOT / "tosca" / "playbooks")
    if not ours or not (ROLES / role).is_dir():
        return
    known = options(role)
    told = ArgumentSpecValidator(known).validate({k: v for k, v in step.variables.items() if k in known})
    assert not told.error_messages, (step.name, told.error_messages)


def refused(answer: Answer) -> bool:
    """Whether a command has said no, in sentences that a person can read."""
    assert answer.status in (0, 2, 3), answer
    if answer.status:
        assert answer.error.startswith("gpufarm: ") and "Traceback" not in answer.error, answer
        assert all(len(line) < 2000 for line in answer.error.splitlines()), answer
    return answer.status != 0


def attempt(farm: StubSite, case: mutations.Case) -> bool:
    """Try one case, and tell whether it was accepted."""
    path, given = farm.site.root / "template.yaml", farm.site.root / "inputs.yaml"
    texts = case.texts()
    path.write_text(texts[0], encoding="utf-8")
    given.write_text(texts[1], encoding="utf-8")
    asked = (path, "--inputs", given)
    if refused(farm.gpufarm("validate", *asked)):
        return False
    pool = (*asked, "--pool", farm.site.pool, "--name", "fuzz")
    plans = [farm.gpufarm("plan", *pool, "--json") for _twice in range(2)]
    assert plans[0] == plans[1]
    if refused(plans[0]):
        return False
    json.loads(plans[0].output)
    answer = farm.gpufarm("deploy", *pool)
    assert answer.status == 0, answer
    json.loads(farm.gpufarm("outputs", "fuzz", "--json").output)
    assert farm.gpufarm("undeploy", "fuzz", "--yes").status == 0
    return True


def give_up(_number: int, _frame: Any) -> None:
    raise AssertionError(f"the case took {PATIENCE} seconds of the processor")


@pytest.mark.parametrize("name", sorted(mutations.SOURCES))
def test_what_is_not_changed_is_accepted(farm: StubSite, name: str) -> None:
    assert attempt(farm, mutations.original(name))


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_ends_in_a_traceback_and_nothing_makes_no_sense(farm: StubSite, part: int) -> None:
    before = signal.signal(signal.SIGPROF, give_up)
    try:
        for number in range(part, COUNT, PARTS):
            case = mutations.case(SEED, number)
            signal.setitimer(signal.ITIMER_PROF, PATIENCE)
            try:
                attempt(farm, case)
            except BaseException:
                texts = "\n--- inputs\n".join(text[:5000] for text in case.texts())
                print(f"FUZZ_SEED={SEED}, case {number}, made from {case.name}:\n{texts}")
                raise
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    finally:
        signal.signal(signal.SIGPROF, before)


def test_a_seed_gives_the_same_cases_again() -> None:
    assert mutations.case(3, 4).texts() == mutations.case(3, 4).texts()
    assert mutations.case(3, 4) != mutations.case(3, 5)
