#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: change the network, and go back unless that is confirmed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: network_configuration
short_description: Change the network of a machine, which goes back unless that is confirmed
version_added: 0.1.0
description:
  - Begins to replace the files of the role P(gpufarm.cluster.network#role) in C(/etc/systemd/network), and
    returns before the network changes, as that may take the connection along.
  - The machine goes back to the former files after a while, or at its next boot, unless
    C(gpufarm-network confirm) runs in the meantime, over a connection that was made anew.
  - The program C(gpufarm-network) must be there, see M(gpufarm.cluster.host_program).
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Returns the files before and after.
options:
  files:
    description: >-
      Contents of all files by their names, which begin with C(05-gpufarm-). Others that begin so are removed.
    type: dict
    required: true
  seconds:
    description: Time to confirm.
    type: int
    required: true
seealso:
  - module: gpufarm.cluster.network_info
  - module: gpufarm.cluster.network_validate
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Give an interface an address
  gpufarm.cluster.network_configuration:
    files:
      05-gpufarm-eth1.network: |
        [Match]
        Name=eth1
        [Network]
        Address=192.0.2.7/24
    seconds: 120
  register: change

- name: Come in again
  ansible.builtin.wait_for_connection:
    delay: 5
    timeout: 120
  when: change is changed

- name: Keep the change
  ansible.builtin.command: /opt/gpufarm/bin/gpufarm-network confirm
  when: change is changed
"""

RETURN = r""" # """

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.files import FOLDER
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.io import change
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.io.read import NetworkError


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "dict", "required": True},
            "seconds": {"type": "int", "required": True},
        },
        supports_check_mode=True,
    )
    wanted = module.params["files"]
    try:
        before = change.written()
        if before != wanted and not module.check_mode:
            change.start(wanted, module.params["seconds"])
    except NetworkError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error.filename} cannot be read or written: {error.strerror}.")
    diff = [
        {
            "before_header": f"{FOLDER}/{name}",
            "after_header": f"{FOLDER}/{name}",
            "before": before.get(name, ""),
            "after": wanted.get(name, ""),
        }
        for name in sorted(before.keys() | wanted.keys())
        if before.get(name) != wanted.get(name)
    ]
    module.exit_json(changed=before != wanted, diff=diff)


if __name__ == "__main__":
    main()
