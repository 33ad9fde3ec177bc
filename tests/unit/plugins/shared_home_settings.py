"""The settings of the role shared_home, as its vars hand them on."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROLE = Path(__file__).resolve().parents[3] / "roles" / "shared_home"
EXPORT = "nfs.example.org:/export/home"


def role_settings(**changes: Any) -> dict[str, Any]:
    """The role's defaults with changes, as its vars hand them on."""
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    machines = {"serves": False, "server_address": "", "client_addresses": []}
    names = {name.removeprefix("shared_home_"): value for name, value in defaults.items()}
    return {**names, **machines, **changes}
