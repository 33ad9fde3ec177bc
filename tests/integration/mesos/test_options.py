# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real master and agent read the options of the roles, and report each as it was meant."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos import agent as mesos_agent
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos import master as mesos_master
from ansible_collections.gpufarm.cluster.plugins.modules import mesos_info, mesos_maintenance, mesos_quota

from lab.mesos.real import Mesos
from lab.mesos.real.framework import Framework, amounts

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "unit" / "plugins"))

import mesos_settings as given

SECRETS = {name: f"{name}-secret" for name in ("agent", "operator", "viewer", "alice")}
# Where the daemons would look for a leader; this one has no command line and no ZooKeeper.
NOT_LOCAL = {
    "zk",
    "quorum",
    "master",
    "port",
    "hostname",
    "work_dir",
    "credentials",
    "credential",
    "http_credentials",
}
NOT_LOCAL |= {"docker_store_dir", "appc_store_dir", "fetcher_cache_dir", "acls"}
RULES = {
    "permissive": True,
    "register_frameworks": [
        {"principals": {"values": ["alice"]}, "roles": {"values": ["alice"]}},
        {"principals": {"values": ["alice"]}, "roles": {"type": "NONE"}},
    ],
    "update_quotas": [
        {"principals": {"values": ["operator"]}, "roles": {"type": "ANY"}},
        {"principals": {"type": "ANY"}, "roles": {"type": "NONE"}},
    ],
}


def agent_options(cpus: int = 4) -> dict[str, str]:
    """The options of a posix agent, as the role renders them."""
    settings = given.agent(
        build="apache",
        resources={"cpus": cpus, "mem": 4096, "disk": 1000, "ports": "31000-32000"},
        attributes={"gpu_model": "A100"},
        flags={"launcher": "posix"},
    )
    options: dict[str, str] = mesos_agent.plan(settings)["options"]
    return options


@pytest.fixture(scope="module")
def rendered() -> dict[str, str]:
    """The options of a master and an agent, as the roles render them."""
    agent = agent_options()
    flags = {"allocation_interval": "100ms", "max_completed_frameworks": 7}
    master = mesos_master.plan(given.master(build="apache", cluster="bench", acls=RULES, flags=flags))[
        "options"
    ]
    return {**agent, **master}


@pytest.fixture(scope="module")
def mesos(tmp_path_factory: pytest.TempPathFactory, rendered: dict[str, str]) -> Iterator[Mesos]:
    folder = tmp_path_factory.mktemp("options")
    accounts = [{"principal": name, "secret": secret} for name, secret in SECRETS.items()]
    files: dict[str, Any] = {
        "credentials": {"credentials": accounts},
        "http_credentials": {"credentials": accounts},
        "credential": accounts[0],
        "acls": RULES,
    }
    options = {f"MESOS_{name.upper()}": value for name, value in rendered.items() if name not in NOT_LOCAL}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
        options[f"MESOS_{name.upper()}"] = str(folder / name)
    with Mesos(folder / "work", 1, rendered["resources"], options) as running:
        yield running


def test_options_come_back_as_they_were_meant(mesos: Mesos, rendered: dict[str, str]) -> None:
    user = f"operator:{SECRETS['operator']}"
    master, agent = mesos.flags(user=user), mesos.flags(1, user)
    compared = 0
    for name, value in rendered.items():
        for real in (master, agent):
            if name in real and name not in NOT_LOCAL:
                assert real[name].strip("{ }") == value, name  # sets come back in braces
                compared += 1
    assert compared > 20


def test_strangers_are_refused(mesos: Mesos, run: Any) -> None:
    assert "does not accept requests without credentials" in run(mesos_info)["msg"]
    found = run(mesos_info, username="operator", password="wrong")
    assert "does not accept these credentials" in found["msg"]


def test_the_agent_has_what_it_was_given(mesos: Mesos, run: Any) -> None:
    found = run(mesos_info, username="operator", password=SECRETS["operator"])
    assert found["agents"][0]["attributes"] == {"gpu_model": "A100"}
    assert found["total"] == {"cpus": 4, "mem": 4096, "disk": 1000}


def test_rules_hold(mesos: Mesos, run: Any) -> None:
    quotas = [{"role": "alice", "limits": {"cpus": 2}}]
    refused = run(mesos_quota, username="viewer", password=SECRETS["viewer"], quotas=quotas)
    assert "does not allow it to viewer" in refused["msg"]
    assert run(mesos_quota, username="operator", password=SECRETS["operator"], quotas=quotas)["changed"]
    own = Framework(mesos.port, "alice", user=f"alice:{SECRETS['alice']}")
    assert amounts(own.offers(), "cpus") == 2
    own.stop()
    other = Framework(mesos.port, "bob", user=f"alice:{SECRETS['alice']}")
    assert other.status == 403 or "Not authorized" in other.error


def test_a_restart_forgets_nothing(mesos: Mesos, run: Any) -> None:
    login = {"username": "operator", "password": SECRETS["operator"]}
    run(mesos_quota, quotas=[{"role": "carol", "limits": {"cpus": 1}}], **login)
    agent = run(mesos_info, **login)["agents"][0]["id"]
    run(mesos_maintenance, agents=[agent], state="drained", **login)
    mesos.stop()
    mesos.start()
    found = run(mesos_info, **login)
    assert "carol" in {one["role"] for one in found["quotas"]}
    assert [(one["id"], one["state"]) for one in found["agents"]] == [(agent, "drained")]
    assert run(mesos_maintenance, agents=[agent], state="active", **login)["changed"]


def test_an_agent_comes_back_with_more_and_never_with_less(mesos: Mesos, run: Any) -> None:
    login = {"username": "operator", "password": SECRETS["operator"]}
    before = run(mesos_info, **login)["agents"][0]
    mesos.stop()
    mesos.environment["MESOS_RESOURCES"] = agent_options(cpus=6)["resources"]
    mesos.start()
    after = run(mesos_info, **login)["agents"][0]
    assert after["id"] == before["id"] and after["resources"]["cpus"] == 6
    mesos.stop()
    mesos.environment["MESOS_RESOURCES"] = agent_options(cpus=2)["resources"]
    with pytest.raises(RuntimeError, match="not permitted under 'additive' policy"):
        mesos.start()
