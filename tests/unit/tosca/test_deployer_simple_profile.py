"""Templates that use nothing but the types of the TOSCA Simple Profile are read, planned and deployed."""

from __future__ import annotations

from pathlib import Path

import pytest
from deployer_site import Site
from deployer_stub import install
from gpufarm import template
from gpufarm.functions import Scope
from gpufarm.match import MachineRequest, match
from gpufarm.pool import Machine, Pool

ONE_SERVER = """\
tosca_definitions_version: tosca_simple_yaml_{version}

description: One server with a given number of processors.

topology_template:
  inputs:
    processors:
      type: integer
      description: Number of CPUs of the server.
      constraints:
        - valid_values: [1, 2, 4, 8]

  node_templates:
    server:
      type: {type}
      capabilities:
        host:
          properties:
            num_cpus: {{ get_input: processors }}
            mem_size: 2048 MB
            disk_size: 10 GB
        os:
          properties:
            architecture: x86_64
            type: Linux
            distribution: Debian
            version: 12

  outputs:
    private_ip:
      description: Address of the server.
      value: {{ get_attribute: [server, private_address] }}
"""


@pytest.mark.parametrize("kind", ["tosca.nodes.Compute", "tosca:Compute", "Compute"])
@pytest.mark.parametrize("version", ["1_0", "1_2", "1_3"])
def test_one_server(site: Site, monkeypatch: pytest.MonkeyPatch, version: str, kind: str) -> None:
    path = site.root / "one.yaml"
    path.write_text(ONE_SERVER.format(version=version, type=kind))
    assert site.gpufarm("validate", path).status == 0
    farm = install(monkeypatch, site)
    answer = farm.gpufarm("deploy", path, "--pool", site.pool, "--input", "processors=2")
    assert answer.status == 0 and answer.output == "private_ip: m1\n", answer


def test_the_least_template(site: Site) -> None:
    path = site.root / "least.yaml"
    path.write_text(
        "tosca_definitions_version: tosca_simple_yaml_1_3\n"
        "topology_template: {node_templates: {server: {type: tosca.nodes.Compute}}}\n"
    )
    assert site.gpufarm("validate", path).status == 0


def test_architecture_and_kind_of_system_choose_machines(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(ONE_SERVER.format(version="1_3", type="tosca.nodes.Compute"))
    _library, topology = template.read(path)
    request = MachineRequest.of(topology.nodes["server"], Scope(topology, {"processors": 2}))
    assert (request.system, request.architecture) == ("linux", "x86_64")
    arm, intel = (
        Machine(name, name, 8, 10**11, 10**12, "debian", "12", (), name) for name in ("aarch64", "x86_64")
    )
    pool = Pool(path, {"a": arm, "b": intel}, {})
    assert match({"server": request}, pool, {}, {})["server"] == intel
    assert request.lacks(arm) == ["x86_64 (has aarch64)"]
    assert MachineRequest(system="windows").lacks(intel) == ["windows (has linux)"]
