#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: a program of this collection on a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_program
short_description: Install a program of this collection on a host
version_added: 0.1.0
description:
  - Installs a program that runs on the host by itself, such as the one that makes partitions at boot, in
    C(/opt/gpufarm/bin).
  - All programs share one Python package, C(gpufarm_host) in C(/opt/gpufarm/lib). It is replaced as a whole
    when it differs from this version of the collection, so no program has parts of two versions. The one
    before stays until the next replacement, for programs that have just started.
  - The last program that is removed takes the package along.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Returns the files before and after.
options:
  name:
    description: The program.
    type: str
    required: true
    choices:
      - gpufarm-cdi
      - gpufarm-gateway
      - gpufarm-health
      - gpufarm-home
      - gpufarm-mesos-metrics
      - gpufarm-metrics
      - gpufarm-mig
      - gpufarm-modulepath
      - gpufarm-network
      - gpufarm-scratch
      - gpufarm-settings
      - gpufarm-slurm-metrics
      - gpufarm-stage
      - gpufarm-submit
  state:
    description: Whether it is there.
    type: str
    choices: [absent, present]
    default: present
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Install the command that tells whether GPUs are well
  gpufarm.cluster.host_program:
    name: gpufarm-health
"""

RETURN = r"""
path:
  description: The program.
  returned: success
  type: str
  sample: /opt/gpufarm/bin/gpufarm-health
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.programs import (
    PROGRAMS,
    ROOT,
    Change,
    Host,
)


def shown(change: Change) -> dict[str, str]:
    """Return a file's change as Ansible shows it."""
    name = str(change.path)
    texts = {"before": change.before or "", "after": change.after or ""}
    return {"before_header": name, "after_header": name, **texts}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True, "choices": sorted(PROGRAMS)},
            "state": {"type": "str", "choices": ["absent", "present"], "default": "present"},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    name, host = module.params["name"], Host(ROOT)
    present = module.params["state"] == "present"
    try:
        changes = host.missing(name) if present else host.left_over(name)
        if changes and not module.check_mode:
            (host.install if present else host.remove)(name)
    except OSError as error:
        module.fail_json(msg=f"{error.filename or ROOT} cannot be changed: {error.strerror}.")
    module.exit_json(changed=bool(changes), path=str(host.bin / name), diff=[shown(one) for one in changes])


if __name__ == "__main__":
    main()
