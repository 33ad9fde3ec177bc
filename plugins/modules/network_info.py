#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the interfaces of a machine, and which programs configure them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: network_info
short_description: Look at the interfaces of a machine and at what configures them
version_added: 0.1.0
description:
  - Returns interfaces, files of C(systemd-networkd), and interfaces that other programs configure.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
attributes:
  check_mode:
    support: full
    description: Only reads.
seealso:
  - module: gpufarm.cluster.network_configuration
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Look at the interfaces
  gpufarm.cluster.network_info:
  register: network
"""

RETURN = r"""
links:
  description: Output of C(ip -json -details address show).
  returned: success
  type: list
  elements: dict
connection:
  description: Address of the machine to which Ansible is connected by SSH; empty without SSH.
  returned: success
  type: str
  sample: 192.0.2.7
networkd:
  description: >-
    Whether C(systemd-networkd) is C(running), and C(files) that it uses, by the names of interfaces.
  returned: success
  type: dict
files:
  description: Contents of the files of C(systemd-networkd), by path; not those that another one hides.
  returned: success
  type: dict
ifupdown:
  description: Contents of the files of C(ifupdown), by path, where it is installed.
  returned: success
  type: dict
networkmanager:
  description: Interfaces that C(NetworkManager) configures.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.io import read


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    try:
        found = {
            "links": read.links(),
            "connection": read.connection(),
            "networkd": read.networkd(),
            "files": read.files(),
            "ifupdown": read.ifupdown(),
            "networkmanager": read.networkmanager(),
        }
    except read.NetworkError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error.filename} cannot be read: {error.strerror}; run the module as root.")
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
