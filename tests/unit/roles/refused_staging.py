"""Refusals of the role staging."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from refused import Refused


def store(**other: Any) -> dict[str, Any]:
    return {"staging_stores": [{"name": "bulk", "path": "/bulk", **other}]}


REFUSED = {
    "staging": [
        Refused("staging_store is no variable of the role", {"staging_store": "/bulk"}),
        Refused("is no plain absolute path", {"staging_areas": "scratch"}),
        Refused("is no plain absolute path", {"staging_areas": "/scratch/$(id)"}),
        Refused("is no plain absolute path", {"staging_areas": "/scratch/../etc"}),
        Refused("is no plain absolute path", store(path="bulk")),
        Refused("is no plain absolute path", store(path="/bulk/a b")),
        Refused("staging_stores has the name 'a/b'", store(name="a/b")),
        Refused("staging_stores has the name 'a:b'", store(name="a:b")),
        Refused("staging_stores has the name '-a'", store(name="-a")),
        Refused(
            "staging_stores has 'bulk' more than once",
            {"staging_stores": [{"name": "bulk", "path": path} for path in ("/bulk", "/scratch")]},
        ),
        Refused("staging_partition is 'a b'", {"staging_partition": "a b"}),
        Refused("is on the file system of the machine's root", {"staging_areas": "/var/scratch/users"}),
        Refused("/var/bulk (store bulk) is on the file system", store(path="/var/bulk")),
    ],
}
