# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of the settings of the role monitoring. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from . import machines, receivers
from .alerts import alerts, rules
from .hubs import hubs

# As names of files and as values of the label `instance`.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Prometheus, "Storage", section "Operational aspects": units of --storage.tsdb.retention.size.
SIZE = re.compile(r"[1-9][0-9]*(MB|GB|TB)")
# Prometheus forgets a series after five minutes without a sample ("Querying", section "Staleness"), and rules
# are evaluated at other moments than series are measured.
LONGEST_INTERVAL = 120  # seconds
URL = re.compile(r"https?://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:[1-9][0-9]{0,4})?(/[^\s@]*)?")
CERTIFICATE = "-----BEGIN CERTIFICATE-----"
NOBODY: Mapping[str, Any] = {
    "name": "",
    "machines": [],
    "servers": [],
    "addresses": {},
    "hub_machines": [],
    "hub_addresses": {},
}


def plan(
    settings: Mapping[str, Any],
    found: Mapping[str, Any] | None = None,
    certificates: Mapping[str, str] | None = None,
    files_of_hubs: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Check settings and choose the alerts.

    Args:
        settings: the role's variables without ``monitoring_``.
        found: machines of the inventory, as `machines.problems` takes them; None for none.
        certificates: of these machines, by name, as far as they are known.
        files_of_hubs: as far as they could be read, as `hubs.hubs` takes them.

    Returns:
        ``problems``, each a sentence; if there are none, ``targets``, what the server asks on other machines
        (``name``, ``address`` and ``certificate`` of each), ``hubs`` there, as `hubs.hubs` returns them,
        ``rules``, those for alerts as Prometheus reads them, and ``alertmanager``, the text of the
        configuration of Alertmanager (JSON, which is YAML too), empty without receivers.
    """
    found = NOBODY if found is None else found
    problems = [
        *_problems(settings),
        *machines.problems(settings, found),
        *_found_problems("machines", found),
        *_found_problems("hub_machines", found),
        *receivers.problems(settings),
    ]
    if problems:
        return {"problems": problems}
    sent = receivers.configuration(settings)
    return {
        "problems": [],
        "targets": machines.targets(settings, found, certificates or {}),
        "hubs": hubs(settings, found, files_of_hubs),
        "rules": rules(settings["muted_alerts"]),
        "alertmanager": json.dumps(sent, indent=2, ensure_ascii=False) if sent else "",
    }


def _problems(settings: Mapping[str, Any]) -> Iterator[str]:
    if not settings["parts"]:
        yield "monitoring_parts is empty; name server, node or both, or set monitoring_state to absent."
    for one, other in combinations(("port", "node_port", "alertmanager_port"), 2):
        if settings[one] == settings[other]:
            yield f"monitoring_{one} and monitoring_{other} are both {settings[one]}; choose two ports."
    if not 10 <= settings["interval"] <= LONGEST_INTERVAL:
        yield (
            f"monitoring_interval is {settings['interval']}, and alerts need several measurements in five"
            f" minutes; choose 10 to {LONGEST_INTERVAL} seconds."
        )
    if settings["retention_days"] < 1:
        yield f"monitoring_retention_days is {settings['retention_days']}; choose 1 or more."
    if not SIZE.fullmatch(settings["retention_size"]):
        yield (
            f"monitoring_retention_size is '{settings['retention_size']}'; write a whole number with MB, GB"
            " or TB, such as 5GB."
        )
    url = settings["alertmanager_url"]
    if url and not URL.fullmatch(url):
        yield f"monitoring_alertmanager_url is '{url}'; write one like https://alerts.example.org:9093."
    known = {one.name for one in alerts()}
    for name in settings["muted_alerts"]:
        if name not in known:
            yield f"monitoring_muted_alerts has '{name}', which is no alert; the README lists their names."
    if not all(CERTIFICATE in one for one in settings["readers"]):
        yield "An entry of monitoring_readers is no certificate; give the text of a PEM file."
    yield from _target_problems(settings["targets"])
    yield from _hub_problems(settings["hubs"])


def _target_problems(targets: list[Mapping[str, Any]]) -> Iterator[str]:
    yield from _name_problems("monitoring_targets", targets)
    for one in targets:
        if not receivers.ADDRESS.fullmatch(one["address"]):
            yield (
                f"The address '{one['address']}' of '{one['name']}' in monitoring_targets is not understood;"
                " write host and port, such as gpu2.example.org:9100."
            )
        if CERTIFICATE not in one["certificate"]:
            yield (
                f"The certificate of '{one['name']}' in monitoring_targets is not that of a machine; give the"
                " text that the entry point identity of this role has returned there."
            )


def _hub_problems(hubs: list[Mapping[str, Any]]) -> Iterator[str]:
    yield from _name_problems("monitoring_hubs", hubs)
    for one in hubs:
        if not re.fullmatch(r"https://[^\s/]+", one["url"]):
            yield f"The URL '{one['url']}' in monitoring_hubs does not start with https:// or has a path."
        if CERTIFICATE not in one["ca_certificate"] or not one["token"]:
            yield (
                f"The hub {one['url']} in monitoring_hubs lacks its authority's certificate or its token;"
                " both are in /etc/jupyterhub on its machine."
            )


def _found_problems(variable: str, found: Mapping[str, Any]) -> Iterator[str]:
    yield from _name_problems(
        f"monitoring_{variable}", [{"name": name} for name in dict.fromkeys(found[variable])]
    )


def _name_problems(variable: str, entries: list[Mapping[str, Any]]) -> Iterator[str]:
    names = [one["name"] for one in entries]
    for name in names:
        if not NAME.fullmatch(name) or names.count(name) > 1:
            yield (
                f"The name '{name}' in {variable} is used twice or has other characters than letters, digits,"
                " '.', '_' and '-'; give each machine a name of its own."
            )
