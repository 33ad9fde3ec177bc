"""File systems that the node exporter measures, by their types."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

VARS = Path(__file__).parents[3] / "roles" / "monitoring" / "vars" / "main.yml"
EXCLUDED = yaml.safe_load(VARS.read_text())["__monitoring_no_disks"].strip()


@pytest.mark.parametrize("kind", ["ext4", "lustre", "nfs4", "overlay", "xfs", "fuseblk"])
def test_disks_are_measured(kind: str) -> None:
    assert not re.search(EXCLUDED, kind)


@pytest.mark.parametrize("kind", ["fuse", "fuse.sshfs", "fuse.lustre", "fuse.\ufffd"])
def test_what_users_mount_does_not_end_the_exporter(kind: str) -> None:
    """Users choose path, source and type, and exporters (1.5, 1.9) end at a byte that is no UTF-8."""
    assert re.search(EXCLUDED, kind)
