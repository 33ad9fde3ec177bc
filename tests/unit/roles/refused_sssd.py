"""Refusals of the role sssd."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from refused import Refused

REFUSED = {
    "sssd": [
        Refused("sssd_server is no variable of the role", {"sssd_server": "ldaps://ldap.example.org"}),
        Refused("sssd_servers is empty", {"sssd_servers": []}),
        Refused("sssd_servers has 'ldap.example.org'", {"sssd_servers": ["ldap.example.org"]}),
        Refused("sssd_user_base is ''", {"sssd_user_base": ""}),
        Refused("Only one of sssd_bind_dn and sssd_bind_password", {"sssd_bind_password": ""}),
        Refused(
            "host1 has /etc/sssd/sssd.conf, which this role did not write",
            {},
            {
                "Foreign | Find a configuration of SSSD that is not of this role": {
                    "rc": 0,
                    "stdout": "/etc/sssd/sssd.conf",
                }
            },
        ),
    ],
}
