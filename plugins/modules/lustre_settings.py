#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: pools and quotas of Lustre file systems, which the management target keeps."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lustre_settings
short_description: Set pools and quotas of Lustre file systems
version_added: 0.1.0
description:
  - Makes pools and adds object targets to them, and has targets enforce quotas. Runs where the
    management target is.
  - Pools and members that are not declared stay, as files may be laid out on them.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: none
    description: The commands are returned in RV(done).
options:
  pools:
    description: Names of object targets by pool, V(FILESYSTEM.POOL).
    type: dict
    default: {}
  quotas:
    description: Kinds of quota by file system, such as V(ugp), or V(none).
    type: dict
    default: {}
  enforced:
    description: Kinds that targets enforce, by target, as M(gpufarm.cluster.lustre_info) returns them.
    type: dict
    default: {}
  timeout:
    description: Seconds that each command may take.
    type: float
    default: 60
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Have a pool of fast targets, and enforce quotas of users and groups
  gpufarm.cluster.lustre_settings:
    pools:
      scratch.fast: [scratch-OST0000, scratch-OST0001]
    quotas:
      scratch: ug
    enforced: "{{ lustre.quotas }}"
"""

RETURN = r"""
done:
  description: Commands of lctl that were run, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [pool_new scratch.fast]
"""

import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import layout, read


class Lctl:
    """lctl, each call with a limited time."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.program = shutil.which("lctl", path="/usr/sbin:/sbin:/usr/bin:/bin")
        if self.program is None:
            module.fail_json(msg="lctl is not installed; install Lustre's server first.")

    def run(self, words: list[str]) -> str:
        """Run it; end the module when it fails."""
        done = timed.run([str(self.program), *words], self.module.params["timeout"])
        if done.status != 0:
            why = f"no answer within {self.module.params['timeout']:g} seconds"
            why = why if done.status is None else " ".join((done.errors or done.output).split())
            self.module.fail_json(msg=f"'lctl {' '.join(words)}' failed: {why}")
        return done.output

    def pools(self, file_systems: list[str]) -> dict[str, list[str]]:
        """Return the members of the pools of file systems."""
        names = [name for one in file_systems for name in read.parse_pool(self.run(["pool_list", one]))]
        return {name: read.parse_pool(self.run(["pool_list", name])) for name in names}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "pools": {"type": "dict", "default": {}},
            "quotas": {"type": "dict", "default": {}},
            "enforced": {"type": "dict", "default": {}},
            "timeout": {"type": "float", "default": 60},
        },
        supports_check_mode=True,
    )
    lctl = Lctl(module)
    wanted = module.params["pools"]
    there = lctl.pools(sorted({name.partition(".")[0] for name in wanted}))
    words = layout.pool_changes(wanted, there)
    words += layout.quota_changes(module.params["quotas"], module.params["enforced"])
    for command in words if not module.check_mode else []:
        lctl.run(command)
    module.exit_json(changed=bool(words), done=[" ".join(command) for command in words])


if __name__ == "__main__":
    main()
