# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells the fingerprints of the OpenPGP keys in a file."""

from __future__ import annotations

DOCUMENTATION = r"""
name: openpgp_fingerprints
short_description: Tell the fingerprints of the OpenPGP keys in a file
version_added: 0.1.0
description:
  - Reads a key file, so that the key of a package source can be compared with the one that is expected,
    without GnuPG.
positional: _input
options:
  _input:
    description: The contents of the file in base64, as M(ansible.builtin.slurp) returns them.
    type: str
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Read the key
  ansible.builtin.slurp:
    src: /etc/apt/keyrings/example.asc
  register: key

- name: Refuse any other key
  ansible.builtin.assert:
    that: key.content | gpufarm.cluster.openpgp_fingerprints == ['0123456789ABCDEF0123456789ABCDEF01234567']
"""

RETURN = r"""
_value:
  description: The fingerprints of the primary keys, in the order of the file; empty if it holds no key.
  type: list
  elements: str
"""

import base64
from collections.abc import Callable

from ansible_collections.gpufarm.cluster.plugins.module_utils._apt import openpgp


def openpgp_fingerprints(content: str) -> list[str]:
    """Return the fingerprints of the keys in a file that is given in base64."""
    try:
        return openpgp.fingerprints(base64.b64decode(content))
    except openpgp.KeyFileError:
        return []


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[str], list[str]]]:
        """Return the filters by name."""
        return {"openpgp_fingerprints": openpgp_fingerprints}
