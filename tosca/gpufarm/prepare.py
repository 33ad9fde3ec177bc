# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns a request into what would be done: values, machines, steps with their reasons. Changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpufarm import (
    collection,
    evaluated,
    facts,
    former,
    inputs,
    instances,
    match,
    plan,
    reasons,
    recorded,
    template,
    waves,
)
from gpufarm.catalogue import Catalogue
from gpufarm.conformance import check_template
from gpufarm.errors import BadInput, BadTemplate
from gpufarm.functions import Scope
from gpufarm.instances import multiply, parsed
from gpufarm.library import Library
from gpufarm.match import MachineRequest
from gpufarm.plan import Inherited, Step
from gpufarm.pool import Machine, Pool
from gpufarm.problems import near
from gpufarm.reasons import Reason
from gpufarm.state import Deployment, Store
from gpufarm.topology import CONTROLLER, DEPLOY, Topology

# For templates that ask for no machine.
NO_POOL = Path(__file__).with_name("controller.yml")


@dataclass(frozen=True)
class Request:
    """Request of the user.

    Attributes:
        template: the template.
        library: it and its imports, as documents.
        pool: the inventory; None for that of the earlier run.
        name: of the deployment.
        given: values of inputs given now.
        instances: numbers of instances of machines, chosen now.
        refresh: whether to ask machines again that have been asked lately.
        description: purpose of the deployment; None to keep it, or else take the template's.
        group: the people that it is for; None to keep it.
        take_over: whether roles may replace what was made for others with other settings.
        forget: machines to give up with the instances that stand there, which the inventory lacks.
    """

    template: Topology
    library: Library
    pool: Path | None
    name: str
    given: Mapping[str, Any]
    instances: Mapping[str, int] = field(default_factory=dict)
    refresh: bool = False
    description: str | None = None
    group: str | None = None
    take_over: bool = False
    forget: Collection[str] = ()

    @classmethod
    def again(cls, deployment: Deployment, pool: Path | None = None) -> Request:
        """Ask for what a deployment is already.

        Args:
            deployment: as it is remembered.
            pool: inventory to use instead of the remembered one.

        Returns:
            The request.
        """
        library, topology = template.read(collection.here(Path(deployment.template)))
        return cls(topology, library, pool, deployment.name, {})

    @classmethod
    def made(cls, deployment: Deployment) -> Request:
        """Describe a deployment as it was made, so that it can be taken away.

        The remembered text has the names and defaults of what is on the machines. The file may have been
        changed or removed since. It is read only if the text does not fit the types of this release.

        Args:
            deployment: as it is remembered.

        Returns:
            The request.

        Raises:
            BadInput: neither the text nor the file can be used.
        """
        if deployment.template_text:
            with contextlib.suppress(BadTemplate):
                path = collection.place(Path(deployment.template))
                library, topology = template.read(path, deployment.template_text)
                return cls(topology, library, None, deployment.name, {})
        found = cls.again(deployment)
        same(found, deployment)
        return found


@dataclass(frozen=True)
class Survey:
    """A valid request and what the pool offers.

    Attributes:
        request: what the user asks for.
        previous: the deployment as it is remembered, if any.
        scope: template, with its instances, and values.
        given: values of inputs given now or earlier.
        former: defaults of an earlier template that stay.
        instances: chosen numbers of instances, now or earlier.
        machine_requests: what each Compute node asks for.
        pool: the machines.
    """

    request: Request
    previous: Deployment | None
    scope: Scope
    given: dict[str, Any]
    former: dict[str, Any]
    instances: dict[str, int]
    machine_requests: dict[str, MachineRequest]
    pool: Pool


@dataclass(frozen=True)
class Removal:
    """Plan for the removal of nodes.

    Attributes:
        steps: to run; those first that nothing else needs.
        kept: steps that have nothing to take away, as this deployment changed nothing that they could undo.
        withdrawn: those of them that run all the same, as the machine has a record of this deployment.
        gone: steps that cannot run, as the inventory lacks their machines.
        waiting: steps that take away what these need.
        given_up: steps on such machines that never run, as the operator says.
    """

    steps: list[Step] = field(default_factory=list)
    kept: list[Step] = field(default_factory=list)
    withdrawn: list[Step] = field(default_factory=list)
    gone: list[Step] = field(default_factory=list)
    waiting: list[Step] = field(default_factory=list)
    given_up: list[Step] = field(default_factory=list)

    def to_run(self) -> list[Step]:
        """Return the steps that are run. Nothing that goes needs what is withdrawn, so that comes last."""
        return [*self.steps, *self.withdrawn]

    def within(self, known: Collection[str], forget: Collection[str]) -> Removal:
        """Take out what stands on machines that the inventory lacks.

        Args:
            known: machines of the inventory.
            forget: machines to give up.

        Returns:
            The removal that can be carried out.
        """
        reached = {*known, CONTROLLER}
        given_up = [step for step in self.steps if step.host in forget and step.host not in reached]
        left = plan.without(self.steps, {step.name for step in given_up})
        gone = {step.name for step in left if step.host not in reached}
        waiting = waves.depending(left, gone)
        return Removal(
            steps=[step for step in left if step.name not in gone | waiting],
            kept=self.kept,
            withdrawn=[step for step in self.withdrawn if step.host in reached],
            gone=[step for step in left if step.name in gone],
            waiting=[step for step in left if step.name in waiting],
            given_up=given_up,
        )

    def left_over(
        self, deployment: Deployment, inventory: Path, left: Mapping[str, int] | None = None
    ) -> str:
        """Say what cannot be taken away; empty if that is nothing.

        Args:
            deployment: as it is remembered.
            inventory: the inventory.
            left: numbers of instances that stay, of a deployment that stays.
        """
        hosts = {step.host for step in self.gone}
        parts = []
        for node, host in ((node, entry["host"]) for node, entry in deployment.machines.items()):
            base = parsed(node)[0]
            command = "" if left is None else f"gpufarm scale {deployment.name} {base}={left.get(base, 0)} "
            if host in hosts:
                parts.append(
                    f"node {node} stands on {host}, which is not in {inventory}; "
                    f"name another with --pool, or give the machine up with {command}--forget {host}"
                )
        if self.waiting:
            parts.append(f"not run because of that: {', '.join(step.name for step in self.waiting)}")
        return "; ".join(parts)


@dataclass(frozen=True)
class Prepared:
    """A request that could be carried out now.

    Attributes:
        pool: the inventory.
        scope: template, with its instances, and values.
        given: values of inputs given now or earlier.
        former: defaults of an earlier template that stay.
        instances: chosen numbers of instances, now or earlier.
        machines: ``host`` and ``address`` of each Compute node.
        facts: what each chosen machine has.
        steps: all of them, in order, but those that are off.
        off: steps of nodes that are switched off, of which nothing is to be taken away.
        reasons: why each step is to be run, by name.
        leaving: what takes away instances that are no longer wanted.
    """

    pool: Path
    scope: Scope
    given: dict[str, Any]
    former: dict[str, Any]
    instances: dict[str, int]
    machines: dict[str, dict[str, str]]
    facts: dict[str, Machine]
    steps: list[Step]
    off: list[Step]
    reasons: dict[str, Reason]
    leaving: Removal


def values(
    request: Request, previous: Deployment | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Collect and check the values of inputs.

    Args:
        request: what the user asks for.
        previous: the deployment as it is remembered, if any.

    Returns:
        The values given now or earlier, those of all inputs, and the defaults that they had then and keep.

    Raises:
        BadInput: a value is wrong or missing, or the template does not allow it.
    """
    topology = request.template
    earlier = previous.inputs | previous.secrets if previous else {}
    given = {name: value for name, value in earlier.items() if name in topology.inputs} | dict(request.given)
    types = Catalogue(request.library).names("data_types")
    found = inputs.complete(topology, given, types)
    kept = former.defaults(topology, previous, types)
    found |= {name: value for name, value in kept.items() if name not in given}
    public = {name: value for name, value in found.items() if not topology.inputs[name].secret}
    check_template(request.library, public)
    evaluated.examine(Scope(topology, found), request.library)
    return given, found, kept


def remembered(request: Request, previous: Deployment) -> tuple[dict[str, Any], dict[str, Any]]:
    """Collect the values of inputs with which a deployment was made; they were checked then.

    Args:
        request: what was made, as `Request.made` describes it.
        previous: the deployment as it is remembered.

    Returns:
        The values that were given, and those of all inputs.
    """
    topology = request.template
    earlier = previous.inputs | previous.secrets
    given = {name: value for name, value in earlier.items() if name in topology.inputs}
    types = Catalogue(request.library).names("data_types")
    return given, inputs.accepted(topology, former.defaults(topology, previous, types) | given)


def same(request: Request, previous: Deployment | None) -> None:
    """Refuse to turn a deployment into another one.

    Args:
        request: what the user asks for.
        previous: the deployment as it is remembered, if any.

    Raises:
        BadInput: the template is another one, or lacks what the deployment has.
    """
    if previous is None:
        return
    if collection.here(Path(previous.template)) != collection.here(request.template.path):
        raise BadInput(
            f"deployment {request.name} was made from {previous.template}; choose another --name, "
            f"or run: gpufarm undeploy {request.name}"
        )
    nodes = {parsed(name.rpartition(".")[0])[0] for name in previous.steps}
    gone = sorted(nodes - set(request.template.nodes))
    if gone:
        raise BadInput(
            f"the template has no node {', '.join(gone)} any more, but deployment {request.name} has; "
            f"put it back, or run: gpufarm undeploy {request.name}"
        )


def _counts(
    request: Request, previous: Deployment | None, known: Mapping[str, Any]
) -> tuple[dict[str, int], dict[str, int]]:
    """The chosen numbers of instances, and the numbers of all machines."""
    earlier = previous.instances if previous else {}
    chosen = {name: number for name, number in earlier.items() if name in request.template.nodes}
    chosen |= request.instances
    return chosen, instances.counts(request.template, known, chosen)


def survey(store: Store, request: Request, previous: Deployment | None, *, refresh: bool = False) -> Survey:
    """Check a request and inspect the pool.

    Args:
        store: remembers what machines have.
        request: what the user asks for.
        previous: the deployment as it is remembered, if any.
        refresh: whether to ask machines again that have been asked lately.

    Returns:
        The request and the facts of the pool.

    Raises:
        BadInput: template, inputs or pool are wrong.
    """
    same(request, previous)
    given, known, kept = values(request, previous)
    chosen, numbers = _counts(request, previous, known)
    scope = Scope(multiply(request.template, numbers), known, files=store.files)
    machine_requests = {
        node.name: MachineRequest.of(node, scope) for node in scope.topology.nodes.values() if node.is_machine
    }
    path = request.pool or (Path(previous.pool) if previous else None if machine_requests else NO_POOL)
    if path is None:
        raise BadInput("--pool is missing: name the inventory with your machines, such as inventories/mysite")
    # a plan that cannot be compiled is refused before machines are bothered
    plan.steps(
        scope.on(dict.fromkeys(machine_requests, "")), dict.fromkeys(machine_requests, ""), frozenset(given)
    )
    standing = [entry["host"] for entry in previous.machines.values()] if previous else []
    settled = not machine_requests or (
        previous is not None and set(machine_requests) <= set(previous.machines)
    )
    found = facts.survey(store, path, only=standing if settled else None, refresh=refresh or request.refresh)
    return Survey(request, previous, scope, given, kept, chosen, machine_requests, found)


def choose(store: Store, found: Survey) -> Prepared:
    """Choose machines and order the steps.

    Args:
        store: knows which machines are not free.
        found: what is asked for and what there is.

    Returns:
        The planned changes.

    Raises:
        NoMachine: the pool does not suffice.
    """
    name, previous = found.request.name, found.previous
    before = previous.machines if previous else {}
    standing = {node: entry["host"] for node, entry in before.items()}
    held = store.held(name, [machine.address for machine in found.pool.machines.values()])
    # a machine that is about to be given up is not free before that
    held |= {entry["address"]: name for node, entry in before.items() if node not in found.machine_requests}
    machines = match.match(found.machine_requests, found.pool, held, standing)
    placed = {node: {"host": entry.host, "address": entry.address} for node, entry in machines.items()}
    if previous:
        may_forget(previous, found.request.forget, found.pool.hosts, found.pool.path)
    prepared = _prepared(store, found, placed, machines)
    return replace(prepared, leaving=prepared.leaving.within(found.pool.hosts, found.request.forget))


def unchanged(store: Store, request: Request, previous: Deployment) -> Prepared | None:
    """Tell without looking at any machine what is left to do, if nothing new is asked for.

    Args:
        store: has the key of the fingerprints.
        request: what the user asks for.
        previous: the deployment as it is remembered.

    Returns:
        The planned changes; None if they depend on facts of machines.

    Raises:
        BadInput: the template is wrong by now.
    """
    same(request, previous)
    given, known, kept = values(request, previous)
    chosen, numbers = _counts(request, previous, known)
    scope = Scope(multiply(request.template, numbers), known, files=store.files)
    machines = [node.name for node in scope.topology.nodes.values() if node.is_machine]
    if request.given or request.instances or request.pool or not set(machines) <= set(previous.machines):
        return None
    placed = {node: previous.machines[node] for node in machines}
    found = Survey(request, previous, scope, given, kept, chosen, {}, Pool(Path(previous.pool), {}, {}))
    return _prepared(store, found, placed, {})


def _prepared(
    store: Store, found: Survey, placed: dict[str, dict[str, str]], machines: dict[str, Machine]
) -> Prepared:
    scope = found.scope.on({node: entry["address"] for node, entry in placed.items()})
    hosts = {node: entry["host"] for node, entry in placed.items()}
    request, previous = found.request, found.previous
    of_pool = inherited(previous, found.former, found.pool.hosts)
    steps = plan.steps(scope, hosts, frozenset(found.given), of_pool)
    known = found.previous.steps if found.previous else {}
    if wrong := reasons.renamed(store.digest, steps, known):
        raise BadInput("\n".join(wrong))
    why = reasons.explain(store.digest, steps, known)
    off = [step for step in steps if step.off and (step.name not in known or not why[step.name].needed)]
    steps = plan.without(steps, {step.name for step in off})
    return Prepared(
        pool=found.pool.path.resolve(),
        scope=scope,
        given=found.given,
        former=found.former,
        instances=found.instances,
        machines=placed,
        facts=machines,
        steps=steps,
        off=off,
        reasons=reasons.explain(store.digest, steps, known),
        leaving=removal(request, previous, found.given, scope, of_pool, keep=set(scope.topology.nodes)),
    )


def may_forget(deployment: Deployment, forget: Collection[str], known: Collection[str], pool: Path) -> None:
    """Check that machines can be given up.

    Args:
        deployment: as it is remembered.
        forget: the machines.
        known: machines of the inventory.
        pool: the inventory.

    Raises:
        BadInput: the deployment has no such machine, or the inventory has it.
    """
    own = {machine["host"] for machine in [*deployment.machines.values(), *deployment.freed.values()]}
    for host in forget:
        if host not in own:
            raise BadInput(
                f"--forget {host}: deployment {deployment.name} has no such machine; {near(host, own)}"
            )
        if host in known:
            raise BadInput(
                f"--forget {host}: {pool} has it, so what stands there is taken away; "
                "if it is gone for good, take it out of the inventory first"
            )


def inherited(
    previous: Deployment | None, names: Collection[str], pool: Mapping[str, Collection[str]]
) -> Inherited:
    """Tell which variables a deployment has from the pool, though its template has another default by now.

    Args:
        previous: the deployment as it is remembered, if any.
        names: of inputs that keep a former default.
        pool: variables of each machine of the inventory.

    Returns:
        The variables that a plan leaves to the pool.
    """
    own: dict[str, set[str]] = {}
    for name, step in previous.steps.items() if previous else ():
        if "variables" in step:
            own.setdefault(name.rpartition(".")[0], set()).update(step["variables"])
    passed: dict[str, set[str]] = {}
    for name, variables in own.items():
        node, _index = parsed(name)
        passed[node] = passed.get(node, variables) & variables
    # Ansible gives its own machine the variables of the group `all`.
    everywhere = set.intersection(*map(set, pool.values())) if pool else set()
    return Inherited(frozenset(names), passed, {CONTROLLER: everywhere, **pool})


def removal(
    request: Request,
    previous: Deployment | None,
    given: Mapping[str, Any],
    scope: Scope,
    of_pool: Inherited,
    *,
    keep: set[str],
) -> Removal:
    """List the steps that take away what a deployment has made and shall not have any longer.

    Args:
        request: what the user asks for.
        previous: the deployment as it is remembered, if any.
        given: values of inputs given now or earlier.
        scope: has the values of all inputs.
        of_pool: variables that the inventory says.
        keep: nodes, by their names as instances, that stay.

    Returns:
        The steps; none for nodes that are gone already.
    """
    if previous is None:
        return Removal()
    numbers: dict[str, int] = {}
    before = {**previous.freed, **previous.machines}
    for node in before:
        name, index = parsed(node)
        numbers[name] = max(index, numbers.get(name, 1))
    topology = multiply(request.template, numbers)
    placed = {node: entry for node, entry in before.items() if node in topology.nodes}
    missing = {node.name for node in topology.nodes.values() if node.is_machine} - set(placed)
    addresses = {node: entry["address"] for node, entry in placed.items()} | dict.fromkeys(missing, "")
    hosts = dict.fromkeys([*placed, *missing], "")
    hosts |= {node: entry["host"] for node, entry in previous.machines.items() if node in placed}
    old = replace(scope, topology=topology).on(addresses)
    made, known = ({name.rpartition(".")[0] for name in names} for names in (previous.made(), previous.steps))
    made |= {name for name in topology.nodes if not _deploys(topology, name)}
    steps = plan.steps(old, hosts, frozenset(given), of_pool, undeploy=True)
    steps = plan.without(steps, {step.name for step in steps if step.node in keep or not step.host})
    kept = [step for step in steps if step.node in known - made]
    withdrawn = [
        replace(step, variables={**step.variables, recorded.WITHDRAW: True})
        for step in kept
        if _keeps_record(topology, step.node)
    ]
    # A node that was never made may stand between two that were.
    unmade = {step.name for step in steps if step.node not in made}
    return Removal(plan.without(steps, unmade), kept, withdrawn)


def _keeps_record(topology: Topology, node: str) -> bool:
    """Whether the machine has a record of the deployments that asked for this node."""
    operations = topology.nodes[node].operations
    return any(recorded.keeps(operations[name].playbook) for name in DEPLOY if name in operations)


def _deploys(topology: Topology, node: str) -> bool:
    return any(name in topology.nodes[node].operations for name in DEPLOY)
