"""Refusals of the role network."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from refused import Refused

REFUSED = {
    "network": [
        Refused("network_interface is no variable of the role", {"network_interface": []}),
        Refused("network_interfaces has no interface", {"network_interfaces": []}),
        Refused("there is no interface eth7", {"network_interfaces": [{"name": "eth7"}]}),
        Refused("network_confirm_seconds is 0", {"network_confirm_seconds": 0}),
    ],
}
