# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation that the modules which talk to a cluster's HTTP interface share."""

from __future__ import annotations


class ModuleDocFragment:
    """How the service is reached (plugins/module_utils/_cluster/io/http.py, CONNECTION_OPTIONS)."""

    DOCUMENTATION = r"""
options:
  urls:
    description:
      - Addresses of all servers of the service, such as V(https://master1.example.org:5050). Any of them may
        be down, and the one that leads is found.
    type: list
    elements: str
    required: true
  username:
    description: User for basic authentication; empty for none.
    type: str
    default: ""
  password:
    description: Password of O(username).
    type: str
    default: ""
  token:
    description: Token that is sent in place of a user and a password.
    type: str
    default: ""
  token_scheme:
    description: Word that stands before the token, such as V(Bearer), or V(token) for DC/OS.
    type: str
    default: Bearer
  ca_path:
    description:
      - File on the target with the certificates, in PEM format, of the authorities that sign the servers'
        certificates. Without it, those of the target's system.
    type: path
  timeout:
    description: Seconds that one request may take.
    type: float
    default: 30
  patience:
    description:
      - Seconds for which a service is asked again that does not answer, is still starting or has no leader,
        as happens while another leader is elected.
    type: float
    default: 30
author:
  - gpufarm maintainers (@gpufarm)
"""
