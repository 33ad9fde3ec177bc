"""A specification says what hosts a bench has; whatever is wrong with it is told in one sentence."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import LabError
from lab.spec import CGROUPS, HOST_NAME, LAYERS, SUITES, HostSpec, conflict, host_from, parse


def test_a_name_is_enough():
    assert parse("hosts: [{name: gpu1}]") == [HostSpec("gpu1", "bookworm", (), "auto", "nspawn", False)]


def test_json_and_yaml_are_read():
    data = {
        "hosts": [{"name": "gpu1", "suite": "trixie", "gpus": ["a100-80gb:2"]}, {"name": "iam", "iam": True}]
    }
    assert parse(json.dumps(data)) == [
        HostSpec("gpu1", "trixie", ("a100-80gb:2",)),
        HostSpec("iam", iam=True),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hosts: []", "no host"),
        ("hosts: {a: b}", "must be a mapping with one key, hosts, that holds a list"),
        ("hosts: text", "must be a mapping with one key, hosts, that holds a list"),
        ("[1, 2]", "must be a mapping with one key"),
        ("hosts: [", "not valid YAML"),
        ("hosts: [7]", "must be a mapping with at least a name"),
        ("hosts: [{suite: trixie}]", "has no name"),
        ("hosts: [{name: Gpu1}]", "'Gpu1'"),
        ("hosts: [{name: 7}]", "7"),
        ("hosts: [{name: a, memory: 1}]", "unknown key 'memory'; known are name, suite"),
        ("hosts: [{name: a, suite: sid}]", "suite is 'sid', must be one of bookworm, trixie"),
        ("hosts: [{name: a, cgroup: v3}]", "cgroup is 'v3'"),
        ("hosts: [{name: a, kind: docker}]", "kind is 'docker'"),
        ("hosts: [{name: a, gpus: 'a100-80gb:1'}]", "gpus must be a list"),
        ("hosts: [{name: a, gpus: 3}]", "gpus must be a list"),
        ("hosts: [{name: a, gpus: [1]}]", "gpus must be a list"),
        ("hosts: [{name: a, layers: gpu}]", "layers must be a list of gpu, hub, notebook, rdma"),
        ("hosts: [{name: a, layers: [cuda]}]", "layers must be a list of gpu, hub, notebook, rdma"),
        ("hosts: [{name: a, layers: [7]}]", "layers must be a list of gpu, hub, notebook, rdma"),
        ("hosts: [{name: a, iam: 'yes'}]", "iam must be true or false"),
        ("hosts: [{name: a}, {name: a}]", "host a is asked for twice"),
        ("hosts: [{name: a, iam: true}, {name: b, iam: true}]", "at most one identity provider"),
        ("hosts: [{name: a, kind: qemu, gpus: ['a100-80gb:1']}]", "need kind nspawn"),
        ("hosts: [{name: a, nics: 3}]", "nics is 3, must be one of 1, 2"),
        ("hosts: [{name: a, kind: qemu, iam: true}]", "needs kind nspawn"),
        ("hosts: [{name: a, kind: qemu, cgroup: v1}]", "cgroup v2"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str):
    with pytest.raises(LabError) as refusal:
        parse(text)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@given(st.text(max_size=60))
def test_no_name_breaks_out_of_its_folder(name: str):
    try:
        HostSpec(name)
    except LabError:
        return
    assert "/" not in name and name.strip(".") == name and 0 < len(name) <= 40


hosts = st.builds(
    HostSpec,
    name=st.from_regex(HOST_NAME, fullmatch=True),
    suite=st.sampled_from(SUITES),
    gpus=st.lists(st.sampled_from(["a100-80gb:1", "a30:2"]), max_size=2).map(tuple),
    cgroup=st.sampled_from(CGROUPS),
    iam=st.booleans(),
    layers=st.lists(st.sampled_from(LAYERS), max_size=2).map(tuple),
)


@given(hosts)
def test_a_host_survives_being_written_down(host: HostSpec):
    assert host_from(json.loads(json.dumps(host.as_dict()))) == host


@given(hosts)
def test_a_host_does_not_conflict_with_itself(host: HostSpec):
    assert conflict(host, host) == ""


def test_the_order_of_layers_is_the_same_for_all_hosts():
    assert HostSpec("a", layers=("hub", "gpu", "hub")) == HostSpec("a", layers=("gpu", "hub"))


def test_a_conflict_names_what_differs():
    assert conflict(HostSpec("a"), HostSpec("a", "trixie")) == "suite 'bookworm' -> 'trixie'"
