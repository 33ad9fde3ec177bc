# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of masters and agents for tests: the roles' defaults with what a site has to give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"
GIVEN = {"zookeeper": ["zk1:2181", "zk2:2181", "zk3:2181"], "tls": "none", "url": "/srv/mesos.deb"}
GIVEN["checksum"] = "sha256:" + 64 * "a"


def _defaults(role: str) -> dict[str, Any]:
    found = yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text())
    return {name.removeprefix(f"{role}_"): value for name, value in found.items()}


def master(**changes: Any) -> dict[str, Any]:
    found = {
        **_defaults("mesos_master"),
        **GIVEN,
        "hostname": "m1",
        "host": "m1",
        "masters": ["m1", "m2", "m3"],
        "before": {},
        "log_elsewhere": "",
    }
    return {**found, **changes}


def agent(**changes: Any) -> dict[str, Any]:
    resources = {"cpus": 4, "mem": 8192, "disk": 10000, "ports": "31000-32000"}
    found = {**_defaults("mesos_agent"), **GIVEN, "hostname": "a1", "masters": ["m1"], "resources": resources}
    return {**found, **changes}


def machine(**changes: Any) -> dict[str, Any]:
    found = {
        "name": "a1",
        "cgroup": 1,
        "glibc": "2.31",
        "kernel": "5.4.0-1",
        "folders": [],
        "cordoned": [],
        "remembered": "",
        "gpus": None,
    }
    return {**found, **changes}
