#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: tunables of Lustre."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lustre_parameters
short_description: Set tunables of Lustre
version_added: 0.1.0
description:
  - Reads tunables with C(lctl get_param) and sets those that differ with C(lctl set_param), on this machine
    and until its file systems are unmounted.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Shows the tunables before and after.
options:
  parameters:
    description: Values by name, in which C(*) stands for several devices.
    type: dict
    required: true
  timeout:
    description: Seconds that each command may take.
    type: float
    default: 30
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Have more requests under way
  gpufarm.cluster.lustre_parameters:
    parameters:
      osc.scratch-*.max_rpcs_in_flight: 32
"""

RETURN = r"""
values:
  description: The values by full name, as they are now.
  returned: success
  type: dict
"""

import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import options, read


def ask(module: AnsibleModule, words: list[str]) -> str:
    """Run lctl for a limited time; end the module when it fails."""
    lctl = shutil.which("lctl", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if lctl is None:
        module.fail_json(msg="lctl is not installed; install Lustre's client first.")
    done = timed.run([str(lctl), *words], module.params["timeout"])
    if done.status is None:
        module.fail_json(
            msg=(
                f"'lctl {' '.join(words)}' did not answer within {module.params['timeout']:g} seconds;"
                " look at 'dmesg' on the machine."
            )
        )
    if done.status != 0:
        module.fail_json(msg=f"'lctl {' '.join(words)}' failed: {' '.join(done.errors.split())}")
    return done.output


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "parameters": {"type": "dict", "required": True},
            "timeout": {"type": "float", "default": 30},
        },
        supports_check_mode=True,
    )
    wanted: dict[str, str] = {}
    for name, value in module.params["parameters"].items():
        try:
            wanted[name] = options.check_tunable(name, value)
        except options.OptionError as error:
            module.fail_json(msg=f"Lustre cannot be given {error}.")
    before: dict[str, str] = {}
    differ: dict[str, str] = {}
    after: dict[str, str] = {}
    for pattern, value in wanted.items():
        found = read.parse_parameters(ask(module, ["get_param", pattern]))
        before.update(found)
        after.update(dict.fromkeys(found, value))
        if any(one != value for one in found.values()):
            differ[pattern] = value
    if differ and not module.check_mode:
        for pattern, value in differ.items():
            ask(module, ["set_param", f"{pattern}={value}"])
    lines = [
        "".join(f"{name}={value}\n" for name, value in sorted(values.items()))
        for values in (before, {**before, **after})
    ]
    module.exit_json(
        changed=bool(differ),
        values=before if module.check_mode else {**before, **after},
        diff={"before": lines[0], "after": lines[1]},
    )


if __name__ == "__main__":
    main()
