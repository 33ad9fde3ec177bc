# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells the identity of a user in ZooKeeper's access lists."""

from __future__ import annotations

DOCUMENTATION = r"""
name: zookeeper_digest
short_description: Tell the digest of a user and password, as ZooKeeper's access lists have it
version_added: 0.1.0
description:
  - Returns what C(DigestAuthenticationProvider.generateDigest) of ZooKeeper does, without the name before it.
positional: _input
options:
  _input:
    description: User and password with a colon between them.
    type: str
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Show the identity of a user
  ansible.builtin.debug:
    msg: "mesos:{{ ('mesos:' ~ password) | gpufarm.cluster.zookeeper_digest }}"
"""

RETURN = r"""
_value:
  description: The SHA-1 hash of the text in Base64.
  type: str
"""

import base64
import hashlib
from collections.abc import Callable


def zookeeper_digest(pair: str) -> str:
    """Return the digest of user and password."""
    # ZooKeeper, DigestAuthenticationProvider: its access lists know no other hash. Passwords here are random.
    return base64.b64encode(hashlib.sha1(pair.encode(), usedforsecurity=False).digest()).decode()


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[str], str]]:
        """Return the filters by name."""
        return {"zookeeper_digest": zookeeper_digest}
