#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the key that signs a package source, fetched and verified."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openpgp_key_info
short_description: Fetch the key that signs a package source, and verify its fingerprint
version_added: 0.1.0
description:
  - Returns the key that has the fingerprint, from the file that it is installed in, or else from its address.
    GnuPG is not needed.
  - Fails if the key cannot be had, or is another one. Nothing is written, so a caller knows before its first
    change.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
options:
  url:
    description: Address of the key in ASCII armor; C(file:) addresses are on the machine.
    type: str
    required: true
  fingerprint:
    description: Fingerprint of the primary key, in 40 hexadecimal digits without spaces.
    type: str
    required: true
  file:
    description: File that the key is installed in. If it holds the key, nothing is fetched.
    type: path
    required: true
  url_setting:
    description: Name of the setting that a user corrects if the address is wrong, for messages.
    type: str
    default: url
  fingerprint_setting:
    description: Name of the setting that a user corrects if the fingerprint is wrong, for messages.
    type: str
    default: fingerprint
seealso:
  - module: gpufarm.cluster.apt_source_info
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Have the key of a package source
  gpufarm.cluster.openpgp_key_info:
    url: https://mirror.example.org/key.asc
    fingerprint: 0123456789ABCDEF0123456789ABCDEF01234567
    file: /etc/apt/keyrings/example.asc
  register: signer

- name: Install the key
  gpufarm.cluster.text_files:
    folder: /etc/apt/keyrings
    files:
      example.asc: "{{ signer.key }}"
"""

RETURN = r"""
key:
  description: The key in ASCII armor.
  returned: success
  type: str
fetched:
  description: Whether the key was fetched; false if it was installed.
  returned: success
  type: bool
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import fetch_url
from ansible_collections.gpufarm.cluster.plugins.module_utils._apt import openpgp

TIMEOUT = 30  # seconds


def decode(data: bytes) -> str:
    """Return a text; what is none becomes one that is no key."""
    return data.decode("utf-8", "replace")


def installed(path: Path, fingerprint: str) -> str:
    """Return the key that a file holds; empty if it does not hold the wanted one."""
    try:
        key = decode(path.read_bytes())
        openpgp.verify(key, fingerprint)
    except (FileNotFoundError, openpgp.KeyFileError):
        return ""
    return key


def fetch(module: AnsibleModule, url: str) -> str:
    """Return what an address has; end the module if that is nothing."""
    response, info = fetch_url(module, url, timeout=TIMEOUT)
    # Addresses of files have no status.
    if response is None or info["status"] not in (200, None):
        module.fail_json(
            msg=f"The key at {url} cannot be had ({info['msg']}); correct {module.params['url_setting']}."
        )
    return decode(response.read())


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "fingerprint": {"type": "str", "required": True},
            "file": {"type": "path", "required": True},
            "url_setting": {"type": "str", "default": "url"},
            "fingerprint_setting": {"type": "str", "default": "fingerprint"},
        },
        supports_check_mode=True,
    )
    url, fingerprint = module.params["url"], module.params["fingerprint"]
    try:
        known = installed(Path(module.params["file"]), fingerprint)
        key = known or fetch(module, url)
        openpgp.verify(key, fingerprint)
    except openpgp.WrongKeyError as error:
        module.fail_json(
            msg=f"The key at {url} {error}; find out which is right before you change"
            f" {module.params['fingerprint_setting']}."
        )
    except openpgp.KeyFileError as error:
        module.fail_json(msg=f"The file at {url} {error}; correct {module.params['url_setting']}.")
    except OSError as error:
        module.fail_json(msg=f"The key at {url} cannot be had ({error}).")
    module.exit_json(changed=False, key=key, fetched=not known)


if __name__ == "__main__":
    main()
