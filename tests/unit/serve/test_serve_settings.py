# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings file: what is right is read, and each mistake is one sentence that names its place."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufarm.errors import BadInput
from gpufarm.serve import settings
from gpufarm.serve.quotas import Quota

GOOD: dict[str, Any] = {
    "url": "https://paas.example.org/",
    "deployer": {"state": "/srv/gpufarm", "pool": "pool.yml"},
    "issuers": [{"issuer": "https://iam.example.org/", "administrators": "admins"}],
    "templates": {"notebooks": {"template": "ml_infn", "groups": ["physics"], "people": {"owner": "sub"}}},
    "quotas": {"user": {"deployments": 2}, "groups": {"physics": {"machines": 9}}},
    "callbacks": {"hosts": ["Dashboard.example.org"]},
}


def read(folder: Path, content: Any) -> settings.Settings:
    path = folder / "serve.yml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return settings.read(path)


def test_what_is_right_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    assert (found.url, found.address, found.port) == ("https://paas.example.org", "127.0.0.1", 8080)
    assert found.pool == tmp_path / "pool.yml"
    assert found.database == "sqlite:////var/lib/gpufarm-serve/serve.db"
    assert found.issuers[0].algorithms == ("RS256", "ES256")
    assert found.offers[0].template == "ml_infn"
    assert found.offers[0].people == {"owner": "sub"}
    assert found.quotas.user == Quota(deployments=2)
    assert found.quotas.of_group("physics") == Quota(machines=9)
    assert found.quotas.of_group("other") == Quota()
    assert found.callback_hosts == {"dashboard.example.org"}


def changed(path: str, value: Any) -> Any:
    """The settings with another value at a place; None takes it away."""
    content: Any = copy.deepcopy(GOOD)
    *way, last = path.split(".")
    inside = content
    for step in way:
        inside = inside[int(step)] if isinstance(inside, list) else inside.setdefault(step, {})
    if value is None:
        del inside[last]
    elif isinstance(inside, list):
        inside[int(last)] = value
    else:
        inside[last] = value
    return content


WRONG = [
    ("url", None, "url is missing"),
    ("url", "http://paas.example.org", "https URL"),
    ("url", "https://me:pass@paas.example.org", "without a login"),
    ("url", 7, "has to be a text"),
    ("urls", "x", "no entry urls"),
    ("issuers", None, "list of maps"),
    ("issuers", [], "list of maps"),
    ("issuers", ["https://x"], "has to be a map"),
    ("issuers.0.issuer", "iam.example.org", "https URL"),
    ("issuers.0.audience", "paas", "list of texts"),
    ("issuers.0.algorithms", ["HS256"], "HS256 is not accepted"),
    ("issuers.0.algorithms", ["none"], "none is not accepted"),
    ("issuers.0.opaque", "yes please", "write one of"),
    ("issuers.0.opaque", "introspection", "client_id and client_secret_file"),
    ("issuers.0.client_secret_file", "missing", "which is no file"),
    ("issuers.0.tls", "off", "no entry tls"),
    ("issuers.1", None, None),
    ("templates", None, "templates are missing"),
    ("templates.notebooks.template", None, "template is missing"),
    ("templates.notebooks.groups", [], "list of texts"),
    ("templates.notebooks.people", {"owner": 7}, "names of claims"),
    ("templates.note books", {"template": "x"}, "letters"),
    ("quotas.user.deployments", -1, "whole number"),
    ("quotas.user.deployments", True, "whole number"),
    ("quotas.user.gpus", 1, "no entry gpus"),
    ("quotas.groups.physics.gpus", 1, "no entry gpus"),
    ("callbacks.hosts", ["https://dashboard.example.org"], "no name of a host"),
    ("callbacks.private", ["other.example.org"], "not in hosts"),
    ("listen", {"address": "0.0.0.0"}, "behind a proxy"),
    ("listen", {"certificate": "cert.pem", "key": "key.pem"}, "no entry certificate"),
    ("listen", {"address": "localhost"}, "IP address"),
    ("listen", {"port": 0}, "whole number"),
    ("limits.body_mib", "1 MiB", "whole number"),
    ("deployer", None, "state is missing"),
    ("database", "", "has to be a text"),
    ("pages", {"client_id": "x", "client_secret_file": "serve.yml"}, "issuer is missing"),
    ("pages", {"issuer": "https://other.example.org", "client_id": "x"}, "which is no issuer"),
    (
        "pages",
        {"issuer": "https://iam.example.org", "client_secret_file": "serve.yml"},
        "client_id is missing",
    ),
    ("pages", {"issuer": "https://iam.example.org", "client_id": "x"}, "client_secret_file is missing"),
    ("pages", {"issuer": "https://iam.example.org", "colour": "red", "client_id": "x"}, "no entry colour"),
    ("templates.notebooks.form", "missing.yml", "which is no file"),
    ("templates.notebooks.accounts", "yes", "true or false"),
    ("templates.notebooks.accounts", 1, "true or false"),
    ("issuers.0.login_claim", "", "has to be a text"),
    ("hours_minutes", -1, "whole number"),
]


@pytest.mark.parametrize(("path", "value", "sentence"), [case for case in WRONG if case[2]])
def test_each_mistake_is_one_sentence(tmp_path: Path, path: str, value: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as refused:
        read(tmp_path, changed(path, value))
    assert "\n" not in refused.value.message


def test_an_issuer_is_there_once_and_one_takes_opaque_tokens(tmp_path: Path) -> None:
    twice = [{"issuer": "https://iam.example.org"}, {"issuer": "https://iam.example.org/"}]
    with pytest.raises(BadInput, match="twice"):
        read(tmp_path, GOOD | {"issuers": twice})
    both = [{"issuer": f"https://{name}.example.org", "opaque": "userinfo"} for name in ("a", "b")]
    with pytest.raises(BadInput, match="one issuer only"):
        read(tmp_path, GOOD | {"issuers": both})
    audience = [{"issuer": "https://a.example.org", "opaque": "userinfo", "audience": ["paas"]}]
    with pytest.raises(BadInput, match="tells no audience"):
        read(tmp_path, GOOD | {"issuers": audience})


@pytest.mark.parametrize("entry", [{"groups": ["physics"]}, {"people": {"owner": "sub"}}])
def test_groups_and_claims_are_those_of_named_issuers(tmp_path: Path, entry: dict[str, Any]) -> None:
    content = GOOD | {"issuers": [{"issuer": f"https://{name}.example.org/"} for name in ("a", "b")]}
    offer = {"template": "ml_infn", **entry}
    with pytest.raises(BadInput, match="one issuer only; add issuers"):
        read(tmp_path, content | {"templates": {"notebooks": offer}})
    with pytest.raises(BadInput, match="which is no issuer"):
        issuers = ["https://c.example.org/"]
        read(tmp_path, content | {"templates": {"notebooks": offer | {"issuers": issuers}}})
    found = read(
        tmp_path, content | {"templates": {"notebooks": offer | {"issuers": ["https://a.example.org"]}}}
    )
    assert found.offers[0].issuers == {"https://a.example.org/"}


def test_a_secret_is_not_for_everybody(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o644)
    introspecting = {"issuer": "https://a.example.org", "opaque": "introspection", "client_id": "paas"}
    introspecting["client_secret_file"] = "secret"
    with pytest.raises(BadInput, match="chmod"):
        read(tmp_path, GOOD | {"issuers": [introspecting]})
    secret.chmod(0o640)
    assert read(tmp_path, GOOD | {"issuers": [introspecting]}).issuers[0].secret_file == secret


def test_pages_are_those_of_an_issuer(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0o600)
    pages = {"issuer": "https://iam.example.org", "client_id": "paas", "client_secret_file": "secret"}
    found = read(tmp_path, GOOD | {"pages": pages}).pages
    assert found == settings.Pages("https://iam.example.org/", "paas", tmp_path / "secret")
    assert read(tmp_path, GOOD).pages is None
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(BadInput, match="chmod"):
        read(tmp_path, GOOD | {"pages": pages})


LDAP = {"issuer": "ldaps://ldap.example.org", "directory": {"user_base": "ou=people,dc=example,dc=org"}}


def test_a_directory_needs_little(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD | {"issuers": [LDAP], "pages": {"issuer": "ldaps://ldap.example.org"}})
    [one] = found.issuers
    assert one.directory and one.directory.servers == ("ldaps://ldap.example.org",)
    assert (one.directory.user_attribute, one.directory.bind_dn) == ("uid", "")
    assert found.pages == settings.Pages("ldaps://ldap.example.org")


@pytest.mark.parametrize(
    ("changes", "inner", "sentence"),
    [
        ({"issuer": "https://ldap.example.org"}, {}, "write ldaps://HOST"),
        ({"issuer": "ldaps://me:x@ldap.example.org"}, {}, "write ldaps://HOST"),
        ({"issuer": "ldaps://ldap.example.org/dc=x??sub"}, {}, "write ldaps://HOST"),
        ({"audience": ["x"]}, {}, "no entry audience"),
        ({"directory": "x"}, {}, "has to be a map"),
        ({}, {"user_base": None}, "user_base is missing"),
        ({}, {"servers": ["https://x"]}, "servers has https://x"),
        ({}, {"bind_dn": "cn=x"}, "need each other"),
        ({}, {"bind_password_file": "secret"}, "need each other"),
        ({}, {"user_attribute": "uid=*)(x"}, "no name of an attribute"),
        ({}, {"group_attribute": "1x"}, "no name of an attribute"),
        ({}, {"user_filter": "objectClass=person"}, "no filter in parentheses"),
        ({}, {"password": "x"}, "no entry password"),
    ],
)
def test_mistakes_of_a_directory_are_told(
    tmp_path: Path, changes: dict[str, Any], inner: dict[str, Any], sentence: str
) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0o600)
    own = {**LDAP, **changes}
    if isinstance(own["directory"], dict):
        own["directory"] = {key: value for key, value in {**own["directory"], **inner}.items() if value}
    with pytest.raises(BadInput, match=sentence):
        read(tmp_path, GOOD | {"issuers": [own]})


def test_the_password_of_the_service_is_not_for_everybody(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0o644)
    inner = {"user_base": "ou=people", "bind_dn": "cn=x", "bind_password_file": "secret"}
    with pytest.raises(BadInput, match="chmod"):
        read(tmp_path, GOOD | {"issuers": [{**LDAP, "directory": inner}]})


def test_pages_of_a_directory_have_no_client(tmp_path: Path) -> None:
    pages = {"issuer": LDAP["issuer"], "client_id": "x"}
    with pytest.raises(BadInput, match="no entry client_id"):
        read(tmp_path, GOOD | {"issuers": [LDAP], "pages": pages})


@pytest.mark.parametrize("text", ["", "[]", "a: [", "url: a\nurl: b\n", "\0", "- x"])
def test_a_file_that_is_no_map_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput):
        read(tmp_path, text)
