# SPDX-License-Identifier: GPL-3.0-or-later
"""A service with a catalogue, an issuer and a client for each user."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from doubles.issuer import ANN, Issuer
from fastapi.testclient import TestClient
from gpufarm.serve import settings
from gpufarm.serve.application import application
from gpufarm.serve.runs import Ending, Runs
from gpufarm.serve.service import Service

TYPES = """
tosca_definitions_version: tosca_simple_yaml_1_3
data_types:
  tosca.datatypes.test.Disk:
    derived_from: tosca.datatypes.Root
    properties:
      size: {type: scalar-unit.size}
      copies: {type: integer, default: 1}
      label: {type: string, required: false}
capability_types:
  tosca.capabilities.test.Scalable:
    derived_from: tosca.capabilities.Scalable
    properties:
      count: {type: integer, required: false}
node_types:
  tosca.nodes.test.Server:
    derived_from: tosca.nodes.Compute
    capabilities:
      scalable: {type: tosca.capabilities.test.Scalable}
"""
TEMPLATE = """
tosca_definitions_version: tosca_simple_yaml_1_3
metadata:
  template_name: notes
imports:
  - types.yaml
topology_template:
  inputs:
    text: {type: string, default: hello}
    owner: {type: string, default: nobody}
    cpus: {type: integer, default: 1, constraints: [{in_range: [1, 64]}]}
    share: {type: float, default: 1.0}
    public: {type: boolean, default: false}
    memory: {type: scalar-unit.size, default: 1 GB}
    number: {type: integer, default: 1}
    names: {type: list, entry_schema: {type: string}, default: []}
    resources: {type: map, entry_schema: {type: float}, default: {cpus: 1.0}}
    ports: {type: map, entry_schema: {type: tosca.datatypes.network.PortSpec}, default: {}}
    disks: {type: list, entry_schema: {type: tosca.datatypes.test.Disk}, default: []}
    settings: {type: map, default: {}}
    admin_password: {type: string, default: ""}
  node_templates:
    server:
      type: tosca.nodes.test.Server
      capabilities:
        host:
          properties: {num_cpus: {get_input: cpus}, mem_size: {get_input: memory}}
        scalable:
          properties: {min_instances: 1, max_instances: 9, count: {get_input: number}}
  outputs:
    text: {value: {get_input: text}}
"""
NEEDY = """
tosca_definitions_version: tosca_simple_yaml_1_3
metadata:
  template_name: needy
topology_template:
  inputs:
    name: {type: string}
    admin_password: {type: string}
  node_templates:
    server: {type: tosca.nodes.Compute}
"""


class Site:
    """The service.

    Attributes:
        template: text of the template that is for everybody.
        closed: text of the template that is for the group physics.
        own: uuid of a deployment, for tests that share the site.
    """

    def __init__(self, folder: Path, iam: Issuer, **changes: Any) -> None:
        self.folder, self.iam = folder, iam
        (folder / "types.yaml").write_text(TYPES)
        self.template, self.closed, self.own = TEMPLATE, NEEDY, ""
        (folder / "notes.yaml").write_text(TEMPLATE)
        (folder / "needy.yaml").write_text(NEEDY)
        content = {
            "url": "https://paas.example.org",
            "folder": "serve",
            "database": f"sqlite:///{folder}/serve.db",
            "deployer": {"state": "state", "pool": "pool.yml"},
            "issuers": [{"issuer": iam.url, "administrators": "admins", "ca_file": str(iam.ca_file)}],
            "templates": {
                "notes": {"template": "notes.yaml", "people": {"owner": "preferred_username"}},
                "needy": {"template": "needy.yaml", "groups": ["physics"]},
            },
            "callbacks": {"hosts": ["dashboard.example.org"]},
            "configuration": {"cmdb_url": "https://cmdb.example.org/"},
            "limits": {"requests_per_minute": 100_000},
            **changes,
        }
        (folder / "serve.yml").write_text(yaml.safe_dump(content))
        self.settings = settings.read(folder / "serve.yml")
        self.service = Service(self.settings)
        self.app = application(self.service)
        self.runs = Runs(self.service.database, self.settings.url)

    def client(self, token: str | None = None, address: str = "192.0.2.7") -> TestClient:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return TestClient(
            self.app,
            base_url="https://paas.example.org",
            headers=headers,
            client=(address, 1234),
            raise_server_exceptions=False,
        )

    def user(self, subject: str = "ann", *groups: str, **claims: Any) -> TestClient:
        about = ANN | {"sub": subject, "preferred_username": subject, "groups": [*groups]} | claims
        return self.client(self.iam.token(**about))

    def work(self, **ending: Any) -> None:
        """Do all that is queued, as a worker does."""
        while claim := self.runs.claim("w", 60):
            self.runs.finish(claim, replace(Ending(well=True), **ending))


@contextmanager
def site(folder: Path, iam: Issuer, **changes: Any) -> Any:
    made = Site(folder, iam, **changes)
    try:
        yield made
    finally:
        made.service.database.engine.dispose()
