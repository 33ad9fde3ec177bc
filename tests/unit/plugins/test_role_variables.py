"""Roles are refused by releases of Ansible in which they would write wrong files."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleError
from ansible_collections.gpufarm.cluster.plugins.lookup import role_variables

ROOT = Path(__file__).parents[3]


def test_an_older_ansible_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role_variables, "release", "2.18.19")
    with pytest.raises(
        AnsibleError, match=r"needs ansible-core 2\.19 or later, and this is 2\.18\.19; install"
    ):
        role_variables.LookupModule().run(["mig"])


def test_the_oldest_is_that_of_the_collection() -> None:
    required = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["requires_ansible"]
    assert required.startswith(">={}.{}.0,".format(*role_variables.OLDEST))
