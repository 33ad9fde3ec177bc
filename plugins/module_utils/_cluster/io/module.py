# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The frame of the modules of Mesos, Marathon and Chronos: arguments in, a result or one sentence out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, TypeVar

from ansible.module_utils.basic import AnsibleModule

from .http import CONNECTION_OPTIONS, ClusterError, Connection

Client = TypeVar("Client")


def run(
    service: Callable[[Connection], Client],
    work: Callable[[AnsibleModule, Client], dict[str, Any]],
    options: Mapping[str, Any],
    *problems: type[Exception],
) -> None:
    """Run a module.

    Args:
        service: makes the client of the service.
        work: does what the module is for, and returns its result.
        options: the module's own, beside those of the connection.
        problems: more exceptions whose text is a sentence for the user.
    """
    caught: tuple[type[Exception], ...] = (ClusterError, *problems)
    module = AnsibleModule(argument_spec={**CONNECTION_OPTIONS, **options}, supports_check_mode=True)
    try:
        result = work(module, service(Connection.of(module.params)))
    except caught as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)
