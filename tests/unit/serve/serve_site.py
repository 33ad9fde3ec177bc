# SPDX-License-Identifier: GPL-3.0-or-later
"""A service with a catalogue, an issuer and a client for each user."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml
from bs4 import BeautifulSoup
from doubles.issuer import ANN, CLIENT, SECRET, Issuer
from fastapi.testclient import TestClient
from gpufarm.serve import settings
from gpufarm.serve.application import application
from gpufarm.serve.database import Database
from gpufarm.serve.runs import Ending, Runs
from gpufarm.serve.service import Service
from httpx import Response

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


def with_pages(folder: Path, iam: Issuer) -> dict[str, Any]:
    """Settings that switch the pages on."""
    (folder / "client.secret").write_text(SECRET)
    (folder / "client.secret").chmod(0o600)
    pages = {"issuer": iam.url, "client_id": CLIENT, "client_secret_file": "client.secret"}
    return {"pages": pages}


class Browser:
    """A browser without scripts: it keeps cookies, follows what the tests tell it to, and sends forms.

    Attributes:
        http: with the cookies.
        page: the last page.
    """

    def __init__(self, http: TestClient) -> None:
        self.http = http
        self.http.follow_redirects = False
        self.page: Any = None

    def get(self, path: str) -> Response:
        """Open a page; redirects within the service are followed."""
        answer = self.http.get(path)
        while answer.is_redirect and answer.headers["Location"].startswith("/"):
            answer = self.http.get(answer.headers["Location"])
        if answer.headers["Content-Type"].startswith("text/html"):
            self.page = BeautifulSoup(answer.text, "html.parser")
        return answer

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Response:
        """Send fields, as a page of the service does."""
        sent = {"Origin": "https://paas.example.org", **headers}
        answer = self.http.post(path, data=dict(fields), headers=sent)
        self.page = BeautifulSoup(answer.text, "html.parser")
        return answer

    def fields(self, form: str = "main form") -> dict[str, str]:
        """Fields that the browser sends for a form of the page if nobody touches it."""
        found = {}
        for one in self.page.select_one(form).select("input, select, textarea"):
            if one.name == "select":
                chosen = one.select_one("option[selected]") or one.select_one("option")
                found[one["name"]] = chosen["value"] if chosen else ""
            elif one.name == "textarea":
                found[one["name"]] = one.text.removeprefix("\n")
            elif one.get("type") != "checkbox" or one.has_attr("checked"):
                found[one["name"]] = one.get("value", "")
        return found

    def send(self, path: str, form: str = "main form", **changes: str) -> Response:
        """Open a page and send its form."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return self.post(
            path, self.fields(form) | {name.replace("__", "."): text for name, text in changes.items()}
        )

    def begin(self, path: str = "/ui/sign-in") -> dict[str, str]:
        """Begin a sign-in, and return what the issuer is asked."""
        answer = self.http.get(path)
        assert answer.status_code == 303, answer.text
        return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))

    def sign_in(self, iam: Issuer, person: str, path: str = "/ui/sign-in") -> Response:
        """Sign in at the issuer."""
        return self.http.get(iam.approved(self.begin(path), person))


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
            "hours_minutes": 0,
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

    def browser(self, subject: str = "", *groups: str, **claims: Any) -> Browser:
        """A browser, in which a user has signed in if there is one."""
        made = Browser(self.client())
        if subject:
            about = {"sub": subject, "preferred_username": subject, "groups": [*groups]}
            self.iam.accounts[subject] = ANN | about | claims
            made.sign_in(self.iam, subject)
        return made

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


def make_older(database: Database) -> None:
    """Bring the tables to the first version."""
    with database.engine.begin() as connection:
        for table in ("logins", "uses", "sources", "tasks", "consoles"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        for column in ("machines", "force"):
            connection.exec_driver_sql(f"ALTER TABLE runs DROP COLUMN {column}")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")


def empty_database(url: str) -> str:
    """Make a database on a server of PostgreSQL."""
    name = f"test{uuid.uuid4().hex}"
    engine = Database(url.format("postgres")).engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return url.format(name)
