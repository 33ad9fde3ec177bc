#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what users of a host held, and for how long."""

from __future__ import annotations

DOCUMENTATION = r"""
module: usage_info
short_description: GPUs, slices, CPUs and memory that users held
version_added: 0.1.0
description:
  - Reads the jobs that slurmdbd has recorded, and the GPU slices that notebooks held, which a hub of the role
    P(gpufarm.cluster.jupyterhub#role) writes down.
  - A use that began before the period or ended after it counts as far as it is in it. A use that goes on
    counts until now.
  - The filter P(gpufarm.cluster.usage_report#filter) adds the uses of several hosts up.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  sources:
    description: Sources to read, V(slurm) with C(sacct), V(hub) from the hub's log and its file of leases.
    type: list
    elements: str
    choices: [slurm, hub]
    required: true
  since:
    description: First moment of the period, a date or time in ISO 8601, in UTC unless it says otherwise.
    type: str
    required: true
  before:
    description: First moment after the period, likewise. Without it, now.
    type: str
  machine:
    description: Name of the host in the uses. Without it, the one that the host has itself.
    type: str
  audit_log:
    description: Absolute path of the hub's log.
    type: path
    default: /var/log/jupyterhub/audit.jsonl
  leases:
    description: Absolute path of the hub's file of leases.
    type: path
    default: /var/lib/jupyterhub/leases.json
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Read what jobs used in November
  gpufarm.cluster.usage_info:
    sources: [slurm]
    since: "2026-11-01"
    before: "2026-12-01"
  register: november
"""

RETURN = r"""
uses:
  description: The uses, each with its source, user, group, begin and end, and what was held.
  returned: success
  type: list
  elements: dict
  sample:
    - source: slurm
      identity: farm/17/1795689793
      user: ada
      group: physics
      begin: "2026-11-26T10:00:00+00:00"
      end: "2026-11-26T12:00:00+00:00"
      slices: {1g.10gb: 1}
      gpus: 0
      cpus: 2
      memory: 4.0
      machine: ctl
"""

import gzip
import platform
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._usage.report import as_text, within
from ansible_collections.gpufarm.cluster.plugins.module_utils._usage.use import (
    COLUMNS,
    Use,
    from_audit,
    from_leases,
    from_sacct,
    moment,
)


def read_slurm(module: AnsibleModule, since: datetime, until: datetime, now: datetime) -> Iterator[Use]:
    """Return the jobs of the period."""
    # In UTC: a local time may be two.
    period = [
        f"--starttime={since.astimezone(UTC):%Y-%m-%dT%H:%M:%S}",
        f"--endtime={until.astimezone(UTC):%Y-%m-%dT%H:%M:%S}",
    ]
    options = ["--allusers", "--allocations", "--duplicates", "--parsable2", "--noheader"]
    program = module.get_bin_path("sacct")
    if program is None:
        module.fail_json(msg="The host has no sacct; read the jobs on one that has Slurm's clients.")
    code, printed, complaint = module.run_command(
        [program, *options, *period, f"--format={','.join(COLUMNS)}"],
        environ_update={"LC_ALL": "C.UTF-8", "SLURM_TIME_FORMAT": "%s", "TZ": "UTC"},
    )
    if code:
        module.fail_json(
            msg=f"sacct does not tell the jobs ({' '.join(complaint.split())}); check slurmdbd and run again."
        )
    yield from from_sacct(printed, now)


def read_lines(log: Path, since: datetime) -> Iterator[str]:
    """Return the lines of a log, with those that logrotate has moved away since."""
    for file in sorted(log.parent.glob(f"{log.name}*")):
        if file.stat().st_mtime >= since.timestamp():
            opened = gzip.open if file.suffix == ".gz" else open
            with opened(file, "rt", encoding="utf-8", errors="replace") as lines:
                yield from lines


def read_hub(log: Path, leases: Path, since: datetime, now: datetime) -> Iterator[Use]:
    """Return what notebooks held, and hold.

    Raises:
        OSError, ValueError: a file cannot be read or is damaged.
    """
    machine = platform.node()
    # In this order: what is given back in between is told twice, as the same use, and not never.
    if leases.exists():
        yield from from_leases(leases.read_text(encoding="utf-8"), machine, now)
    yield from from_audit(read_lines(log, since), machine)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "sources": {"type": "list", "elements": "str", "choices": ["slurm", "hub"], "required": True},
            "since": {"type": "str", "required": True},
            "before": {"type": "str"},
            "machine": {"type": "str"},
            "audit_log": {"type": "path", "default": "/var/log/jupyterhub/audit.jsonl"},
            "leases": {"type": "path", "default": "/var/lib/jupyterhub/leases.json"},
        },
        supports_check_mode=True,
    )
    given, now = module.params, datetime.now(UTC)
    try:
        since = moment(given["since"])
        until = moment(given["before"]) if given["before"] else now
        if since >= until:
            raise ValueError(
                f"The period from {given['since']} to {given['before'] or 'now'} is empty; correct it."
            )
        uses: list[Use] = []
        if "slurm" in given["sources"]:
            uses += read_slurm(module, since, until, now)
        if "hub" in given["sources"]:
            uses += read_hub(Path(given["audit_log"]), Path(given["leases"]), since, now)
    except (
        AttributeError,
        EOFError,
        IndexError,
        KeyError,
        OSError,
        TypeError,
        ValueError,
        zlib.error,
    ) as error:
        module.fail_json(
            msg=f"The uses cannot be read: {error} ({type(error).__name__}). Correct that and run again."
        )
    machine = given["machine"] or platform.node()
    told = (replace(one, machine=machine) for one in within(uses, since, until))
    module.exit_json(changed=False, uses=[as_text(one) for one in told])


if __name__ == "__main__":
    main()
