# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts for clients about a Marathon that the role marathon has set up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from ansible_collections.gpufarm.cluster.plugins.filter.marathon_client import FilterModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon import settings

ROLE = Path(__file__).resolve().parents[3] / "roles" / "marathon"
client = FilterModule().filters()["marathon_client"]


def environment(**changes: Any) -> str:
    """The file that the role writes."""
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    found = {name.removeprefix("marathon_"): value for name, value in defaults.items()}
    given = {
        "mesos_master": "zk://zk1:2181/mesos",
        "zookeeper": "zk://zk1:2181/marathon",
        "archive_url": "https://mirror.example.org/marathon.tgz",
        "archive_checksum": f"sha256:{64 * 'a'}",
    }
    plan = settings.plan({**found, **given, **changes})
    assert plan["problems"] == []
    return str(plan["environment"])


def test_urls_are_those_that_the_role_marathon_has_written() -> None:
    files = [environment(host="m1.example.org"), environment(host="m2.example.org", port=9443)]
    assert client(["m1", "m2"], files)["urls"] == [
        "https://m1.example.org:8443",
        "https://m2.example.org:9443",
    ]
    plain = environment(host="m1", tls=False, listen_address="127.0.0.1", port=8080)
    assert client(["m1"], [plain])["urls"] == ["http://m1:8080"]


def test_the_account_is_the_one_that_the_role_marathon_has_written() -> None:
    template = (ROLE.parent / "_framework" / "templates" / "secrets.env.j2").read_text()
    assert template.startswith(
        "MESOSPHERE_HTTP_CREDENTIALS={{ __framework_given.http_user }}:{{ __framework_password }}\n"
    )
    found = client(["m1"], [environment(host="m1")], "MESOSPHERE_HTTP_CREDENTIALS=ada:a=b:c\nOTHER=x\n")
    assert (found["user"], found["password"]) == ("ada", "a=b:c")


def test_what_is_not_there_yet_has_the_defaults_of_the_role() -> None:
    port = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())["marathon_port"]
    assert client(["m1"]) == {"urls": [f"https://m1:{port}"], "user": "", "password": ""}
    assert client(["m1", "m2"], ["", environment(host="m2")])["urls"] == [
        f"https://m1:{port}",
        f"https://m2:{port}",
    ]
