# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploys and undeploys: brings template, inputs, pool, plan, run and state together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpufarm import ansible, inputs, match, plan, pool, run, template
from gpufarm.errors import BadInput, GpufarmError, Interrupted
from gpufarm.functions import Scope, Unknown
from gpufarm.judge import judge
from gpufarm.library import Library
from gpufarm.match import Wish
from gpufarm.plan import Step
from gpufarm.pool import Machine, Pool
from gpufarm.run import Listener
from gpufarm.state import Deployment, Store
from gpufarm.topology import Topology


@dataclass(frozen=True)
class Request:
    """What the user asks for.

    Attributes:
        template: the template.
        library: it and its imports, as documents.
        pool: the inventory; None for that of the earlier run.
        name: of the deployment.
        given: values of inputs given now.
    """

    template: Topology
    library: Library
    pool: Path | None
    name: str
    given: Mapping[str, Any]


@dataclass(frozen=True)
class Prepared:
    """A request that could be carried out now.

    Attributes:
        pool: the inventory.
        scope: template and values.
        given: values of inputs given now or earlier.
        machines: machine of each Compute node.
        steps: all of them, in order.
    """

    pool: Path
    scope: Scope
    given: dict[str, Any]
    machines: dict[str, Machine]
    steps: list[Step]


def _values(request: Request, previous: Deployment | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values given now or earlier, and those of all inputs, judged."""
    topology = request.template
    earlier = previous.inputs | previous.secrets if previous else {}
    given = {name: value for name, value in earlier.items() if name in topology.inputs} | dict(request.given)
    values = inputs.complete(topology, given, request.library.types["data_types"])
    public = {name: value for name, value in values.items() if not topology.inputs[name].secret}
    judge(request.library, public)
    return given, values


def _same(request: Request, previous: Deployment | None) -> None:
    """Refuse to turn a deployment into another one."""
    if previous is None:
        return
    if Path(previous.template) != request.template.path:
        raise BadInput(
            f"deployment {request.name} was made from {previous.template}; choose another --name, "
            f"or run: gpufarm undeploy {request.name}"
        )
    gone = sorted({name.rpartition(".")[0] for name in previous.steps} - set(request.template.nodes))
    if gone:
        raise BadInput(
            f"the template has no node {', '.join(gone)} any more, but deployment {request.name} has; "
            f"put it back and run: gpufarm undeploy {request.name}"
        )


@dataclass(frozen=True)
class Survey:
    """A valid request and what the pool offers.

    Attributes:
        scope: template and values.
        given: values of inputs given now or earlier.
        wishes: what each Compute node asks for.
        pool: the machines.
        standing: host that each Compute node stands on already.
    """

    scope: Scope
    given: dict[str, Any]
    wishes: dict[str, Wish]
    pool: Pool
    standing: dict[str, str]


def survey(request: Request, previous: Deployment | None) -> Survey:
    """Judge a request and look at the pool; changes nothing.

    Args:
        request: what the user asks for.
        previous: the deployment as it is remembered, if any.

    Returns:
        What is asked for and what there is.

    Raises:
        BadInput: template, inputs or pool are wrong.
    """
    _same(request, previous)
    given, values = _values(request, previous)
    path = request.pool or (Path(previous.pool) if previous else None)
    if path is None:
        raise BadInput("--pool is missing: name the inventory with your machines, such as inventories/mysite")
    scope = Scope(request.template, values)
    machines = [node for node in request.template.nodes.values() if node.is_machine]
    wishes = {node.name: Wish.of(node, scope) for node in machines}
    standing = {node: entry["host"] for node, entry in previous.machines.items()} if previous else {}
    kept = {node: host for node, host in standing.items() if node in wishes}
    # a plan that cannot be compiled is refused before machines are bothered
    plan.steps(scope.on(dict.fromkeys(wishes, "")), dict.fromkeys(wishes, ""), frozenset(given))
    return Survey(scope, given, wishes, pool.look(path), kept)


def choose(found: Survey, held: Mapping[str, str]) -> Prepared:
    """Choose machines and order the steps. Pure.

    Args:
        found: what is asked for and what there is.
        held: deployment that holds each address that is not free.

    Returns:
        Machines and steps.

    Raises:
        NoMachine: the pool does not suffice.
    """
    machines = match.match(found.wishes, found.pool, held, found.standing)
    scope = found.scope.on({node: machine.address for node, machine in machines.items()})
    hosts = {node: machine.host for node, machine in machines.items()}
    steps = plan.steps(scope, hosts, frozenset(found.given))
    return Prepared(found.pool.path.resolve(), scope, found.given, machines, steps)


class _Recorder:
    """Writes down every step as it is done, so that a run that is killed can be continued."""

    def __init__(self, store: Store, deployment: Deployment, listener: Listener) -> None:
        self.store = store
        self.deployment = deployment
        self.listener = listener

    def started(self, step: Step) -> None:
        # until it is done, the step is in no known state, whatever an earlier run made of it
        self.deployment.steps.setdefault(step.name, {"attributes": {}, "changed": 0})["digest"] = ""
        self.store.save(self.deployment)
        self.listener.started(step)

    def task(self, step: Step, name: str) -> None:
        self.listener.task(step, name)

    def finished(self, step: Step, changed: int, attributes: dict[str, Any], seconds: float) -> None:
        self.deployment.steps[step.name] = {
            "digest": fingerprint(self.store, step),
            "attributes": attributes,
            "changed": changed,
        }
        self.store.save(self.deployment)
        self.listener.finished(step, changed, attributes, seconds)


class _Forgetter(_Recorder):
    """Strikes out the steps of a node when the node is taken away."""

    def started(self, step: Step) -> None:
        for name, done in self.deployment.steps.items():
            if name.rpartition(".")[0] == step.node:
                done["digest"] = ""
        self.store.save(self.deployment)
        self.listener.started(step)

    def finished(self, step: Step, changed: int, attributes: dict[str, Any], seconds: float) -> None:
        for name in [name for name in self.deployment.steps if name.rpartition(".")[0] == step.node]:
            del self.deployment.steps[name]
        self.store.save(self.deployment)
        self.listener.finished(step, changed, attributes, seconds)


def fingerprint(store: Store, step: Step) -> str:
    """Fingerprint what a step depends on.

    Args:
        store: has the key.
        step: the step.

    Returns:
        A keyed hash of machine, playbook and variables.
    """
    return store.digest([step.host, str(step.playbook), step.playbook.read_text(), step.variables])


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


def evaluate_outputs(prepared_scope: Scope, deployment: Deployment) -> dict[str, Any]:
    """Compute the outputs of a template.

    Args:
        prepared_scope: the template and its inputs.
        deployment: has what the operations returned.

    Returns:
        The value of each output.

    Raises:
        GpufarmError: an output refers to an attribute that no operation has returned.
    """
    topology = prepared_scope.topology
    addresses = {node: machine["address"] for node, machine in deployment.machines.items()}
    base = prepared_scope.on(addresses)
    attributes = {node: dict(values) for node, values in base.attributes.items()}
    for node in topology.nodes.values():
        for operation_name, operation in node.operations.items():
            returned = deployment.steps.get(f"{node.name}.{operation_name}", {}).get("attributes", {})
            for key, attribute in operation.outputs.items():
                if key in returned:
                    attributes.setdefault(node.name, {})[attribute] = returned[key]
    scope = replace(base, attributes=attributes)
    found = {}
    for name, expression in topology.outputs.items():
        try:
            found[name] = scope.evaluate(expression)
        except Unknown as error:
            raise GpufarmError(f"output {name}: {error}; no operation returned it") from error
    return found


def _carry_out(
    store: Store,
    deployment: Deployment,
    steps: list[Step],
    inventory: Path,
    listener: Listener,
    *,
    check: bool = False,
) -> None:
    """Run steps and say how it ended, in the state (unless checking) and by exception."""
    deployment.log = str(store.log(deployment.name))
    if not check:
        store.save(deployment)
    ansible.end_leftovers(store.run_path(deployment.name))
    with store.run_directory(deployment.name) as directory:
        outcome = run.run(steps, inventory, directory, Path(deployment.log), listener, check=check)
    if outcome.status == "successful":
        return
    deployment.status = "interrupted" if outcome.status == "canceled" else "failed"
    deployment.failure = outcome.failure
    if not check:
        store.save(deployment)
    if outcome.status == "canceled":
        raise Interrupted(f"interrupted; run the same command again to continue (log: {deployment.log})")
    raise GpufarmError(f"{outcome.failure} (log: {deployment.log})")


def deploy(store: Store, request: Request, listener: Listener, *, check: bool = False) -> Deployment:
    """Bring machines in line with a template.

    Steps that an interrupted or failed run has done, with the same variables, are not repeated; after a
    successful run everything is applied again, which repairs what was changed by hand.

    Args:
        store: the state.
        request: what the user asks for.
        listener: told how it goes.
        check: only say what would change; nothing is remembered.

    Returns:
        The deployment with its outputs.

    Raises:
        GpufarmError: in any of its kinds; the state tells the same.
    """
    with store.locked(request.name):
        previous = store.load(request.name)
        found = survey(request, previous)
        with store.reserving():
            prepared = choose(found, store.held(request.name))
            deployment = previous or Deployment(request.name, str(request.template.path), "")
            continues = deployment.status != "deployed"
            deployment.status, deployment.failure, deployment.pool = "deploying", "", str(prepared.pool)
            deployment.inputs = {
                key: value for key, value in prepared.given.items() if not _secret(request, key)
            }
            deployment.secrets = {
                key: value for key, value in prepared.given.items() if _secret(request, key)
            }
            deployment.machines = {
                node: {"host": machine.host, "address": machine.address}
                for node, machine in prepared.machines.items()
            }
            if not check:
                store.save(deployment)
        todo = [
            step
            for step in prepared.steps
            if check
            or not continues
            or deployment.steps.get(step.name, {}).get("digest") != fingerprint(store, step)
        ]
        if check:
            _carry_out(store, deployment, todo, prepared.pool, listener, check=True)
            return deployment
        if todo:
            _carry_out(store, deployment, todo, prepared.pool, _Recorder(store, deployment, listener))
        try:
            for step in prepared.steps:
                _returned(request.template, step, deployment.steps[step.name]["attributes"])
            deployment.outputs = evaluate_outputs(prepared.scope, deployment)
        except GpufarmError as error:
            deployment.status, deployment.failure = "failed", error.message
            store.save(deployment)
            raise
        deployment.status = "deployed"
        store.save(deployment)
        return deployment


def _secret(request: Request, name: str) -> bool:
    return request.template.inputs[name].secret


def undeploy(store: Store, name: str, new_pool: Path | None, listener: Listener) -> None:
    """Take a deployment away, in the opposite order, and free its machines.

    Args:
        store: the state.
        name: of the deployment.
        new_pool: inventory to use instead of that of the deployment.
        listener: told how it goes.

    Raises:
        GpufarmError: in any of its kinds; the state tells the same.
    """
    with store.locked(name):
        deployment = store.load(name)
        if deployment is None:
            raise BadInput(f"there is no deployment {name}; see: gpufarm status")
        library, topology = template.read(Path(deployment.template))
        inventory = (new_pool or Path(deployment.pool)).resolve()
        request = Request(topology, library, inventory, name, {})
        _same(request, deployment)
        given, values = _values(request, deployment)
        known = ansible.inventory(inventory)
        hosts = {node: machine["host"] for node, machine in deployment.machines.items()}
        for node, host in hosts.items():
            if host not in known:
                raise BadInput(
                    f"node {node} stands on {host}, which is not in {inventory}; name another with --pool"
                )
        addresses = {node: machine["address"] for node, machine in deployment.machines.items()}
        scope = Scope(topology, values).on(addresses)
        steps = plan.steps(scope, hosts, frozenset(given), undeploy=True)
        deployment.status, deployment.failure, deployment.pool = "undeploying", "", str(inventory)
        _carry_out(store, deployment, steps, inventory, _Forgetter(store, deployment, listener))
        store.remove(name)
