#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the host key of a container that is reached with SSH."""

from __future__ import annotations

DOCUMENTATION = r"""
module: container_host_key
short_description: Tell the SSH host key of a container, or make one for it
version_added: 0.1.0
description:
  - Reads the host key that an app of Marathon has in its environment. If there is no such app, or it has no
    key, a new one is made, which is the app's once it is given RV(secret_env) by
    M(gpufarm.cluster.marathon_app).
  - So the key is known before the container runs, is the same wherever it runs, and nobody has to trust what
    answers first.
  - The result has the private key; a task with this module says C(no_log).
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
  - gpufarm.cluster.cluster_http
options:
  id:
    description: Path of the app.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Have a host key
  gpufarm.cluster.container_host_key:
    urls: [https://marathon1.example.org:8443]
    username: marathon
    password: "{{ marathon_password }}"
    id: /ada/gpu
  register: host_key
  no_log: true
"""

RETURN = r"""
secret_env:
  description: The private key, by the name that it has in the app's environment.
  returned: success
  type: dict
public_key:
  description: Its public part.
  returned: success
  type: str
  sample: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA...
fingerprint:
  description: The fingerprint of it, as SSH shows it.
  returned: success
  type: str
  sample: SHA256:0YWr7fkC4yRM3QhSQIH3VoLMUSLtdWiXyjmPFYHqXsE
"""

import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.http import ClusterError
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._container_request import HOST_KEY
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.app import AppProblem, read_path
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.io.api import Marathon
from ansible_collections.gpufarm.cluster.plugins.module_utils._ssh.host_key import (
    HostKeyProblem,
    fingerprint,
    public_key,
)


def make(module: AnsibleModule) -> str:
    """Return a new private key, in the format of OpenSSH."""
    program = module.get_bin_path("ssh-keygen")
    if program is None:
        raise ClusterError("There is no ssh-keygen here to make a host key with; install OpenSSH's client.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key"
        module.run_command(
            [program, "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check_rc=True
        )
        return path.read_text(encoding="ascii").strip()


def gather(module: AnsibleModule, marathon: Marathon) -> dict[str, Any]:
    """Return the key of the app, or a new one."""
    path = read_path(module.params["id"])
    private = (marathon.app(path).get("env") or {}).get(HOST_KEY) or make(module)
    try:
        public = public_key(private)
    except HostKeyProblem as error:
        raise ClusterError(
            f"The variable {HOST_KEY} of {path} is {error}; remove the container and ask for it again."
        ) from error
    return {
        "changed": False,
        "secret_env": {HOST_KEY: private},
        "public_key": public,
        "fingerprint": fingerprint(public),
    }


def main() -> None:
    """Run the module."""
    run(Marathon.at, gather, {"id": {"type": "str", "required": True}}, AppProblem)


if __name__ == "__main__":
    main()
