# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for settings of the roles marathon and chronos: every option is one that the programs' own
parser takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.filter.plan import plan as framework_plan
from ansible_collections.gpufarm.cluster.plugins.module_utils._chronos import flags
from ansible_collections.gpufarm.cluster.plugins.module_utils._chronos import settings as chronos_settings
from ansible_collections.gpufarm.cluster.plugins.module_utils._framework import flags as framework_flags
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon import flags as marathon_flags
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon import settings as marathon_settings
from hypothesis import given
from hypothesis import strategies as st

from lab.marathon import options

ROOT = Path(__file__).resolve().parents[3]
DIGEST = "sha256:" + "0" * 64
GIVEN: dict[str, dict[str, Any]] = {
    "marathon": {"mesos_master": "zk://z:2181/mesos", "zookeeper": "zk://z:2181/marathon"},
    "chronos": {"mesos_master": "zk://z:2181/mesos", "zookeeper": "z1:2181,z2:2181"},
}
KNOWN = {"marathon": marathon_flags.FLAGS, "chronos": flags.FLAGS}
OWN = {"marathon": marathon_settings.OWN, "chronos": chronos_settings.OWN}


def listed(role: str, patch: bool = False) -> dict[str, Any]:
    """The options of a program as the list of its fake has them, which was read from its source."""
    found = json.loads((ROOT / "lab" / role / "flags.json").read_text())
    return found["flags"] | (found["flags_gpu_patch"]["flags"] if patch else {})


def settings(role: str, **changes: Any) -> dict[str, Any]:
    defaults = yaml.safe_load((ROOT / "roles" / role / "defaults" / "main.yml").read_text())
    found = {name.removeprefix(role + "_"): value for name, value in defaults.items()}
    more = {"archive_url": "http://mirror/x", "archive_checksum": DIGEST, "host": "m1"}
    return found | GIVEN[role] | more | changes


def parsed(role: str, plan: dict[str, Any], patch: bool = False) -> dict[str, Any]:
    """Verdict of the program's own rules on a plan."""
    if role == "marathon":
        text = plan["environment"] + plan["secret_environment"]
        environment = dict(line.split("=", 1) for line in text.splitlines())
        return options.parse(options.from_environment(environment, "MARATHON_"), listed(role))
    return options.parse(plan["options"].split(), listed(role, patch))


@pytest.mark.parametrize("role", ["marathon", "chronos"])
def test_the_list_of_options_is_that_of_the_source(role: str) -> None:
    known = KNOWN[role].by_name()
    expected = listed(role)
    assert known.keys() == expected.keys() - set(KNOWN[role].gone)
    kinds = {"toggle (no value)": "toggle", "switch (no value)": "switch", "comma list of string": "list"}
    for name, kind in known.items():
        stated = expected[name]["type"]
        stated = kinds.get(stated, "zk" if "zk://" in stated else stated)
        assert kind == {"string": "text", "uri": "text", "choice": "text"}.get(stated, stated), name
    choices = {name: tuple(flag["choices"]) for name, flag in expected.items() if flag.get("choices")}
    assert KNOWN[role].choices == choices


@pytest.mark.parametrize("tls", [True, False])
def test_an_address_to_listen_at_is_that_of_the_protocol(tls: bool) -> None:
    found = marathon_settings.flags(settings("marathon", tls=tls, listen_address="127.0.0.1"))
    assert {name for name in found if name.endswith("_address")} == {
        "https_address" if tls else "http_address"
    }


def value(kind: str, name: str, role: str) -> st.SearchStrategy[Any]:
    choices = KNOWN[role].choices.get(name)
    if choices:
        one = st.sampled_from(choices)
        return st.lists(one, min_size=1, unique=True) if kind == "list" else one
    return {
        "toggle": st.booleans(),
        "switch": st.just(True),
        "int": st.integers(0, 10**9),
        "float": st.sampled_from([0.5, 2]),
        "list": st.lists(st.just("word"), min_size=1),
        "zk": st.just("zk://z:2181/x"),
        "text": st.from_regex(r"[A-Za-z/][A-Za-z0-9:/._=,-]{0,20}", fullmatch=True),
    }[kind]


def requests(role: str) -> st.SearchStrategy[dict[str, Any]]:
    free = {
        name: kind
        for name, kind in KNOWN[role].by_name().items()
        if name not in OWN[role] and name.islower() and not name.startswith("app_")
    }
    return st.fixed_dictionaries({}, optional={name: value(kind, name, role) for name, kind in free.items()})


@pytest.mark.parametrize("role", ["marathon", "chronos"])
@given(data=st.data())
def test_every_option_that_can_be_set_is_taken_by_the_program(role: str, data: st.DataObject) -> None:
    request = data.draw(requests(role))
    plan = framework_plan(settings(role, flags=request), role)
    assert plan["problems"] == []
    found = parsed(role, plan)
    for name, given_value in request.items():
        shown = ",".join(given_value) if isinstance(given_value, list) else given_value
        assert found[name] == shown, name


def test_marathon_as_it_is_by_default() -> None:
    found = parsed("marathon", framework_plan(settings("marathon"), "marathon"))
    assert found["disable_http"] and found["https_port"] == 8443
    assert found["enable_features"] == "gpu_resources" and found["new_group_enforce_role"] == "top"
    assert found["hostname"] == "m1" and not found["mesos_authentication"]


def test_what_has_a_password_goes_to_the_file_that_nobody_reads() -> None:
    request = settings(
        "marathon",
        zookeeper="zk://u:p@z:2181/marathon",
        mesos_principal="m",
        mesos_secret="s3cret",
        flags={"metrics_datadog_api_key": "k3y"},
    )
    plan = framework_plan(request, "marathon")
    assert "MARATHON_ZK=zk://u:p@z:2181/marathon\n" in plan["secret_environment"]
    assert "k3y" in plan["secret_environment"] and "k3y" not in plan["environment"]
    assert "u:p" not in plan["environment"] and "s3cret" not in json.dumps(plan)
    assert (
        parsed("marathon", plan)["mesos_authentication_secret_file"] == "/etc/marathon/secrets/mesos_secret"
    )


@pytest.mark.parametrize("role", ["marathon", "chronos"])
def test_libmesos_encrypts_where_the_masters_do(role: str) -> None:
    request = settings(
        role, mesos_tls_certificate="/srv/m1.pem", mesos_tls_key="/srv/m1.key", mesos_tls_ca="/srv/ca.pem"
    )
    found = framework_plan(request, role)["environment"]
    folder = f"/etc/{role}/secrets"
    for line in (
        "ENABLED=true",
        "SUPPORT_DOWNGRADE=false",
        "VERIFY_SERVER_CERT=true",
        f"CERT_FILE={folder}/libmesos.pem",
        f"KEY_FILE={folder}/libmesos.key",
        f"CA_FILE={folder}/libmesos.ca",
    ):
        assert f"LIBPROCESS_SSL_{line}\n" in found
    assert "LIBPROCESS" not in framework_plan(settings(role), role)["environment"]


def test_the_servers_of_zookeeper_are_those_of_masters_and_state() -> None:
    state = {"zookeeper": "zk://marathon:pw@y:2181,[fd00::1]:2182/marathon"}
    plan = framework_plan(settings("marathon", **state), "marathon")
    assert plan["ensembles"] == [["z:2181"], ["y:2181", "[fd00::1]:2182"]]
    same = {"mesos_master": "https://m1:5050", "zookeeper": "z1:2181,z2:2181"}
    assert framework_plan(settings("chronos", **same), "chronos")["ensembles"] == [["z1:2181", "z2:2181"]]


TLS_FILES = {"secrets/cert.pem", "secrets/key.pem", "secrets/keystore.p12", "secrets/keystore_password"}
MESOS_TLS_FILES = {"secrets/libmesos.pem", "secrets/libmesos.key", "secrets/libmesos.ca"}


@pytest.mark.parametrize("role", ["marathon", "chronos"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {"secrets/mesos_secret"} | MESOS_TLS_FILES),
        ({"mesos_principal": "a", "mesos_secret": "b"}, MESOS_TLS_FILES),
        (
            {f"mesos_tls_{what}": "/a" for what in ("certificate", "key", "ca")},
            {"secrets/mesos_secret"},
        ),
        (
            {"tls": False, "listen_address": "127.0.0.1"},
            {"ca.pem", "secrets/mesos_secret"} | TLS_FILES | MESOS_TLS_FILES,
        ),
        (
            {"certificate_type": "provided", "certificate_file": "/a", "certificate_key_file": "/b"},
            {"ca.pem", "secrets/mesos_secret"} | MESOS_TLS_FILES,
        ),
    ],
)
def test_what_other_settings_needed_is_unwanted(
    role: str, change: dict[str, Any], expected: set[str]
) -> None:
    unwanted = framework_plan(settings(role, **change), role)["unwanted"]
    assert {entry["path"] for entry in unwanted} == {f"/etc/{role}/{name}" for name in expected}
    assert {entry["state"] for entry in unwanted} == {"absent"}


def test_a_user_has_an_instance_with_a_state_of_its_own() -> None:
    plan = framework_plan(
        settings("chronos", name="chronos-ada", gpus=True, zookeeper_login="u:p"), "chronos"
    )
    found = parsed("chronos", plan, patch=True)
    assert plan["secret"] and plan["command"][-1] == "@/etc/chronos-ada/secrets/options"
    assert found["zk_path"] == "/chronos-ada/state" and found["mesos_framework_name"] == "chronos-ada"
    assert found["enable_features"] == "gpu_resources" and found["user"] == "nobody"
    assert not framework_plan(settings("chronos"), "chronos")["secret"]


@pytest.mark.parametrize(
    ("role", "change", "words"),
    [
        ("marathon", {"mesos_master": ""}, "marathon_mesos_master is ''"),
        ("marathon", {"mesos_master": "zk://u:pw@z"}, "zk://...@z"),
        ("marathon", {"zookeeper": "zk://z:2181"}, "give the address of its state"),
        ("marathon", {"archive_url": ""}, "marathon_archive_url is ''"),
        ("marathon", {"archive_checksum": "md5:0"}, "give sha256: and 64 hexadecimal digits"),
        ("marathon", {"source": "image", "image": "a b"}, "marathon_image is 'a b'"),
        ("marathon", {"port": 0}, "give a port from 1 to 65535"),
        ("marathon", {"host": "localhost"}, "set marathon_hostname"),
        ("marathon", {"listen_address": "m1"}, "give an IP address"),
        ("marathon", {"tls": False}, "passwords would go over the network"),
        ("marathon", {"certificate_type": "provided"}, "give marathon_certificate_file"),
        ("marathon", {"certificate_file": "x"}, "is set and is not used"),
        ("marathon", {"http_password": "short"}, "marathon_http_password is too short"),
        ("marathon", {"http_user": "a:b"}, "marathon_http_user is 'a:b'"),
        ("marathon", {"mesos_principal": "m"}, "belong together"),
        ("marathon", {"mesos_tls_key": "/k"}, "marathon_mesos_tls_ca belong together"),
        ("chronos", {"mesos_tls_ca": "ca.pem"}, "chronos_mesos_tls has 'ca.pem'"),
        ("marathon", {"mesos_role": "a/b"}, "marathon_mesos_role is 'a/b'"),
        ("marathon", {"features": ["maintenance_mode"]}, "marathon_features has 'maintenance_mode'"),
        ("marathon", {"flags": {"disable_ha": True}}, "set ha to false"),
        ("marathon", {"flags": {"killBatchDuration": 1}}, "does not take from the environment"),
        (
            "marathon",
            {"flags": {"app_info_module_execution_context_size": 1}},
            "does not take from the environment",
        ),
        ("marathon", {"flags": {"tracing": True}}, "gone from this version"),
        ("marathon", {"flags": {"ha": "yes"}}, "give true or false"),
        ("marathon", {"flags": {"webui_url": "-x"}}, "no dash in front"),
        ("marathon", {"flags": {"webui_url": 'a"b'}}, "without quotes"),
        ("marathon", {"flags": {"logging_level": "loud"}}, "give one of all, trace"),
        ("marathon", {"environment": {"MARATHON_HA": ""}}, "which the role sets"),
        ("marathon", {"environment": {"A": "x\ny"}}, "without quotes"),
        ("marathon", {"environment": {"a-b": "x"}}, "no name of a variable"),
        ("marathon", {"jvm_options": '-Da="b"'}, "marathon_jvm_options"),
        ("marathon", {"java_home": "java"}, "give an absolute path"),
        ("marathon", {"zookeeper": "zk://u:pw@z:2181,y:2181,z:2181/m"}, "have the ZooKeeper z:2181 twice"),
        ("chronos", {"zookeeper": "z:2181,z:2181"}, "have the ZooKeeper z:2181 twice"),
        ("chronos", {"name": "ada"}, "chronos_name is 'ada'"),
        ("chronos", {"zookeeper": ""}, "give HOST:PORT"),
        ("chronos", {"zookeeper_login": "x"}, "not USER:PASSWORD"),
        ("chronos", {"job_user": "A"}, "chronos_job_user is 'A'"),
        ("chronos", {"flags": {"enable_features": "x"}}, "set chronos_gpus in its place"),
    ],
)
def test_what_cannot_work_is_refused(role: str, change: dict[str, Any], words: str) -> None:
    plan = framework_plan(settings(role, **change), role)
    assert words in " ".join(plan["problems"]) and plan.keys() == {"problems"}
    assert all(text.endswith(".") or text.endswith("?") for text in plan["problems"])
    assert ":pw@" not in str(plan)


def test_all_is_told_at_once() -> None:
    wrong = settings("chronos", name="x", zookeeper="", port=0, job_user="A", flags={"a": 1, "b": 2})
    assert len(framework_plan(wrong, "chronos")["problems"]) == 6


@given(st.text(max_size=12))
def test_a_text_that_is_taken_survives_both_kinds_of_files(text: str) -> None:
    if framework_flags.value_problem("text", text):
        return
    assert text == text.strip() and not set(text) & set("\n\r\"'\\")
