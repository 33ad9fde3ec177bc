#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: a directory beside the accounts of a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sssd_directory_info
short_description: Ask a directory (LDAP) as a machine will, and compare it with the machine's own accounts
version_added: 0.1.0
description:
  - Asks the directory by C(ldapsearch), with encryption and a check of the certificate, for a user, and for
    entries that have the name or number of the machine's own accounts and groups.
  - In check mode nothing is asked where C(ldapsearch) would be installed first.
notes:
  - The password of the bind account reaches the program by its standard input.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  servers:
    description: URLs of servers with the same content, of which the first that answers is asked.
    type: list
    elements: str
    required: true
  authority:
    description: Certificate of the authority, in PEM format; empty for the machine's own store.
    type: str
    default: ''
  bind_dn:
    description: Account that asks; empty to ask without logging in.
    type: str
    default: ''
  bind_password:
    description: Password of the account.
    type: str
    default: ''
  user_base:
    description: Distinguished name below which the users are.
    type: str
    required: true
  group_base:
    description: Distinguished name below which the groups are.
    type: str
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Ask the directory
  gpufarm.cluster.sssd_directory_info:
    servers: [ldaps://ldap.example.org]
    user_base: ou=people,dc=example,dc=org
    group_base: ou=groups,dc=example,dc=org
  register: directory
"""

RETURN = r"""
problems:
  description: Why users of the directory cannot be users of the machine, one sentence each.
  returned: success
  type: list
  elements: str
person:
  description: Name of one of the users; empty where nothing was asked.
  returned: success
  type: str
  sample: ada
groups:
  description: Names of the machine's own groups.
  returned: success
  type: list
  elements: str
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._sssd.entries import (
    FIRST_NUMBER,
    clashes,
    groups_filter,
    persons_filter,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._sssd.io.directory import (
    PROGRAM,
    Directory,
    DirectoryError,
    accounts,
)

PERSON = f"(&(objectClass=posixAccount)(uidNumber>={FIRST_NUMBER}))"


def problems_of(
    directory: Directory, bases: Mapping[str, str], users: Mapping[str, int], groups: Mapping[str, int]
) -> Iterator[str]:
    """Yield what keeps users of the directory from being users of the machine.

    Raises:
        DirectoryError: the directory does not answer.
    """
    persons, of_groups = persons_filter(users), groups_filter(groups)
    yield from clashes(
        directory.search(bases["user_base"], persons, ["uid", "uidNumber"]) if persons else [],
        users,
        directory.search(bases["group_base"], of_groups, ["cn", "gidNumber"]) if of_groups else [],
        groups,
    )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "servers": {"type": "list", "elements": "str", "required": True},
            "authority": {"type": "str", "default": ""},
            "bind_dn": {"type": "str", "default": ""},
            "bind_password": {"type": "str", "default": "", "no_log": True},
            "user_base": {"type": "str", "required": True},
            "group_base": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    given = module.params
    authority = Path(module.tmpdir, "authority.pem") if given["authority"] else None
    if authority:
        authority.write_text(given["authority"])
    directory = Directory(given["servers"], str(authority or ""), given["bind_dn"], given["bind_password"])
    users, groups = accounts("passwd"), accounts("group")
    problems: list[str] = []
    person = ""
    there = Path(PROGRAM).exists()
    if not there and not module.check_mode:
        module.fail_json(msg=f"{PROGRAM} is not on the machine; the role sssd installs it.")
    if there:
        try:
            found = directory.search(given["user_base"], PERSON, ["uid"], most=1)
            person = found[0].get("uid", "") if found else ""
            if not person:
                problems.append(
                    f"The directory shows no user with a number from {FIRST_NUMBER} on below "
                    f"{given['user_base']}; correct sssd_user_base, or what the bind account may read."
                )
            problems += problems_of(directory, given, users, groups)
        except DirectoryError as error:
            problems.append(f"The directory cannot be asked; correct sssd_*: {error}")
    module.exit_json(
        changed=False,
        problems=problems,
        person=person,
        groups=sorted(groups),
    )


if __name__ == "__main__":
    main()
