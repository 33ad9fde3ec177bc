# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python interface of the deployer; the command `gpufarm` uses nothing else. docs/api.md is its manual.

Methods import what they need when they are called, so that looking at the state is fast.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpufarm import answers
from gpufarm.answers import (
    Console,
    Deployment,
    Difference,
    Hours,
    Package,
    Plan,
    Removal,
    Run,
    Task,
    Uniformity,
    Validation,
)
from gpufarm.errors import (
    BadInput,
    BadTemplate,
    Drift,
    GpufarmError,
    Interrupted,
    Locked,
    NoMachine,
)
from gpufarm.records import Record, sound
from gpufarm.state import Deployment as State
from gpufarm.state import Store, default_directory

if TYPE_CHECKING:
    from gpufarm.asking import Given
    from gpufarm.autoscale import Proposal
    from gpufarm.deployment import Result
    from gpufarm.history import Entry
    from gpufarm.plan import Step
    from gpufarm.pool import Machine
    from gpufarm.prepare import Prepared, Request
    from gpufarm.prepare import Removal as Removing
    from gpufarm.run import Done, Listener

__all__ = [
    "BadInput",
    "BadTemplate",
    "Console",
    "Deployer",
    "Deployment",
    "Difference",
    "Drift",
    "GpufarmError",
    "Hours",
    "Interrupted",
    "Locked",
    "NoMachine",
    "Package",
    "Plan",
    "Removal",
    "Run",
    "Silent",
    "Task",
    "Uniformity",
    "Validation",
]

# Status of a deployment of which the state cannot be used.
UNUSABLE = "unusable"


class Silent:
    """A listener that tells nobody; derive yours from it."""

    def started(self, step: Step) -> None:
        """A step begins."""

    def task(self, step: Step, name: str) -> None:
        """A task of the step begins."""

    def finished(self, step: Step, done: Done) -> None:
        """A step is done."""

    def failed(self, step: Step, failure: str, done: Done) -> None:
        """A step has failed, after it did some of what it does."""


class Deployer:
    """Deployments in one state folder."""

    def __init__(
        self,
        state: Path | None = None,
        vault_password_file: Path | None = None,
        warn: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        """Name the state folder; nothing is read or written yet.

        Args:
            state: the folder; None for the one that the command takes.
            vault_password_file: has the vault password of the key of the state; None for none.
            warn: gets a sentence about each damaged state that may hold machines, each machine that is
                unreachable, and each thing that is checked later.
        """
        self._store = Store(state or default_directory(), vault_password_file)
        self._warn = warn

    def validate(self, template: str | Path, inputs: Given = None) -> Validation:
        """Examine a template and values of its inputs, without any machine.

        Args:
            template: a file, or the bare name of a template of the collection.
            inputs: values by name; required ones may be missing.

        Returns:
            The inputs and the nodes of the template.

        Raises:
            BadTemplate: everything that is wrong, with its places.
            BadInput: a value is wrong.
        """
        from gpufarm import asking, evaluated
        from gpufarm import inputs as values
        from gpufarm.catalogue import Catalogue
        from gpufarm.conformance import check_template
        from gpufarm.functions import Scope

        library, topology, given = asking.read(template, inputs)
        found = values.known(topology, given, Catalogue(library).names("data_types"))
        # tosca-parser checks what an input feeds only with its value
        public = {name: value for name, value in found.items() if not topology.inputs[name].secret}
        check_template(library, public)
        evaluated.examine(Scope(topology, found), library)
        return Validation(
            template=str(template),
            valid=True,
            name=topology.name,
            description=topology.description,
            nodes=[*topology.nodes],
            inputs=[
                answers.Input(
                    entry.name, entry.kind, entry.required, entry.secret, entry.default, entry.description
                )
                for entry in topology.inputs.values()
            ],
        )

    def package(
        self, template: str | Path, output: Path | None = None, addresses: Mapping[str, str] | None = None
    ) -> Package:
        """Pack a template with its types, playbooks and the collection into a CSAR.

        Args:
            template: a file, or the bare name of a template of the collection.
            output: file to write; None for the template's name with .csar in the current folder.
            addresses: of machines that exist, by node.

        Returns:
            The file.

        Raises:
            BadInput: the template is wrong.
        """
        from gpufarm import asking, package

        path = asking.located(template)
        archive = output or Path(f"{path.stem}.csar")
        names = package.pack(path, archive, addresses or {})
        return Package(str(archive), len(names), archive.stat().st_size)

    def plan(
        self,
        template: str | Path,
        pool: Path | None = None,
        *,
        name: str | None = None,
        inputs: Given = None,
        refresh: bool = False,
    ) -> Plan:
        """Tell which machines would be taken and what would be done. Changes nothing on a machine.

        Args:
            template: a file, or the bare name of a template of the collection.
            pool: inventory with the machines; None for that of the earlier run.
            name: of the deployment; None for the template's name.
            inputs: values by name; values given in earlier runs are kept.
            refresh: ask all machines what they have, also those asked some minutes ago.

        Returns:
            The machines and the steps.

        Raises:
            BadInput: template, inputs or pool are wrong.
            NoMachine: the free machines do not suffice.
        """
        from gpufarm import checks, deployment, facts
        from gpufarm.recorded import Claim

        store, request = self._store, _request(template, pool, name, inputs, refresh=refresh)
        warnings = self._warnings(request.name)
        previous = store.load(request.name)
        prepared, seen = deployment.choose(store, request, previous, say=self._warn)
        with contextlib.suppress(GpufarmError):  # then they are simply asked again
            facts.remember(store, seen)
        new = [step for step in prepared.steps if prepared.reasons[step.name].needed]
        claim = Claim((previous or State(request.name, "", "")).owner)
        problems = ""
        try:
            deployment.may_leave(previous, prepared)
            warnings += checks.check(new, claim, prepared.pool)
        except BadInput as error:
            problems = error.message
        return _plan(request.name, prepared, warnings, problems)

    def deploy(
        self,
        template: str | Path,
        pool: Path | None = None,
        *,
        name: str | None = None,
        inputs: Given = None,
        refresh: bool = False,
        description: str | None = None,
        group: str | None = None,
        take_over: bool = False,
        listener: Listener | None = None,
    ) -> Run:
        """Set up what a template describes, or bring it in line again.

        Args:
            template: a file, or the bare name of a template of the collection.
            pool: inventory with the machines; None for that of the earlier run.
            name: of the deployment; None for the template's name.
            inputs: values by name; values given in earlier runs are kept.
            refresh: ask all machines what they have, also those asked some minutes ago.
            description: purpose of the deployment; None to keep it, at first the template's.
            group: the people that it is for; None to keep it.
            take_over: let roles replace what was made for others with other settings.
            listener: told how it goes.

        Returns:
            The deployment with its outputs.

        Raises:
            GpufarmError: in any of its kinds; the state tells the same.
        """
        request = _request(template, pool, name, inputs, refresh=refresh)
        request = replace(request, description=description, group=group, take_over=take_over)
        return self._run(request, "deploy", listener, everything=True)

    def check(
        self,
        template: str | Path,
        pool: Path | None = None,
        *,
        name: str | None = None,
        inputs: Given = None,
        refresh: bool = False,
        listener: Listener | None = None,
    ) -> Difference:
        """Tell what `deploy` would change on the machines, with Ansible's check mode.

        Args:
            template: a file, or the bare name of a template of the collection.
            pool: inventory with the machines; None for that of the earlier run.
            name: of the deployment; None for the template's name.
            inputs: values by name; values given in earlier runs are kept.
            refresh: ask all machines what they have, also those asked some minutes ago.
            listener: told how it goes.

        Returns:
            The changes.

        Raises:
            GpufarmError: in any of its kinds.
        """
        return self._check(_request(template, pool, name, inputs, refresh=refresh), listener)

    def update(
        self,
        name: str,
        *,
        inputs: Given = None,
        pool: Path | None = None,
        listener: Listener | None = None,
    ) -> Run:
        """Change inputs of a deployment, and do only what that makes necessary.

        Args:
            name: of the deployment.
            inputs: values by name; the others are kept.
            pool: inventory to use instead of that of the deployment.
            listener: told how it goes.

        Returns:
            The deployment with its outputs.

        Raises:
            GpufarmError: in any of its kinds; the state tells the same.
        """
        from gpufarm import asking

        request = self._again(name, pool)
        request = replace(request, given=asking.given_values(request.template, inputs))
        return self._run(request, "update", listener, everything=False)

    def resume(
        self, name: str, *, pool: Path | None = None, listener: Listener | None = None
    ) -> Run | Removal:
        """Continue a run that failed or was interrupted; only what did not finish is done again.

        Args:
            name: of the deployment.
            pool: inventory to use instead of that of the deployment.
            listener: told how it goes.

        Returns:
            The deployment with its outputs, or the removal if an undeployment was continued.

        Raises:
            GpufarmError: in any of its kinds; the state tells the same.
        """
        self._state(name)
        last = next(reversed(self.history(name)), None)
        if last and last.what.split(" ")[0] == "undeploy":
            return self.undeploy(name, pool=pool, listener=listener)
        return self._run(self._again(name, pool), "resume", listener, everything=False)

    def scale(
        self,
        name: str,
        instances: Mapping[str, int],
        *,
        pool: Path | None = None,
        forget: builtins.list[str] | None = None,
        listener: Listener | None = None,
        what: str = "scale",
    ) -> Run:
        """Give machines of a deployment more instances or fewer, with all that stands on them.

        Args:
            name: of the deployment.
            instances: number of instances by node.
            pool: inventory to use instead of that of the deployment.
            forget: machines to give up with the instances there, which the inventory lacks; None for none.
            listener: told how it goes.
            what: word for the history.

        Returns:
            The deployment with its outputs.

        Raises:
            GpufarmError: in any of its kinds; the state tells the same.
        """
        request = replace(self._again(name, pool), instances=dict(instances), forget=forget or [])
        return self._run(request, what, listener, everything=False)

    def proposals(
        self, name: str, ask: Callable[[str], float], *, pool: Path | None = None
    ) -> builtins.list[Proposal]:
        """Tell how many instances the scaling policies of a deployment want now.

        Args:
            name: of the deployment.
            ask: gives the number for a query; `gpufarm.prometheus.Prometheus(URL).ask` asks a server.
            pool: inventory to use instead of that of the deployment.

        Returns:
            A proposal for each target of each policy.

        Raises:
            BadInput: there is no scaling policy, two are for one machine, or one is wrong.
            GpufarmError: a metric cannot be had.
        """
        import datetime

        from gpufarm import autoscale

        now = datetime.datetime.now(datetime.UTC)
        return autoscale.propose(self._again(name, pool), self._state(name), ask, self.history(name), now)

    def diff(self, name: str, *, pool: Path | None = None, listener: Listener | None = None) -> Difference:
        """Tell what has changed on the machines since, with Ansible's check mode.

        Args:
            name: of the deployment.
            pool: inventory to use instead of that of the deployment.
            listener: told how it goes.

        Returns:
            The differences; none if all is as it was made.

        Raises:
            GpufarmError: in any of its kinds.
        """
        return self._check(self._again(name, pool), listener)

    def removal(
        self, name: str, *, pool: Path | None = None, forget: builtins.list[str] | None = None
    ) -> Removal:
        """Tell what undeploying would take away; changes nothing.

        Args:
            name: of the deployment.
            pool: inventory to use instead of that of the deployment.
            forget: machines to give up with all that stands there, which the inventory lacks; None for none.

        Returns:
            The steps, and those that are left out.

        Raises:
            BadInput: there is no such deployment, or its template, pool or a machine to give up are wrong.
        """
        from gpufarm import deployment

        return _removal(name, deployment.removal(self._store, name, pool, forget or []))

    def undeploy(
        self,
        name: str,
        *,
        pool: Path | None = None,
        forget: builtins.list[str] | None = None,
        agreed: Removal | None = None,
        listener: Listener | None = None,
    ) -> Removal:
        """Take away what a deployment has set up, and free its machines.

        A machine is free when nothing is left to be removed there, also if the removal fails on others.

        Args:
            name: of the deployment.
            pool: inventory to use instead of that of the deployment.
            forget: machines to give up with all that stands there, which the inventory lacks; None for none.
            agreed: the removal that a person has seen; if it is another one by now, nothing is done.
            listener: told how it goes.

        Returns:
            The removal that was done.

        Raises:
            GpufarmError: in any of its kinds; the state tells the same.
        """
        from gpufarm import deployment

        found = deployment.undeploy(
            self._store,
            name,
            pool,
            listener or Silent(),
            lambda found: agreed in (None, _removal(name, found)),
            forget or [],
        )
        return _removal(name, found)

    def list(self) -> builtins.list[Deployment]:
        """List the deployments, also those of which the state cannot be used.

        Returns:
            All of them, by name.
        """
        return [self._answer(record) for record in self._store.records()]

    def names(self) -> builtins.list[str]:
        """List the names of the deployments.

        Returns:
            All of them, sorted.
        """
        return self._store.names()

    def show(self, name: str) -> Deployment:
        """Tell about a deployment. No key and no machine is needed.

        Args:
            name: of the deployment.

        Returns:
            The deployment.

        Raises:
            BadInput: there is none of this name.
            GpufarmError: its state cannot be used.
        """
        return self._answer(sound(self._state(name, secrets=False), None))

    def outputs(self, name: str, *, indigo: bool = False) -> dict[str, Any]:
        """Tell the outputs of a deployment.

        Args:
            name: of the deployment.
            indigo: whether to give those of INDIGO's templates too, such as ``node_ip``.

        Returns:
            The values by name.

        Raises:
            GpufarmError: it is not deployed.
        """
        found = self._state(name, secrets=False)
        if found.status != "deployed":
            raise GpufarmError(f"deployment {name} is not deployed; see: gpufarm status {name}")
        if not indigo:
            return found.outputs
        from gpufarm import indigo as names
        from gpufarm.prepare import Request

        return names.outputs(found, Request.made(found).template)

    def log(self, name: str) -> str:
        """Read what Ansible has told in the last run.

        Args:
            name: of the deployment.

        Returns:
            The text; empty if Ansible was not needed.

        Raises:
            BadInput: there is none of this name.
            GpufarmError: its state cannot be used.
        """
        path = self.show(name).log
        return Path(path).read_text(encoding="utf-8", errors="replace") if path else ""

    def console(self, name: str, *, pool: Path | None = None) -> Console:
        """Tell how the containers and jobs of a deployment went, and what they have printed last.

        Args:
            name: of the deployment.
            pool: inventory to use instead of that of the deployment.

        Returns:
            The tasks, those that began last first, each with the last 64 KiB of its output, and why nodes did
            not tell theirs.

        Raises:
            BadInput: there is no such deployment, or it has no container and no job.
            GpufarmError: its state cannot be used.
            Interrupted: a signal stopped it.
        """
        from gpufarm import console

        return console.read(self._store, self._state(name), pool)

    def history(self, name: str) -> builtins.list[Entry]:
        """List the runs of a deployment, also of one that is gone.

        Args:
            name: of the deployment.

        Returns:
            The runs, the first one first.

        Raises:
            BadInput: there is none of this name, and never was.
        """
        from gpufarm import history

        found = history.read(self._store, name)
        if not found:
            self._state(name, secrets=False)
        return found

    def hours(
        self,
        *,
        pool: Path | None = None,
        since: str | None = None,
        before: str | None = None,
        by: Sequence[str] = ("month", "group", "user", "profile"),
        folder: Path | None = None,
    ) -> Hours:
        """Tell how long users held GPUs, slices, CPUs and memory.

        Args:
            pool: inventory whose hubs and clusters of Slurm count beside those of the deployments.
            since: first moment of the period, a date or time in ISO 8601; None for the first of this month.
            before: first moment after it; None for now.
            by: fields of a row: ``month``, ``user``, ``group``, ``source``, ``profile``, ``machine``,
                ``identity``.
            folder: gets ``usage.csv`` and ``usage.json``; None for no files.

        Returns:
            The hours, and why machines did not tell theirs.

        Raises:
            BadInput: nothing keeps hours, or an argument is wrong.
            GpufarmError: no machine has answered.
        """
        from gpufarm import hours

        known = [record.deployment for record in self._store.records() if record.deployment]
        return hours.read(hours.sources(known, pool, self._warn), since, before, by, folder)

    def uniform(self, name: str, *, pool: Path | None = None, folder: Path | None = None) -> Uniformity:
        """Compare the machines of a deployment that ought to be equal: the instances of each Compute node.

        Args:
            name: of the deployment.
            pool: inventory to use instead of that of the deployment.
            folder: gets ``uniform.json`` and ``benchmarks.html``; None for no file.

        Returns:
            The differences, and why machines did not answer.

        Raises:
            BadInput: there is no such deployment, or it has no machine.
            GpufarmError: no machine has answered.
        """
        from gpufarm import uniform

        deployment = self._state(name)
        return uniform.read(pool or Path(deployment.pool), uniform.of_deployment(deployment), folder)

    def uniform_pool(
        self, pool: Path, *, groups: Sequence[str] = (), folder: Path | None = None
    ) -> Uniformity:
        """Compare the machines of each of some groups of an inventory.

        Args:
            pool: the inventory.
            groups: their names; none for all machines as one group.
            folder: gets ``uniform.json`` and ``benchmarks.html``; None for no file.

        Returns:
            The differences, and why machines did not answer.

        Raises:
            BadInput: the inventory cannot be read, or a group is none of it.
            GpufarmError: no machine has answered.
        """
        from gpufarm import uniform

        return uniform.read(pool, uniform.of_pool(pool, groups), folder)

    def _state(self, name: str, *, secrets: bool = True) -> State:
        found = self._store.load(name, secrets=secrets)
        if found is None:
            known = ", ".join(self.names())
            raise BadInput(
                f"there is no deployment {name}; {f'there are: {known}' if known else 'there is none at all'}"
            )
        return found

    def _again(self, name: str, pool: Path | None) -> Request:
        """Ask for what a deployment is already."""
        from gpufarm.prepare import Request

        return Request.again(self._state(name), pool)

    def _warnings(self, name: str) -> builtins.list[str]:
        others = (record for record in self._store.records() if record.name != name)
        found = [sentence for record in others if (sentence := record.warning())]
        for sentence in found:
            self._warn(sentence)
        return found

    def _run(self, request: Request, what: str, listener: Listener | None, *, everything: bool) -> Run:
        from gpufarm import deployment

        self._warnings(request.name)
        names = [*(f"input {name}" for name in request.given)]
        names += [f"{name}={number}" for name, number in request.instances.items()]
        names += [f"--forget {host}" for host in request.forget]
        result = deployment.deploy(
            self._store,
            request,
            listener or Silent(),
            what=f"{what} {', '.join(names)}".strip(),
            everything=everything,
            say=self._warn,
        )
        applied = [answers.Applied(name, done.tasks, done.seconds) for name, done in result.applied.items()]
        record = sound(result.deployment, None)
        machines = _machines(result.deployment.machines, result.facts)
        return Run(self._answer(record), applied, _log(result), machines)

    def _check(self, request: Request, listener: Listener | None) -> Difference:
        from gpufarm import deployment

        self._warnings(request.name)
        result = deployment.check(self._store, request, listener or Silent())
        changed = {step: done.tasks for step, done in result.applied.items() if done.tasks}
        return Difference(request.name, changed, result.records, _log(result))

    def _answer(self, record: Record) -> Deployment:
        found = record.deployment
        if found is None:
            return Deployment(record.name, UNUSABLE, record.machines, record.problem)
        from gpufarm import collection

        template = found.template
        with contextlib.suppress(GpufarmError):  # the collection is gone, and the path is as it was
            template = str(collection.here(Path(template)))
        status = found.status
        if status in ("deploying", "undeploying") and not self._store.is_locked(found.name):
            status = "interrupted"  # it was killed
        done = [name for name, step in found.steps.items() if step["digest"]]
        return Deployment(
            name=found.name,
            status=status,
            machines=found.machines,
            failure=found.failure,
            id=found.id,
            operator=found.operator,
            group=found.group,
            description=found.description,
            template=template,
            template_text=found.template_text,
            pool=found.pool,
            created=found.created,
            updated=found.updated,
            inputs=found.inputs,
            instances=found.instances,
            steps=done,
            begun=[name for name in found.steps if name not in done],
            outputs=found.outputs,
            log=found.log,
        )


def _log(result: Result) -> str:
    return str(result.log) if result.log else ""


def _request(
    template: str | Path, pool: Path | None, name: str | None, inputs: Given, *, refresh: bool
) -> Request:
    from gpufarm import asking
    from gpufarm.prepare import Request

    library, topology, given = asking.read(template, inputs)
    return Request(topology, library, pool, name or topology.name, given, refresh=refresh)


def _removal(name: str, found: Removing) -> Removal:
    parts = (found.steps, found.kept, found.gone, found.waiting, found.given_up)
    return Removal(name, *([answers.Step(step.name, step.host) for step in steps] for steps in parts))


def _machines(
    places: Mapping[str, dict[str, str]], facts: Mapping[str, Machine]
) -> dict[str, answers.Machine]:
    return {
        node: answers.Machine(
            places[node]["host"],
            places[node]["address"],
            found.cpus,
            found.memory,
            found.disk,
            found.distribution,
            found.version,
            [gpu.model for gpu in found.gpus],
        )
        for node, found in facts.items()
    }


def _plan(name: str, prepared: Prepared, warnings: builtins.list[str], problems: str) -> Plan:
    from gpufarm import waves

    wave = waves.levels(prepared.steps)
    steps = []
    for step in prepared.steps:
        reason = prepared.reasons[step.name]
        steps.append(
            answers.PlannedStep(
                step=step.name,
                host=step.host,
                wave=wave[step.name],
                playbook=str(step.playbook),
                reason=reason.text,
                changed=[*reason.changed],
                needed=reason.needed,
                # a step without changes interrupts nothing
                disruption=step.disruption if reason.needed else "",
                variables=step.public(),
            )
        )
    leaving = [answers.Step(step.name, step.host) for step in prepared.leaving.to_run()]
    machines = _machines(prepared.machines, prepared.facts)
    return Plan(name, machines, steps, leaving, warnings, problems)
