"""Configuration of container engines: versions, and switches put where they belong and nowhere else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._cdi import engines
from hypothesis import given
from hypothesis import strategies as st

PLUGIN = 'plugins."io.containerd.grpc.v1.cri"'
DEBIAN = """\
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
"""


@pytest.mark.parametrize(
    ("engine", "told", "version"),
    [
        ("docker", "Docker version 26.1.5+dfsg1, build 411e817", "26.1.5"),
        ("docker", "Docker version 25.0.0, build e758fe5", "25.0.0"),
        (
            "containerd",
            "containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6+deb13u1",
            "1.7.24",
        ),
        ("containerd", "containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da", "1.7.27"),
        ("containerd", "containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7", "v2.1.4"),
        ("podman", "podman version 4.3.1", "4.3.1"),
    ],
)
def test_versions(engine: str, told: str, version: str) -> None:
    assert engines.version(engine, told) == version


@pytest.mark.parametrize(
    ("engine", "told", "problem"),
    [
        (
            "docker",
            "Docker version 20.10.24+dfsg1, build 297e128",
            r"docker 20\.10\.24 cannot .* 25\.0 and later",
        ),
        (
            "containerd",
            "containerd github.com/containerd/containerd 1.6.20~ds1",
            r"containerd 1\.6\.20 cannot",
        ),
        ("podman", "podman version 4.0.3", r"podman 4\.0\.3 cannot"),
        ("podman", "no idea", "podman does not tell its version"),
    ],
)
def test_versions_that_will_not_do(engine: str, told: str, problem: str) -> None:
    with pytest.raises(engines.EngineProblem, match=problem):
        engines.version(engine, told)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.dictionaries(st.text(), st.booleans(), max_size=2))
def test_docker_keeps_all_else(found: dict[str, Any], features: dict[str, bool]) -> None:
    found["features"] = features
    after = engines.docker_with_cdi(json.dumps(found))
    assert json.loads(after) == {**found, "features": {**features, "cdi": True}}
    assert engines.docker_with_cdi(after) == after


def test_docker_without_configuration() -> None:
    assert json.loads(engines.docker_with_cdi("")) == {"features": {"cdi": True}}


@pytest.mark.parametrize("text", ["{", "[]", '{"features": []}', '"text"', "3"])
def test_what_is_no_configuration_of_docker(text: str) -> None:
    with pytest.raises(engines.EngineProblem, match="no configuration of Docker"):
        engines.docker_with_cdi(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version = 2",
        DEBIAN,
        DEBIAN.replace('"', "'"),
        DEBIAN + "# the end, without a line of its own",
        "version = 2\n[plugins . 'io.containerd.grpc.v1.cri'] # x\n  enable_cdi = false # n\n[o]\nx = 1\n",
        'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n\n  image = "pause"\n  enable_cdi=false\n',
        "version = 2\n[[stream]]\nenable_cdi = false\n",
    ],
)
def test_containerd_keeps_all_else(text: str) -> None:
    after = engines.containerd_with_cdi(text, PLUGIN)
    expected: Any = tomllib.loads(text or "version = 2")
    plugin = expected.setdefault("plugins", {}).setdefault("io.containerd.grpc.v1.cri", {})
    plugin["enable_cdi"] = True
    assert tomllib.loads(after) == expected
    assert [line for line in text.splitlines() if "enable_cdi" not in line] == [
        line for line in after.splitlines() if "enable_cdi" not in line and (text or line != "version = 2")
    ][: len([line for line in text.splitlines() if "enable_cdi" not in line])]


def dump(switch: str, extra: str = "", disabled: str = "") -> str:
    return (
        f'disabled_plugins = [{disabled}]\nimports = ["/etc/x.toml"]\nversion = 2\n\n[plugins]\n\n'
        f'  [{PLUGIN}]\n    {extra}\n    {switch}\n\n    [{PLUGIN}.cni]\n      bin_dir = "/opt/cni/bin"\n'
    )


def test_the_plugin_that_has_the_switch() -> None:
    assert engines.containerd_plugin(dump("enable_cdi = false")) == PLUGIN
    assert engines.containerd_plugin(dump("enable_cdi = true")) == ""
    assert engines.containerd_plugin(dump("enable_cdi = false", disabled='"cri"')) == ""
    assert engines.containerd_plugin("version = 3\n[plugins]\n") == ""


def test_nothing_but_the_switch_may_differ() -> None:
    off, on = dump("enable_cdi = false"), dump("enable_cdi = true")
    assert engines.only_the_switch_differs(off, on)
    assert not engines.only_the_switch_differs(off, off)
    assert not engines.only_the_switch_differs(off, dump("enable_cdi = true", extra="enable_selinux = true"))
