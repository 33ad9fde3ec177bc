#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: measure a machine, and keep what was measured."""

from __future__ import annotations

DOCUMENTATION = r"""
module: benchmark
short_description: Measure a machine and keep the results
version_added: 0.1.0
description:
  - Measures processors and memory with the HPC Challenge, a file system with fio, or a link to another
    machine with ping and iperf3. The programs must be installed.
  - The first results are the baseline, with which later ones are compared.
  - Refuses to measure while a job of Slurm or another measurement runs on the machine.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: none
    description: Nobody knows the values before.
options:
  results:
    description: Absolute path of the file that keeps the results, as JSON. Its folder must exist.
    type: path
    default: /var/lib/gpufarm/benchmarks/results.json
  measure:
    description: >-
      When to measure. V(missing) only what is not in the results, V(again) also what is there, and
      V(baseline) likewise, and the values become the baseline.
    type: str
    choices: [missing, again, baseline]
    default: missing
  processors:
    description: Measure processors and memory, with a matrix of so many MiB for each core.
    type: int
  folder:
    description: Measure the file system of this folder, an absolute path.
    type: path
  file_mib:
    description: Size in MiB of the file that is written and read in O(folder).
    type: int
    default: 1024
  link:
    description: Measure a link to a machine at which iperf3 serves.
    type: dict
    suboptions:
      network:
        description: The network in CIDR notation, which names the values.
        type: str
        required: true
      bind:
        description: Address of this machine in the network.
        type: str
        required: true
      address:
        description: Address of the other machine in the network.
        type: str
        required: true
      port:
        description: Port at which it serves.
        type: int
        default: 5201
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Measure processors and memory
  gpufarm.cluster.benchmark:
    processors: 256
  register: measured

- name: Show what has become slower
  ansible.builtin.debug:
    msg: "{{ measured.worse }}"
"""

RETURN = r"""
measured:
  description: Whether it was measured, or would be in check mode.
  returned: success
  type: bool
values:
  description: All values that are kept, by name. Names tell the units; GB and MB are powers of ten.
  returned: success
  type: dict
  sample: {hpl_gflops: 1890.4, memory_gb_s: 210.7}
worse:
  description: Values that are more than ten percent worse than the baseline, as sentences.
  returned: success
  type: list
  elements: str
  sample: [memory_gb_s is 160.1, 24% worse than 210.7 at first]
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.results import PATH, Results, parse
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.files import replace_file

LINK = {
    "network": {"type": "str", "required": True},
    "bind": {"type": "str", "required": True},
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "default": 5201},
}


def known(module: AnsibleModule, path: Path) -> Results:
    """Return the results of earlier runs."""
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Results()
    except (OSError, ValueError) as error:
        return module.fail_json(msg=f"{path} cannot be read: {error}; remove it to measure anew.")


@contextmanager
def alone(module: AnsibleModule, path: Path) -> Iterator[None]:
    """Hold the lock of the results, so that nobody else measures at the same time."""
    try:
        descriptor = os.open(
            path.with_name(f".{path.name}.lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600
        )
    except OSError as error:
        module.fail_json(msg=f"{path} cannot be locked: {error.strerror}.")
    with os.fdopen(descriptor):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            module.fail_json(msg="The machine is measured by another run; wait until it has ended.")
        yield


def subject(options: dict[str, Any]) -> str:
    """Return how the names of the values begin that are asked for, and no others."""
    if options["link"]:
        return f"link.{options['link']['network']}."
    return f"{options['folder']}." if options["folder"] else "hpl_"


def measured(options: dict[str, Any]) -> dict[str, float]:
    """Measure what is asked for.

    Raises:
        NotMeasured: it cannot be measured.
    """
    if options["link"]:
        return run.link(**options["link"])
    if options["folder"]:
        return run.files(options["folder"], options["file_mib"])
    return run.processors(options["processors"])


def measure(module: AnsibleModule, path: Path) -> None:
    """Measure what is to be measured, keep it, and end the module."""
    options, results = module.params, known(module, path)
    end = options["link"]["address"] if options["link"] else ""
    wanted = options["measure"] != "missing" or not results.has(subject(options), end)
    if wanted and not module.check_mode:
        if others := run.busy():
            module.fail_json(msg=f"The machine runs {others}.")
        try:
            values = measured(options)
        except run.NotMeasured as error:
            module.fail_json(msg=str(error))
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        results = results.with_values(values, now, anew=options["measure"] == "baseline", end=end)
        os.umask(0o022)
        try:
            replace_file(path, json.dumps(asdict(results), indent=2, sort_keys=True) + "\n", 0o644)
        except OSError as error:
            module.fail_json(msg=f"{path} cannot be written: {error.strerror}.")
    module.exit_json(changed=wanted, measured=wanted, values=results.values, worse=results.sentences())


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "results": {"type": "path", "default": PATH},
            "measure": {"type": "str", "choices": ["missing", "again", "baseline"], "default": "missing"},
            "processors": {"type": "int"},
            "folder": {"type": "path"},
            "file_mib": {"type": "int", "default": 1024},
            "link": {"type": "dict", "options": LINK},
        },
        mutually_exclusive=[("processors", "folder", "link")],
        required_one_of=[("processors", "folder", "link")],
        supports_check_mode=True,
    )
    path = Path(module.params["results"])
    with nullcontext() if module.check_mode else alone(module, path):
        measure(module, path)


if __name__ == "__main__":
    main()
