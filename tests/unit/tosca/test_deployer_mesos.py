"""A Mesos cluster from its template: who is told what about whom, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deployer_site import HERE, Site
from gpufarm import checks, inputs, instances, plan, template, waves
from gpufarm.catalogue import Catalogue
from gpufarm.errors import BadInput
from gpufarm.functions import Scope
from gpufarm.instances import multiply
from gpufarm.match import MachineRequest

TEMPLATE = Path(__file__).resolve().parents[3] / "tosca" / "templates" / "mesos_cluster.yaml"
PASSWORD = "opensesame-and-more"


def scope(path: Path = TEMPLATE, **given: Any) -> Scope:
    """The instances of the template, with addresses: masters first."""
    source, topology = template.read(path)
    known = inputs.complete(topology, given, Catalogue(source).names("data_types"))
    made = multiply(topology, instances.counts(topology, known, {}))
    machines = [*made.groups["masters"], *made.groups["agents"]]
    return Scope(made, known).on({name: f"192.0.2.{number}" for number, name in enumerate(machines, start=1)})


def steps(**given: Any) -> list[plan.Step]:
    found = scope(**given)
    hosts = {name: name for name, node in found.topology.nodes.items() if node.is_machine}
    return plan.steps(found, hosts, frozenset(given))


def _operation(play: waves.Play) -> str:
    return next(iter(play.steps.values())).playbook.parent.name


@pytest.mark.parametrize("masters", [1, 3])
@pytest.mark.parametrize("agents", [2, 5])
def test_everybody_knows_all_masters(masters: int, agents: int) -> None:
    made = {step.name: step for step in steps(master_count=masters, agent_count=agents)}
    addresses = [f"192.0.2.{number}" for number in range(1, masters + 1)]
    told = {
        "zookeeper": ["zookeeper_machines"],
        "mesos_master": ["mesos_master_masters", "mesos_master_zookeeper"],
        "marathon": ["marathon_mesos_masters", "marathon_zookeeper_servers"],
        "chronos": ["chronos_mesos_masters", "chronos_zookeeper_servers"],
        "gateway": ["app_gateway_marathon_servers"],
        "mesos_agent": ["mesos_agent_masters", "mesos_agent_zookeeper"],
    }
    for node, names in told.items():
        count = agents if node == "mesos_agent" else masters
        for index in range(1, count + 1):
            variables = made[f"{instances.named(node, index)}.configure"].variables
            assert {name: variables[name] for name in names} == dict.fromkeys(names, addresses), node
        assert f"{instances.named(node, count + 1)}.configure" not in made


def test_masters_are_one_play_and_agents_wait_for_all_of_them() -> None:
    made = steps(master_count=3, agent_count=5)
    first = waves.segment(made, ())
    lanes = waves.lanes(first)
    assert len(lanes) == 2, "one process for the masters, one for what the agents need"
    plays = [play for lane in lanes for play in waves.plays(lane)]
    assert [(_operation(play), len(play.steps)) for play in plays if "masters" in play.steps] == [
        ("zookeeper", 3),
        ("mesos_master", 3),
        ("marathon", 3),
        ("chronos", 3),
        ("app_gateway", 3),
    ]
    then = [step for step in made if step not in first]
    assert [step.node for step in then] == [instances.named("mesos_agent", index) for index in range(1, 6)]
    assert len(waves.plays(then)) == 1 and waves.segment(then, {step.name for step in first}) == then


def test_what_nobody_chose_is_left_to_the_inventory() -> None:
    made = {step.name: step.variables for step in steps()}
    assert set(made["mesos_master.configure"]) == {"mesos_master_masters", "mesos_master_zookeeper"}
    assert set(made["marathon.configure"]) == {"marathon_mesos_masters", "marathon_zookeeper_servers"}
    assert made["driver.configure"] == {"nvidia_driver_enabled": False}
    assert made["homes.configure"] == made["repositories.configure"] == made["lustre.configure"] == {}


def test_agents_with_gpus() -> None:
    given = {"enable_gpu_support": True, "num_gpus": 4, "gpu_model": "V100", "gpu_devices": ["all"]}
    made = {step.name: step.variables for step in steps(**given)}
    assert made["mesos_agent[2].configure"]["mesos_agent_gpu_devices"] == ["all"]
    assert made["driver[2].configure"] == {"nvidia_driver_enabled": True}
    found = scope(**given)
    requests = [MachineRequest.of(found.topology.nodes[name], found) for name in ("agents[2]", "masters")]
    assert [(request.gpus, request.gpu_model) for request in requests] == [(4, "V100"), (0, "")]


def test_passwords_are_secrets_and_no_other_secret_is_passed_on() -> None:
    made = steps(master_count=3, marathon_password=PASSWORD, chronos_password=PASSWORD)
    for step in made:
        assert PASSWORD not in str(step.public()), step.name
    holders = {step.node.partition("[")[0]: step.secrets for step in made if step.secrets}
    assert holders == {
        "marathon": {"marathon_http_password"},
        "chronos": {"chronos_http_password"},
    }, "machines get what they log in with from each other"


@pytest.mark.parametrize(
    "password", ["too-short", "with a blank in it", 'with-"quotes"-in-it', "with-a-\\-in-it"]
)
def test_a_password_that_the_roles_refuse_is_refused_before_anything_is_set_up(password: str) -> None:
    for name in ("marathon_password", "chronos_password"):
        with pytest.raises(BadInput, match=name):
            steps(**{name: password})


def test_libmesos_encrypts_with_the_certificate_of_its_machine() -> None:
    files = {"certificate": "/srv/tls/m.pem", "key": "/srv/tls/m.key", "ca": "/srv/tls/ca.pem"}
    given = {f"mesos_tls_{name}": path for name, path in files.items()}
    made = {step.name: step.variables for step in steps(master_count=3, **given)}
    for role in ("marathon", "chronos"):
        for name, path in files.items():
            assert made[f"{role}[3].configure"][f"{role}_mesos_tls_{name}"] == path


def test_outputs_are_addresses_of_all_instances() -> None:
    found = scope(master_count=3, agent_count=2)
    outputs = found.topology.outputs
    assert found.evaluate(outputs["node_ips"]) == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    assert found.evaluate(outputs["agent_ips"]) == ["192.0.2.4", "192.0.2.5"]
    assert scope().evaluate(outputs["node_ips"]) == ["192.0.2.1"]


def test_a_plan_for_eight_machines(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        checks, "check", lambda *_steps: []
    )  # all eight are this machine, which no role takes
    site.machines(**{f"n{last}": {**HERE, "ansible_host": f"127.0.0.{last}"} for last in range(1, 9)})
    given = [f"--input={name}=1" for name in ("master_num_cpus", "agent_num_cpus")]
    given += ["--input=master_count=3", "--input=agent_count=5"]
    secrets = {"GPUFARM_INPUT_MARATHON_PASSWORD": PASSWORD}
    answer = site.gpufarm("plan", TEMPLATE, "--pool", site.pool, "--json", *given, **secrets)
    assert answer.status == 0, answer.error
    assert PASSWORD not in answer.output + answer.error
    found = json.loads(answer.output)
    machines = {name: machine["host"] for name, machine in found["machines"].items()}
    assert sorted(machines.values()) == [f"n{last}" for last in range(1, 9)]
    hosts = {step["step"]: step["host"] for step in found["steps"]}
    assert hosts["zookeeper[3].configure"] == machines["masters[3]"]
    assert hosts["mesos_agent[5].configure"] == machines["agents[5]"]


BROKEN = {
    "an agent without master": (
        "        - host: agents\n        - master: mesos_master\n",
        "        - host: agents\n",
        "node mesos_agent needs the requirement master; add it and name a ",
    ),
    "an agent that follows Marathon": (
        "        - host: agents\n        - master: mesos_master\n",
        "        - host: agents\n        - master: marathon\n",
        "requirement master of node mesos_agent cannot be met by marathon",
    ),
    "a master without ZooKeeper": (
        "        - zookeeper: zookeeper\n",
        "",
        "node mesos_master needs the requirement zookeeper; add it and name a ",
    ),
    "a gateway to Chronos": (
        "        - marathon: marathon\n",
        "        - marathon: chronos\n",
        "requirement marathon of node gateway cannot be met by chronos",
    ),
    "two masters": (
        "default: 1\n      constraints:\n        - valid",
        "default: 2\n      constraints:\n        - valid",
        '"2" is not one of 1, 3, 5',
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_clusters_that_cannot_work_are_refused(site: Site, name: str) -> None:
    old, new, sentence = BROKEN[name]
    text = TEMPLATE.read_text()
    assert old in text
    path = site.root / "broken.yaml"
    path.write_text(text.replace(old, new, 1).replace("../types", str(TEMPLATE.parents[1] / "types")))
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and sentence in answer.error, answer.error
