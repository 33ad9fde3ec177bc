# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploys, updates, scales and undeploys: brings preparation, execution and state together."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpufarm import accounts, ansible, checks, execute, facts, history, prepare, reasons
from gpufarm.errors import BadInput, GpufarmError, Locked, NoEntry, NoMachine
from gpufarm.functions import Scope, Unknown
from gpufarm.instances import multiply, parsed
from gpufarm.plan import Step
from gpufarm.pool import Machine, Pool
from gpufarm.prepare import Prepared, Removal, Request, Survey
from gpufarm.recorded import Claim
from gpufarm.run import Done, Listener
from gpufarm.secrecy import HIDDEN, holds_secret, refers, veiled
from gpufarm.state import Deployment, Store
from gpufarm.topology import Topology


@dataclass
class Result:
    """How a run ended that went well.

    Attributes:
        deployment: as it is remembered now.
        applied: what each step did that was run.
        log: file with Ansible's output; None if Ansible was not needed.
        records: of each machine, as the module machine_record_info tells them; of a check only.
        facts: what the machine of each Compute node has; none if no machine was looked at.
    """

    deployment: Deployment
    applied: dict[str, Done] = field(default_factory=dict)
    log: Path | None = None
    records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    facts: Mapping[str, Machine] = field(default_factory=dict)


class _Recorder:
    """Writes down every step as it is done, so that a run that is killed can be continued."""

    def __init__(self, store: Store, deployment: Deployment, listener: Listener) -> None:
        self.store = store
        self.deployment = deployment
        self.listener = listener
        self.applied: dict[str, Done] = {}
        self.halfway: set[str] = set()  # names of the steps that have begun and are not over

    def started(self, step: Step) -> None:
        self.halfway.add(step.name)
        self.listener.started(step)

    def task(self, step: Step, name: str) -> None:
        self.listener.task(step, name)

    def failed(self, step: Step, failure: str, done: Done) -> None:
        self.over(step, done)
        self.listener.failed(step, failure, done)

    def finished(self, step: Step, done: Done) -> None:
        self.over(step, done)
        self.applied[step.name] = done
        self.remember(step, done)
        self.listener.finished(step, done)

    def over(self, step: Step, done: Done) -> None:
        self.halfway.discard(step.name)
        self.deployment.settle(step.name, changed=bool(done.tasks))

    def remember(self, step: Step, done: Done) -> None:
        self.deployment.steps[step.name] = {
            **reasons.remembered(self.store.digest, step),
            "attributes": done.attributes,
            "changed": len(done.tasks),
            "made": self.deployment.steps[step.name]["made"],
        }
        self.store.save(self.deployment)


class _Observer(_Recorder):
    """Writes nothing down: for runs that only say what would change."""

    def remember(self, step: Step, done: Done) -> None:
        pass


class _Forgetter(_Recorder):
    """Strikes out the steps of a node when the node is taken away."""

    def __init__(
        self, store: Store, deployment: Deployment, listener: Listener, steps: Iterable[Step]
    ) -> None:
        super().__init__(store, deployment, listener)
        self.left = Counter(step.node for step in steps)

    def remember(self, step: Step, done: Done) -> None:
        self.left[step.node] -= 1
        if self.left[step.node]:
            return  # it has been stopped, but is still there
        for name in [name for name in self.deployment.steps if name.rpartition(".")[0] == step.node]:
            del self.deployment.steps[name]
        self.store.save(self.deployment)

    def free(self, steps: Iterable[Step], keep: Collection[str] = ()) -> None:
        """Give machines back at the end of a run, also of one that has failed elsewhere.

        Args:
            steps: those that there were.
            keep: Compute nodes that stay.
        """
        self.deployment.free({step.host for step in steps if step.name not in self.applied}, keep)
        self.store.save(self.deployment)


def choose(
    store: Store,
    request: Request,
    previous: Deployment | None,
    reserve: Callable[[Prepared], None] | None = None,
    *,
    check: Callable[[Prepared], None] = lambda _chosen: None,
    say: Callable[[str], None] = lambda _text: None,
) -> tuple[Prepared, Pool]:
    """Prepare a request.

    Nobody is turned away because of what a machine had some minutes ago: then all are asked again.

    Args:
        store: the state.
        request: what the user asks for.
        previous: the deployment as it is remembered, if any.
        reserve: writes down which machines are taken, while no other run chooses any; None to change nothing.
        check: refuses what cannot work on these machines, before they are reserved.
        say: told about each machine that cannot be reached.

    Returns:
        The planned changes, and the facts of the pool.

    Raises:
        GpufarmError: in any of its kinds.
    """
    refresh = False
    told: set[str] = set()
    while True:
        found = prepare.survey(store, request, previous, refresh=refresh)
        for host, why in found.pool.silent.items():
            if host not in told:
                say(f"{host} cannot be reached ({why})")
        told |= found.pool.silent.keys()
        try:
            return _checked(store, found, reserve, check), found.pool
        except NoMachine:
            if refresh or not found.pool.remembered:
                raise
            refresh = True


def _checked(
    store: Store, found: Survey, reserve: Callable[[Prepared], None] | None, check: Callable[[Prepared], None]
) -> Prepared:
    """Choose machines that are still free after they were checked."""
    checked: dict[str, dict[str, str]] | None = None
    while True:
        chosen = prepare.choose(store, found)
        if chosen.machines != checked:
            check(chosen)
            checked = chosen.machines
        with store.reserving() if reserve else contextlib.nullcontext():
            chosen = prepare.choose(store, found)
            if chosen.machines == checked:
                if reserve:
                    reserve(chosen)
                return chosen


def _returned(topology: Topology, step: Step, attributes: dict[str, Any]) -> None:
    """Refuse an operation that does not return exactly what its type declares."""
    missing = sorted(set(step.outputs) - set(attributes))
    if missing:
        raise GpufarmError(f"{step.name}: {step.playbook} returned no {', '.join(missing)} with set_stats")
    unknown = sorted(set(attributes) - set(step.outputs))
    if unknown:
        raise GpufarmError(
            f"{step.name}: {step.playbook} returned {', '.join(unknown)}, which {topology.path} lacks"
        )


def evaluate_outputs(scope: Scope, deployment: Deployment) -> dict[str, Any]:
    """Compute the outputs of a template.

    Args:
        scope: the template, with its instances, and its inputs.
        deployment: has what the operations returned.

    Returns:
        The value of each output.

    Raises:
        GpufarmError: an output refers to an attribute that no operation has returned.
    """
    base = scope.on({node: machine["address"] for node, machine in deployment.machines.items()})
    attributes = {node: dict(values) for node, values in base.attributes.items()}
    for node in scope.topology.nodes.values():
        for operation_name, operation in node.operations.items():
            returned = deployment.steps.get(f"{node.name}.{operation_name}", {}).get("attributes", {})
            for key, attribute in operation.outputs.items():
                if key in returned:
                    attributes.setdefault(node.name, {})[attribute] = returned[key]
                elif node.switch and base.property(node, node.switch) is False:
                    attributes.setdefault(node.name, {})[attribute] = ""  # as its role returns it
    known = replace(base, attributes=attributes)
    found: dict[str, Any] = {}
    for name, expression in scope.topology.outputs.items():
        if refers(expression) or any(
            scope.topology.inputs[used].secret for used in known.inputs_of(expression)
        ):
            found[name] = HIDDEN  # outputs are neither sealed nor masked
            continue
        try:
            found[name] = veiled(known.evaluate(expression))
        except NoEntry:
            found[name] = None  # such as the first of no users
        except Unknown as error:
            raise GpufarmError(f"output {name}: {error}; no operation returned it") from error
    return found


def _carry_out(
    store: Store,
    recorder: _Recorder,
    steps: list[Step],
    inventory: Path,
    entry: history.Entry | None,
    *,
    take_over: bool = False,
) -> execute.Report:
    """Run steps and say how it ended: in state and history, if there is an entry for it, and by exception."""
    deployment = recorder.deployment
    report = execute.carry_out(
        store, deployment, steps, inventory, recorder, check=entry is None, take_over=take_over
    )
    if entry is not None:
        deployment.end(recorder.halfway)
        deployment.log = entry.log = str(report.log)
        entry.done += len(report.done)
        if report.canceled or report.failed or report.failure:
            deployment.status = "interrupted" if report.canceled else "failed"
            deployment.failure = report.sentence()
        store.save(deployment)
    report.conclude()
    return report


def deploy(
    store: Store,
    request: Request,
    listener: Listener,
    *,
    what: str = "deploy",
    everything: bool = True,
    say: Callable[[str], None] = lambda _text: None,
) -> Result:
    """Bring machines in line with a template.

    Args:
        store: the state.
        request: what the user asks for.
        listener: told how it goes.
        what: the command, for the history.
        everything: apply also what has not changed since, which repairs what was changed by hand. It is not
            done after a run that was interrupted or failed: that one is continued.
        say: told what a person should know before anything is changed.

    Returns:
        The deployment with its outputs.

    Raises:
        GpufarmError: in any of its kinds; the state tells the same.
    """
    with store.locked(request.name):
        previous = store.load(request.name)
        everything = everything and (previous is None or previous.status == "deployed")
        if previous is not None and previous.status == "deployed" and not everything:
            quick = prepare.unchanged(store, request, previous)
            if quick and not quick.leaving.to_run() and not any(why.needed for why in quick.reasons.values()):
                return Result(previous)
        deployment = previous or Deployment(
            request.name,
            str(request.template.path),
            "",
            operator=accounts.operator(),
            description=request.template.description,
        )
        todo: list[Step] = []

        def check(chosen: Prepared) -> None:
            may_leave(previous, chosen)
            doing = _todo(chosen, everything=everything)
            new = [step for step in doing if chosen.reasons[step.name].needed]
            for note in checks.check(new, Claim(deployment.owner, request.take_over), chosen.pool):
                say(note)

        def reserve(chosen: Prepared) -> None:
            todo.extend(_todo(chosen, everything=everything))
            _begin(store, request, deployment, chosen, todo)

        found, pool = choose(store, request, previous, reserve, check=check, say=say)
        leaving = found.leaving.to_run()
        with history.recorded(store, request.name, what) as entry:
            recorder = _Recorder(store, deployment, listener)
            try:
                if todo:
                    _carry_out(store, recorder, todo, found.pool, entry, take_over=request.take_over)
                if leaving:
                    forgetter = _Forgetter(store, deployment, listener, leaving)
                    try:
                        _carry_out(store, forgetter, leaving, found.pool, entry)
                    finally:
                        forgetter.free(leaving, keep=found.machines)
            finally:
                changed = {step.host for step in leaving} | _changed(todo, recorder.applied)
                with contextlib.suppress(GpufarmError):  # then they are simply asked again
                    facts.remember(store, pool, changed=changed)
            finished = _finish(store, request, found, deployment)
            return Result(finished, recorder.applied, Path(entry.log), facts=found.facts)


def may_leave(previous: Deployment | None, chosen: Prepared) -> None:
    """Check that all instances that are no longer wanted can be taken away, or are given up.

    Args:
        previous: the deployment as it is remembered, if any.
        chosen: the planned changes.

    Raises:
        BadInput: the inventory lacks the machine of one of them.
    """
    left = Counter(parsed(node)[0] for node in chosen.machines)
    left_over = chosen.leaving.left_over(previous, chosen.pool, left) if previous else ""
    if left_over:
        raise BadInput(left_over)


def _changed(steps: Iterable[Step], applied: Mapping[str, Done]) -> set[str]:
    """The machines on which a step changed something, or may have done so before it failed."""
    return {step.host for step in steps if step.name not in applied or applied[step.name].tasks}


def _todo(chosen: Prepared, *, everything: bool) -> list[Step]:
    """The steps that are to be run."""
    return [step for step in chosen.steps if everything or chosen.reasons[step.name].needed]


def _begin(
    store: Store, request: Request, deployment: Deployment, chosen: Prepared, todo: Iterable[Step]
) -> None:
    """Note what is about to be done and on which machines."""
    inputs = request.template.inputs
    secret = {name for name, value in chosen.given.items() if inputs[name].secret or holds_secret(value)}
    deployment.status, deployment.failure, deployment.pool = "deploying", "", str(chosen.pool)
    deployment.inputs = {key: value for key, value in chosen.given.items() if key not in secret}
    deployment.secrets = {key: value for key, value in chosen.given.items() if key in secret}
    deployment.instances = chosen.instances
    deployment.defaults = chosen.former
    deployment.template, deployment.template_text = str(request.template.path), request.template.text
    if request.description is not None:
        deployment.description = request.description
    if request.group is not None:
        deployment.group = request.group
    # machines that are to be given up stay reserved until that is done
    deployment.machines = {**deployment.machines, **chosen.machines}
    for node in chosen.machines:
        deployment.freed.pop(node, None)
    todo = list(todo)
    deployment.begin(step.name for step in todo)
    for step in todo:
        entry = deployment.steps[step.name]
        if not entry.get("made", True) or "named" not in entry:
            entry["named"] = reasons.names(store.digest, step)
    store.save(deployment)


def _finish(store: Store, request: Request, found: Prepared, deployment: Deployment) -> Deployment:
    """Give up machines that are no longer needed, and compute the outputs."""
    deployment.machines, deployment.freed = {node: deployment.machines[node] for node in found.machines}, {}
    nodes = found.scope.topology.nodes
    deployment.steps = {
        name: done for name, done in deployment.steps.items() if name.rpartition(".")[0] in nodes
    }
    try:
        for step in found.steps:
            _returned(request.template, step, deployment.steps[step.name]["attributes"])
        deployment.outputs = evaluate_outputs(found.scope, deployment)
    except GpufarmError as error:
        deployment.status, deployment.failure = "failed", error.message
        store.save(deployment)
        raise
    deployment.status = "deployed"
    store.save(deployment)
    return deployment


def check(store: Store, request: Request, listener: Listener) -> Result:
    """Say what deploying would change on the machines; changes nothing and remembers nothing.

    Args:
        store: the state.
        request: what the user asks for.
        listener: told how it goes.

    Returns:
        Changes of each step.

    Raises:
        GpufarmError: in any of its kinds.
    """
    with store.locked(request.name):
        previous = store.load(request.name)
        found, _pool = choose(store, request, previous)
        deployment = previous or Deployment(request.name, str(request.template.path), "")
        observer = _Observer(store, deployment, listener)
        report = _carry_out(store, observer, found.steps, found.pool, None)
        return Result(deployment, observer.applied, report.log, report.records)


@dataclass(frozen=True)
class _Undeployment:
    """An undeployment that could be carried out now."""

    deployment: Deployment
    inventory: Path
    removal: Removal


def _undeployment(store: Store, name: str, new_pool: Path | None, forget: Collection[str]) -> _Undeployment:
    deployment = store.load(name)
    if deployment is None:
        raise BadInput(f"there is no deployment {name}; see: gpufarm status")
    request = Request.made(deployment)
    given, values = prepare.remembered(request, deployment)
    inventory = (new_pool or Path(deployment.pool)).resolve()
    known = ansible.inventory(inventory)
    prepare.may_forget(deployment, forget, known, inventory)
    scope = Scope(multiply(request.template, {}), values, files=store.files)
    of_pool = prepare.inherited(deployment, request.template.inputs, known)
    found = prepare.removal(request, deployment, given, scope, of_pool, keep=set())
    return _Undeployment(deployment, inventory, found.within(known, forget))


def removal(store: Store, name: str, new_pool: Path | None, forget: Collection[str] = ()) -> Removal:
    """Tell what undeploying would take away; changes nothing.

    Args:
        store: the state.
        name: of the deployment.
        new_pool: inventory to use instead of that of the deployment.
        forget: machines to give up, which the inventory lacks.

    Returns:
        The steps, and those that are left out.

    Raises:
        BadInput: there is no such deployment, or its template, pool or a machine to give up are wrong.
    """
    return _undeployment(store, name, new_pool, forget).removal


def undeploy(
    store: Store,
    name: str,
    new_pool: Path | None,
    listener: Listener,
    agreed: Callable[[Removal], bool] = lambda _removal: True,
    forget: Collection[str] = (),
) -> Removal:
    """Take away what a deployment has made, in the opposite order, and free its machines.

    Nodes that an earlier attempt has removed are not removed again. A machine is free as soon as a run ends
    that has left nothing to do there.

    Args:
        store: the state.
        name: of the deployment.
        new_pool: inventory to use instead of that of the deployment.
        listener: told how it goes.
        agreed: tells whether a person has agreed to what is taken away.
        forget: machines to give up with all that stands there, which the inventory lacks.

    Returns:
        The steps that were run, and those that were left out or given up.

    Raises:
        GpufarmError: in any of its kinds; the state tells the same.
    """
    with store.locked(name):
        found = _undeployment(store, name, new_pool, forget)
        deployment, inventory, steps = found.deployment, found.inventory, found.removal.to_run()
        if not agreed(found.removal):
            raise Locked(f"deployment {name} was changed meanwhile; look again: gpufarm undeploy {name}")
        left_over = found.removal.left_over(deployment, inventory)
        if left_over and not steps and not found.removal.given_up:
            raise BadInput(left_over)
        what = " ".join(["undeploy", *(f"--forget {host}" for host in forget)])
        with history.recorded(store, name, what) as entry:
            deployment.status, deployment.failure, deployment.pool = "undeploying", "", str(inventory)
            deployment.begin(())
            for done in deployment.steps.values():
                done["digest"] = ""
            given_up = {step.node for step in found.removal.given_up}
            deployment.steps = {
                step: done
                for step, done in deployment.steps.items()
                if step.rpartition(".")[0] not in given_up
            }
            store.save(deployment)
            every = [*steps, *found.removal.waiting, *found.removal.gone]
            forgetter = _Forgetter(store, deployment, listener, every)
            try:
                if steps:
                    _carry_out(store, forgetter, steps, inventory, entry)
            finally:
                forgetter.free(every)
                with contextlib.suppress(GpufarmError):
                    facts.remember(store, Pool(inventory, {}, {}), changed={step.host for step in steps})
            if left_over:
                deployment.status, deployment.failure = "failed", left_over
                store.save(deployment)
                raise GpufarmError(left_over)
            store.remove(name)
        return found.removal
