"""The report of hours reads what the hub writes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from ansible_collections.gpufarm.cluster.plugins.module_utils._usage.use import from_audit, from_leases
from gpufarm_hub.sharing.leases import Leases
