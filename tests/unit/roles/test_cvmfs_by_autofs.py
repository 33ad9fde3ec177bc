"""Repositories are mounted by autofs or by units, never by both."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from harness.host import Host
from harness.life import on


@pytest.mark.parametrize("mount", ["autofs", "systemd-automount", "static"])
@pytest.mark.parametrize("role", ["cvmfs_client"])
def test_a_client_without_an_account_is_set_up_for_that_mount_alone(role: str, mount: str) -> None:
    nobody = {"ansible_facts": {"getent_passwd": {"cvmfs": None}}}
    case = on(Host(), role).with_answers({"Service | Look up the account of the client": nobody})
    one = case.run(role, {"cvmfs_client_mount": mount})
    assert not one.failed, one.refusal
    setups = [call.args["argv"] for call in one.calls if "cvmfs_config" in call.args.get("argv", [])]
    assert [words[-1] for words in setups if "setup" in words] == [
        "setup" if mount == "autofs" else "noautofs"
    ]
    assert ("chksetup" in [words[-1] for words in setups]) == (mount == "autofs")
