"""Templates in the words of INDIGO-DataCloud and INFN Cloud are read as they are, and mean our roles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._indigo_app import (
    chronos_job,
    compose_definition,
    marathon_app,
)
from deployer_site import DATA, Site
from gpufarm import document, evaluated, indigo, inputs, instances, plan, template, waves
from gpufarm.catalogue import Catalogue
from gpufarm.conformance import check_template
from gpufarm.deployment import evaluate_outputs
from gpufarm.errors import BadInput, BadTemplate
from gpufarm.functions import Scope
from gpufarm.instances import multiply
from gpufarm.match import MachineRequest
from gpufarm.state import Deployment

INDIGO = DATA / "indigo"
NOTEBOOKS = INDIGO / "notebooks.yaml"
MESOS = INDIGO / "mesos.yaml"
APPS = INDIGO / "apps.yaml"
ELASTIC = INDIGO / "elastic.yaml"
DOCKER = INDIGO / "docker.yaml"
PRIVATE = INDIGO / "private.yaml"
ROOT = Path(__file__).resolve().parents[3]
USER = {
    "os_user_name": "ada",
    "os_user_ssh_public_key": "ssh-ed25519 AAAA ada",
    "os_user_add_to_sudoers": True,
}


def scope(path: Path, **given: Any) -> Scope:
    """The instances of a template, with addresses."""
    source, topology = template.read(path)
    known = inputs.complete(topology, given, Catalogue(source).names("data_types"))
    made = multiply(topology, instances.counts(topology, known, {}))
    machines = [node.name for node in made.nodes.values() if node.is_machine]
    return Scope(made, known).on({name: f"192.0.2.{number}" for number, name in enumerate(machines, start=1)})


def steps(path: Path, **given: Any) -> dict[str, dict[str, Any]]:
    """The variables of each step."""
    found = scope(path, **given)
    hosts = {name: name for name, node in found.topology.nodes.items() if node.is_machine}
    return {step.name: step.variables for step in plan.steps(found, hosts, frozenset(given))}


@pytest.mark.parametrize("path", sorted(INDIGO.glob("*.yaml")), ids=lambda path: path.stem)
def test_valid(site: Site, path: Path) -> None:
    answer = site.gpufarm("validate", path)
    assert answer.status == 0, answer.error


def test_notebooks() -> None:
    found = steps(NOTEBOOKS, num_gpus=1, gpu_partition_flavor="7x 1g.10gb MIG GPUs", users=[USER])
    assert found["vm_server.configure"] == {"user_accounts_users": [USER]}
    hub = found["notebooks.configure"]
    assert hub["jupyterhub_public_host"] == "192.0.2.1.nip.example.org"
    assert hub["mig_partition_flavor"] == "7x 1g.10gb MIG GPUs" and hub["indigo_num_gpus"] == 1
    assert hub["jupyterhub_iam_admin_groups"] == "beta_tester", "the default of INFN Cloud, not of the role"
    assert hub["jupyterhub_iam_groups"] == "ml-infn-users" and hub["jupyterhub_spawner"] == "docker"


def test_a_mesos_cluster() -> None:
    found = scope(MESOS, slave_num=3, marathon_password="opensesame")
    hosts = {name: name for name, node in found.topology.nodes.items() if node.is_machine}
    made = plan.steps(found, hosts, frozenset({"slave_num", "marathon_password"}))
    variables = {step.name: step.variables for step in made}
    assert sum(name.startswith("mesos_master") and "server" not in name for name in variables) == 3
    masters = [f"192.0.2.{number}" for number in (1, 2, 3)]
    slave = variables["mesos_slave[3].configure"]
    assert slave == {"mesos_agent_masters": masters, "indigo_use_gpu": True}
    master = variables["mesos_master[2].configure"]
    assert master["marathon_http_password"] == "opensesame" and master["marathon_gpus"] is True
    assert master["marathon_http_user"] == "admin" and master["indigo_chronos"] is True
    gateway = variables["mesos_load_balancer.configure"]
    assert gateway["indigo_masters"] == masters and gateway["app_gateway_marathon_user"] == "admin"
    app = variables["tensorflow.configure"]
    assert (app["marathon_app_user"], app["marathon_app_password"]) == ("admin", "opensesame")
    assert app["marathon_app_secret_env"] == {"PASSWORD": "notebook-password"}
    said = marathon_app(app["indigo_app"])
    assert (said["id"], said["gpus"], said["mem"]) == ("/tensorflow", 1, 1024.0)
    assert said["portDefinitions"] == [{"port": 10001, "protocol": "tcp"}]
    secrets = {step.name: step.secrets for step in made}
    assert secrets["tensorflow.configure"] == {"marathon_app_password", "marathon_app_secret_env"}
    assert secrets["mesos_load_balancer.configure"] == {"app_gateway_marathon_password"}
    wave = waves.levels(made)
    assert wave["mesos_slave.configure"] == wave["mesos_master[3].configure"] + 1, "it needs its secret"
    assert wave["mesos_load_balancer.configure"] == wave["mesos_master.configure"] + 1
    assert wave["tensorflow.configure"] > wave["mesos_slave.configure"], "somebody has to run it"


def test_apps_and_jobs() -> None:
    found = scope(APPS, image="mine:1", gpus=2)
    made = {step.name: step for step in plan.steps(found, {}, frozenset({"image", "gpus"}))}
    app = made["tensorflow.configure"]
    assert app.host == "localhost" and app.secrets == {"marathon_app_secret_env"}
    assert app.variables["marathon_app_secret_env"] == {"TOKEN": "opensesame"}
    said = marathon_app(app.variables["indigo_app"])
    assert (said["id"], said["gpus"], said["cpus"]) == ("/tensorflow", 2, 1.0)
    assert said["container"]["docker"]["image"] == "mine:1"
    job = chronos_job(made["job.configure"].variables["indigo_app"])
    assert (job["name"], job["retries"], job["command"]) == ("job", 3, "/bin/bash run.sh")
    assert job["container"]["image"] == "indigodatacloud/ambertools_app" and "gpus" not in job
    upload = chronos_job(made["upload.configure"].variables["indigo_app"])
    assert upload["parents"] == ["job"] and "schedule" not in upload
    assert "parents" not in job and job["schedule"] == "R0/2015-12-25T17:22:00Z/PT5M"
    wave = waves.levels(list(made.values()))
    assert wave["upload.configure"] > wave["job.configure"], "Chronos wants the parent first"


def test_containers_on_a_machine() -> None:
    found = scope(DOCKER, image="nginx")
    made = {step.name: step for step in plan.steps(found, {"server": "a"}, frozenset())}
    web, tracking = made["docker.configure"], made["compose.configure"]
    assert web.variables["compose_project_name"] == "web" and web.host == "a"
    assert web.variables["indigo_app"]["image"] == "nginx" and web.variables["indigo_app"]["ports"] == [
        "8080:80"
    ]
    assert web.variables["indigo_secret_environment"] == [{"TOKEN": "opensesame"}]
    assert web.secrets == tracking.secrets == {"indigo_secret_environment"}
    assert "opensesame" not in str(web.variables["indigo_app"])
    assert tracking.variables["indigo_compose_url"] == "https://example.org/compose.yaml"
    assert made["condor.configure"].variables["indigo_app"]["image"] == "htcondor/mini"
    said = compose_definition({**web.variables["indigo_app"], "variables": ["TOKEN"]})
    assert said["services"]["web"]["image"] == "nginx:1.27"
    elastic, model = made["elastic.configure"], made["model.configure"]
    assert elastic.variables == {
        "compose_project_name": "elastic",
        "indigo_compose_url": "",
        "indigo_secret_environment": [{"ELASTIC_PASSWORD": "opensesame"}],
    }, "its file is the site's"
    said = compose_definition({**model.variables["indigo_app"], "variables": []})["services"]["deepaas"]
    assert said["image"] == "deephdc/deep-oc-dogs_breed_det:latest" and said["ports"] == ["5000:5000"]
    assert "volumes" not in said
    (given,) = model.variables["indigo_secret_environment"]
    assert given["RCLONE_CONFIG_DEEPNC_PASS"] == "opensesame" and given["RCLONE_CONFIG_DEEPNC_USER"] == "ada"
    assert model.secrets == {"indigo_secret_environment"}


def test_an_elastic_cluster_of_slurm() -> None:
    found = scope(ELASTIC)
    hosts = {name: name for name, node in found.topology.nodes.items() if node.is_machine}
    made = {step.name: step for step in plan.steps(found, hosts, frozenset())}
    assert {found.topology.nodes[name].inventory_group for name in ("front_end", "worker", "worker[2]")} == {
        *("slurm_controllers", "slurm_nodes")
    }
    wave = waves.levels(list(made.values()))
    assert wave["worker[2].configure"] > wave["front_end.configure"], "it needs the key of the cluster"
    assert not any(name.startswith(("elastic_cluster", "central", "client", "router")) for name in made)


@pytest.mark.parametrize("undeploy", [False, True], ids=["deploy", "undeploy"])
def test_machines_of_slurm_know_each_other(undeploy: bool) -> None:
    found = scope(ELASTIC, at_first=3)
    addresses = {name: found.attributes[name]["private_address"][0] for name in found.attributes}
    hosts = {name: name for name in addresses}
    done = plan.steps(found, hosts, frozenset({"at_first"}), undeploy=undeploy)
    made = {step.node: step.variables for step in done}
    workers = [addresses[name] for name in ("worker_server", "worker_server[2]", "worker_server[3]")]
    assert made["front_end"]["slurm_controller_nodes"] == workers
    for name in ("worker", "worker[2]", "worker[3]"):
        assert made[name]["slurm_node_controllers"] == [addresses["front_end_server"]]
    for role, node in (("slurm_controller", "front_end"), ("slurm_node", "worker[2]")):
        spec = yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text())
        options = spec["argument_specs"]["main"]["options"]
        needed = {name for name, option in options.items() if option.get("required")}
        assert needed <= made[node].keys(), role


@pytest.mark.parametrize("workers", [1, 5])
def test_the_number_of_workers_is_within_the_bounds_of_an_elastic_cluster(workers: int) -> None:
    topology = template.read(ELASTIC)[1]
    given = {"most": 5, "at_first": 2, "access_key": "1234"}
    assert instances.counts(topology, given, {})["worker_server"] == 2
    numbers = instances.counts(topology, given, {"worker_server": workers})
    made = multiply(topology, numbers)
    assert len(made.groups["worker"]) == len(made.groups["worker_server"]) == workers


def test_more_workers_than_an_elastic_cluster_may_have_are_refused() -> None:
    topology = template.read(ELASTIC)[1]
    for number in (0, 6):
        with pytest.raises(BadInput, match=rf"worker_server={number}: elastic\.yaml allows 1 to 5 instances"):
            instances.counts(topology, {"most": 5, "at_first": 2}, {"worker_server": number})


def test_an_elastic_cluster_begins_with_a_worker() -> None:
    """Clouds begin without; there is nobody here who would start the first one."""
    topology = template.read(ELASTIC)[1]
    assert instances.counts(topology, {"most": 5, "at_first": 0}, {})["worker_server"] == 1
    with pytest.raises(BadInput, match="has a count of -1; it has to be 1 or more"):
        instances.counts(topology, {"most": 5, "at_first": -1}, {})
    private = template.read(NOTEBOOKS)[1]
    node = private.nodes["vm_server"]
    none = replace(node, capabilities={**node.capabilities, "scalable": {"count": 0}})
    with pytest.raises(BadInput, match="has a count of 0; it has to be 1 or more"):
        instances.counts(replace(private, nodes={**private.nodes, "vm_server": none}), {}, {})


def test_inputs_are_read_as_their_orchestrator_reads_them() -> None:
    topology = template.read(PRIVATE)[1]
    assert topology.inputs["os_version"].default == "12.10", "as it is written, and no number"
    constraints = topology.inputs["os_version"].schema["constraints"]
    assert constraints == [{"valid_values": ["11", "12.10"]}]
    assert topology.inputs["storage_size"].schema["constraints"] == [{"in_range": ["1 GB", "100 GB"]}]
    assert template.read_inputs(PRIVATE)[1].inputs == topology.inputs
    assert topology.nodes["other"].properties["fail2ban_enabled"] is True
    given = template.read(ELASTIC)[1].inputs
    assert (given["most"].default, given["access_key"].default) == (5, "1234")


SERVER = """\
tosca_definitions_version: tosca_simple_yaml_1_0
imports:
  - indigo_types: https://baltig.infn.it/infn-cloud/tosca-types/raw/v3.4.0/tosca_types/infrastructure/docker_types.yaml
topology_template:
  inputs:
    locked: {type: string, default: "false", constraints: [{pattern: "true|false"}]}
    words: {type: string, default: 7, constraints: &some [{valid_values: [7, 8]}]}
    number: {type: integer, default: 7, constraints: *some}
  node_templates:
    server:
      type: tosca.nodes.indigo.Compute
      properties:
        fail2ban_enabled: {get_input: locked}
    web:
      type: tosca.nodes.indigo.dockerRun
      properties:
        docker_appname: web
        environment_variables:
          - FAIL2BAN: {get_input: locked}
          - VERSION: {concat: [v, {get_input: locked}]}
      requirements:
        - host: server
  outputs:
    locked: {value: {concat: ["fail2ban=", {get_input: locked}]}}
    said: {value: {get_property: [server, fail2ban_enabled]}}
"""


def written(site: Site, text: str) -> Path:
    """A template of one's own."""
    path = site.root / "own.yaml"
    path.write_text(text)
    return path


def test_a_text_is_a_boolean_only_where_a_property_wants_one(site: Site) -> None:
    path = written(site, SERVER)
    answer = site.gpufarm("validate", path)
    assert answer.status == 0, answer.error
    source, topology = template.read(path)
    assert (topology.inputs["locked"].kind, topology.inputs["locked"].default) == ("string", "false")
    found = scope(path, locked="true")
    made = {step.name: step for step in plan.steps(found, {"server": "a"}, frozenset({"locked"}))}
    told = made["web.configure"].variables["indigo_secret_environment"]
    assert told == [{"FAIL2BAN": "true"}, {"VERSION": "vtrue"}]
    known = found.evaluate(topology.outputs)
    assert known == {"locked": "fail2ban=true", "said": True}
    check_template(source, dict(found.inputs))
    evaluated.examine(found, source)
    with pytest.raises(BadTemplate, match="fail2ban_enabled of server: the value is not what"):
        evaluated.examine(replace(found, inputs={**found.inputs, "locked": "maybe"}), source)


LOGINS = """\
tosca_definitions_version: tosca_simple_yaml_1_0
imports:
  - indigo_types: https://baltig.infn.it/infn-cloud/tosca-types/raw/v3.4.0/tosca_types/infrastructure/docker_types.yaml
topology_template:
  inputs:
    of_policy: {type: string, default: hunter2}
    of_proxy: {type: string, default: hunter2}
    of_cloud: {type: string, default: hunter2}
    of_manager: {type: string, default: hunter2}
    of_container: {type: string, default: hunter2}
    of_pair: {type: string, default: hunter2}
    of_system: {type: string, default: hunter2}
    plain: {type: string, default: web}
    switch: {type: boolean, default: false}
    variables: {type: list, entry_schema: {type: map}, default: []}
  node_templates:
    network:
      type: tosca.nodes.indigo.network.Network
      properties: {network_type: private, proxy_credential: {user: u, token: {get_input: of_proxy}}}
    cluster:
      type: tosca.nodes.indigo.ElasticCluster
      properties: {im_auth: {get_input: of_manager}, secret_token: {get_input: of_cloud}}
      requirements: [{lrms: front}, {wn: worker}]
    front:
      type: tosca.nodes.indigo.LRMS.FrontEnd.Slurm
      properties: {wn_ips: {get_attribute: [two, private_address]}}
      requirements: [{host: one}]
    worker:
      type: tosca.nodes.indigo.LRMS.WorkerNode.Slurm
      properties: {front_end_ip: {get_attribute: [one, private_address, 0]}}
      requirements: [{host: two}]
    one:
      type: tosca.nodes.indigo.Compute
      capabilities: {os: {properties: {credential: {user: root, token: {get_input: of_system}}}}}
    two:
      type: tosca.nodes.indigo.Compute
    web:
      type: tosca.nodes.indigo.dockerRun
      properties:
        docker_appname: {get_input: plain}
        environment_variables:
          - {LOGIN: {get_input: of_container}}
          - {key: PASSWORD, value: {get_input: of_pair}}
          - {TOKENS: {get_input: switch}}
      requirements: [{host: one}]
    other:
      type: tosca.nodes.indigo.dockerRun
      properties: {docker_appname: other, environment_variables: {get_input: variables}}
      requirements: [{host: one}]
  policies:
    - somewhere:
        type: tosca.policies.indigo.CredentialsAwareSlaPlacement
        properties: {username: a, password: {get_input: of_policy}}
        targets: [two]
"""


def test_inputs_that_lead_to_a_secret_are_secrets(site: Site) -> None:
    path = written(site, LOGINS)
    inputs_read = template.read(path)[1].inputs
    assert {name for name, entry in inputs_read.items() if not entry.secret} == {"plain", "switch"}
    site.machines(a={}, b={})
    for name in ("of_system", "of_policy", "variables"):
        answer = site.gpufarm("plan", path, "--pool", site.pool, "--input", f"{name}=[]")
        assert answer.status == 2 and f"--input {name}: it is a secret" in answer.error


def test_inputs_that_share_a_constraint_keep_their_types(site: Site) -> None:
    inputs_read = template.read(written(site, SERVER))[1].inputs
    assert inputs_read["words"].schema["constraints"] == [{"valid_values": ["7", "8"]}]
    assert inputs_read["number"].schema["constraints"] == [{"valid_values": [7, 8]}]


def test_others_inputs_stay_strict(site: Site) -> None:
    path = site.root / "strict.yaml"
    own = PRIVATE.read_text().replace(
        "https://baltig.infn.it/infn-cloud/tosca-types/raw/v3.4.0/tosca_types/applications/iam_types.yaml",
        str(ROOT / "tosca/types/indigo_types.yaml"),
    )
    path.write_text(own)
    answer = site.gpufarm("validate", path)
    assert answer.status == 2
    assert '"12.1" is no string; write it in quotes' in answer.error
    assert "constraints have to be a list" in answer.error


def test_a_private_network_and_a_volume_stand_for_nothing(site: Site) -> None:
    found = scope(PRIVATE)
    made = plan.steps(found, {"server": "a", "other": "b"}, frozenset())
    assert {step.name for step in made} == {"server.configure", "other.configure"}
    assert evaluate_outputs(found, Deployment("x", str(PRIVATE), ""))["jump"] == "ssh -J user@"


def test_a_policy_that_does_nothing_is_still_read(site: Site) -> None:
    path = site.root / "elastic.yaml"
    path.write_text(ELASTIC.read_text().replace("          username: {get_input: access_key}\n", ""))
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and "needs the property username" in answer.error
    path.write_text(ELASTIC.read_text().replace("targets: [worker_server]", "targets: [nobody]"))
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and "is for nobody, which is no node" in answer.error


def test_artifacts_that_are_not_there(site: Site) -> None:
    path = site.root / "apps.yaml"
    path.write_text(
        APPS.read_text().replace(
            "        image:\n          file: indigo", "        picture:\n          file: indigo"
        )
    )
    answer = site.gpufarm("plan", path)
    assert answer.status == 2 and "node job has no artifact image" in answer.error


def test_machines_are_chosen_by_what_the_capability_host_says() -> None:
    found = scope(NOTEBOOKS, num_gpus=2, gpu_model="A100")
    request = MachineRequest.of(found.topology.nodes["vm_server"], found)
    assert (request.gpus, request.gpu_model, request.distribution, request.version) == (
        2,
        "A100",
        "debian",
        "12",
    )
    found = scope(NOTEBOOKS, gpu_model="A100")
    assert MachineRequest.of(found.topology.nodes["vm_server"], found).gpu_model == "", "no GPU, no model"


def test_containers_of_one_name_on_one_machine_are_refused(site: Site) -> None:
    same = written(site, LOGINS.replace("docker_appname: other", "docker_appname: web"))
    with pytest.raises(
        BadInput, match="nodes web and other on machine one have the same compose_project_name, "
    ):
        steps(same, of_container="x")
    apart = LOGINS.replace("docker_appname: other", "docker_appname: web").split("    other:")
    apart[1] = apart[1].replace("host: one", "host: two")
    assert "other.configure" in steps(written(site, "    other:".join(apart)))


def test_only_a_description_of_an_input_may_stand_twice(site: Site) -> None:
    described = LOGINS.replace(
        "of_policy: {type: string,", "of_policy: {description: one, description: two, type: string,"
    )
    answer = site.gpufarm("validate", written(site, described))
    assert answer.status == 0, answer.error
    node = "    description: {type: tosca.nodes.indigo.Compute}\n"
    entry = "    description: {type: string, default: x}\n"
    for text in (
        described.replace("  policies:", f"{node}{node}  policies:"),
        described.replace("  node_templates:", f"{entry}{entry}  node_templates:"),
    ):
        answer = site.gpufarm("validate", written(site, text))
        assert answer.status == 2
        assert 'the key "description" stands here a second time; remove one' in answer.error


def test_the_key_description_of_other_templates_stands_once(site: Site) -> None:
    text = DATA.joinpath("service.yaml").read_text().removeprefix("---\n")
    with pytest.raises(BadTemplate, match='the key "description" stands here a second time'):
        document.read(written(site, f"description: one\ndescription: two\n{text}"))


@pytest.mark.parametrize(
    ("most", "why"),
    [
        ("{get_attribute: [one, public_address]}", "has to be an integer, not"),
        ("{get_attribute: [front, installed]}", "needs installed of front, which is known only after"),
        ('{concat: ["1", "2"]}', "has to be an integer, not '12'"),
    ],
)
def test_the_largest_number_of_workers_is_a_number(site: Site, most: str, why: str) -> None:
    topology = template.read(written(site, LOGINS))[1]
    front = replace(topology.nodes["front"], attributes={"installed": None})
    worker = replace(topology.nodes["worker"], capabilities={"wn": {"max_instances": yaml.safe_load(most)}})
    two = replace(topology.nodes["two"], capabilities={"scalable": {"count": 1}})
    nodes = {**topology.nodes, "front": front, "worker": worker, "two": two}
    one = replace(topology.nodes["one"], attributes={"public_address": ["192.0.2.1"]})
    with pytest.raises(BadInput, match=f"max_instances of node worker {why}"):
        instances.counts(replace(topology, nodes={**nodes, "one": one}), {}, {})


def test_a_capability_of_ones_own_may_be_called_wn(site: Site) -> None:
    own = """
capability_types:
  my.Wn:
    derived_from: tosca.capabilities.Root
node_types:
  my.Worker:
    derived_from: tosca.nodes.SoftwareComponent
    capabilities:
      wn: {type: my.Wn}
topology_template:"""
    text = LOGINS.replace("\ntopology_template:", own).replace(
        "  policies:", "    mine: {type: my.Worker, requirements: [{host: two}]}\n  policies:"
    )
    text = text.replace(
        "    two:\n      type: tosca.nodes.indigo.Compute\n",
        "    two:\n"
        "      type: tosca.nodes.indigo.Compute\n"
        "      capabilities: {scalable: {properties: {count: 1}}}\n",
    )
    assert instances.counts(template.read(written(site, text))[1], {}, {}) == {"one": 1, "two": 1}


def test_outputs() -> None:
    found = scope(NOTEBOOKS)
    deployment = Deployment(
        "x", str(NOTEBOOKS), "", machines={"vm_server": {"host": "a", "address": "192.0.2.7"}}
    )
    assert evaluate_outputs(found, deployment) == {
        "node_ip": "192.0.2.7",
        "jupyter_endpoint": "https://192.0.2.7.nip.example.org:8888",
        "os_users": None,
    }
    named = evaluate_outputs(scope(NOTEBOOKS, users=[USER]), deployment)
    assert named["os_users"] == USER


def test_outputs_under_the_names_of_indigo() -> None:
    topology = template.read(NOTEBOOKS)[1]
    deployment = Deployment(
        "x",
        str(NOTEBOOKS),
        "",
        machines={
            "vm_server": {"host": "a", "address": "192.0.2.7"},
            "vm_server[2]": {"host": "b", "address": "192.0.2.8"},
        },
        steps={
            "vm_server.configure": {"attributes": {}},
            "notebooks.configure": {"attributes": {"endpoint": "https://hub.example.org:8888"}},
        },
        outputs={"os_users": [USER], "other": None, "label": "mine"},
    )
    assert indigo.outputs(deployment, topology) == {
        "node_ip": "192.0.2.7",
        "vm_server_ip": "192.0.2.7",
        "vm_server[2]_ip": "192.0.2.8",
        "jupyter_endpoint": "https://hub.example.org:8888",
        "ssh_account": "ada",
        "os_users": [USER],
        "label": "mine",
    }
    deployment.outputs = {"jupyter_endpoint": "https://mine", "os_users": ["bob", "eve"]}
    named = indigo.outputs(deployment, topology)
    assert (named["jupyter_endpoint"], named["ssh_account"]) == ("https://mine", "bob"), "the template wins"


@pytest.mark.parametrize(
    "url",
    [
        "https://raw.githubusercontent.com/indigo-dc/tosca-types/master/custom_types.yaml",
        "https://raw.githubusercontent.com/indigo-dc/tosca-types/v4.0.0/custom_types.yaml",
        "https://baltig.infn.it/infn-cloud/tosca-types/raw/v3.4.0/tosca_types/applications/jupyter_types.yaml",
        "https://raw.githubusercontent.com/grycap/tosca/main/custom_types.yaml",
    ],
)
@pytest.mark.parametrize("form", ["{url}", "indigo_custom_types: {url}", "types: {{file: {url}}}"])
def test_their_libraries_are_imported_by_url(tmp_path: Path, url: str, form: str) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(
        f"tosca_definitions_version: tosca_simple_yaml_1_0\nimports:\n  - {form.format(url=url)}\n"
        "topology_template: {node_templates: {server: {type: tosca.nodes.indigo.Compute}}}\n"
    )
    assert list(template.read(path)[1].nodes) == ["server"]


def test_no_other_library_is(site: Site) -> None:
    path = site.root / "one.yaml"
    path.write_text(
        "tosca_definitions_version: tosca_simple_yaml_1_0\nimports:\n  - https://example.org/types.yaml\n"
        "topology_template: {node_templates: {server: {type: tosca.nodes.indigo.Compute}}}\n"
    )
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and "is on the network; import a copy" in answer.error


def changed(site: Site, old: str, new: str) -> Path:
    path = site.root / "changed.yaml"
    text = NOTEBOOKS.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_the_number_of_instances_may_come_from_an_input(site: Site) -> None:
    path = changed(site, "count: 1", "count: {get_input: num_cpus}")
    found = scope(path, num_cpus=4)
    assert len(found.topology.groups["vm_server"]) == 4
    everywhere = found.evaluate({"get_attribute": ["vm_server", "public_address"]})
    assert everywhere == [f"192.0.2.{number}" for number in range(1, 5)]
    assert found.evaluate({"get_attribute": ["HOST", "public_address", 0]}, "notebooks[3]") == "192.0.2.3"


def test_what_cannot_be_meant_is_refused(site: Site) -> None:
    kubernetes = changed(
        site,
        "tosca.nodes.DODAS.single-node-jupyterhub\n      properties:",
        "tosca.nodes.indigo.JupyterHub\n      properties:\n        spawner: kubernetes",
    )
    answer = site.gpufarm("validate", kubernetes)
    assert answer.status == 2 and '"kubernetes" is not one of local' in answer.error


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("tosca.nodes.indigo.LRMS.FrontEnd.Kubernetes", "there is no Kubernetes here"),
        ("tosca.nodes.DODAS.HelmInstall.Spark", "there is no Kubernetes here"),
        ("tosca.nodes.indigo.OnedataSpace", "Onedata is not supported"),
        ("tosca.nodes.indigo.Kepler", "no role here stands for it"),
    ],
)
def test_types_without_a_meaning_are_refused_with_the_reason(site: Site, kind: str, why: str) -> None:
    path = changed(site, "tosca.nodes.DODAS.single-node-jupyterhub", kind)
    answer = site.gpufarm("validate", path)
    assert answer.status == 2
    assert f"the type {kind} is not supported: {why}; docs/indigo.md lists" in answer.error
    assert "did you mean" not in answer.error


def variables() -> set[str]:
    """The variables of all roles."""
    found: set[str] = set()
    for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"):
        entries = yaml.safe_load(path.read_text())["argument_specs"]
        found |= set(
            entries.get("main", {}).get("options", {})
        )  # roles that others include have no such entry
    return found


def properties_in(value: Any) -> set[str]:
    """The properties of its own node that an expression reads."""
    if isinstance(value, dict):
        path = value.get("get_property")
        if isinstance(path, list):
            return {path[1]} if path[0] == "SELF" else set()
        return set().union(*map(properties_in, value.values()))
    return set().union(*map(properties_in, value)) if isinstance(value, list) else set()


def test_every_word_leads_to_a_variable_of_a_role() -> None:
    types = yaml.safe_load((ROOT / "tosca/types/indigo_types.yaml").read_text())["node_types"]
    for name, body in types.items():
        passed = body.get("interfaces", {}).get("Standard", {}).get("inputs", {})
        own = {"indigo_use_gpu", "indigo_num_gpus", "indigo_chronos", "indigo_masters", "indigo_app"}
        own |= {"indigo_secret_environment", "indigo_compose_url"}
        known = variables() | own
        assert set(passed) <= known, name
        used = set().union(*(properties_in(entry["value"]) for entry in passed.values()))
        idle = {
            key
            for key, one in body.get("properties", {}).items()
            if one.get("metadata") == {"effect": "none"}
        }
        silent = {
            *("client_id", "registration_access_token", "spawner", "authenticator"),
            *("marathon_enable_ssl", "chronos_enable_ssl", "proxy_host"),
        }
        assert set(body.get("properties", {})) == (used | idle | silent) & set(body.get("properties", {})), (
            name
        )
        assert not used & idle, name
