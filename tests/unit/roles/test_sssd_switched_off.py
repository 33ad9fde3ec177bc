"""The role sssd refuses nothing on a machine that is to have no users of a directory."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from harness import CASES


@pytest.mark.parametrize("enabled", [True, False])
def test_a_machine_that_is_to_have_no_directory_may_have_a_configuration_of_the_site(enabled: bool) -> None:
    case = CASES["sssd"].with_answers(
        {"Foreign | Find a configuration of SSSD that is not of this role": {"stdout": "/etc/sssd/sssd.conf"}}
    )
    given = {} if enabled else {"sssd_servers": [], "sssd_user_base": ""}
    checked = case.run("sssd", {"sssd_enabled": enabled, **given}, entry="validate")
    assert ("which this role did not write" in checked.refusal) == enabled
    assert bool(checked.failed) == enabled
