"""A bench as an inventory of Ansible. Pure."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from lab.errors import LabError


def inventory(status: dict[str, Any]) -> dict[str, Any]:
    """Inventory data (Ansible's "Developing dynamic inventory") of what `lab status --json` tells.

    Groups: ``gpu`` has the hosts with simulated GPUs, ``iam`` the identity provider.

    :raises LabError: if the bench has no host.
    """
    hosts = status["hosts"]
    if not hosts:
        raise LabError(f"bench {status['bench']} is not up: start it with lab --bench {status['bench']} up")
    options = {
        "UserKnownHostsFile": status["known_hosts"],
        "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes",
        "ControlMaster": "auto",
        "ControlPersist": "60s",
        "ControlPath": status["ssh_control_path"],
    }
    connection = " ".join(f"-o {name}={value}" for name, value in options.items())
    variables = {
        host["name"]: {
            "ansible_host": host["address"],
            "ansible_user": "root",
            "ansible_ssh_private_key_file": status["ssh_key"],
            "ansible_ssh_common_args": connection,
            "ansible_python_interpreter": "/usr/bin/python3",  # known, so no run has to look for it
        }
        for host in hosts
    }
    iam = urlsplit(status["iam"]["url"]).hostname if status["iam"] else None
    provider = [host["name"] for host in hosts if host["address"] == iam]
    return {
        "_meta": {"hostvars": variables},
        "all": {"children": ["ungrouped", "gpu", "iam"]},
        "ungrouped": {
            "hosts": [host["name"] for host in hosts if not host["gpus"] and host["name"] not in provider]
        },
        "gpu": {"hosts": [host["name"] for host in hosts if host["gpus"]]},
        "iam": {"hosts": provider},
    }
