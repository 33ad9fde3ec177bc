"""Which steps the role shared_home takes, and which it leaves out."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from harness import CASES, Run
from harness.stubs import ALL_IS_WELL

CASE = CASES["shared_home"]
DISK = {"shared_home_kind": "local", "shared_home_source": "UUID=1-2"}
FOLDER = {"shared_home_kind": "local", "shared_home_source": ""}
NFS: dict[str, Any] = {}
OF_A_CLUSTER = {
    "shared_home_kind": "cluster",
    "shared_home_source": "",
    "shared_home_server": "10.0.0.9",
    "shared_home_clients": [["10.0.0.2"]],
}
INSTALLED = "Install | Install the packages"
UNIT = "Service | Install the unit that mounts the homes"


def run(variables: dict[str, Any], *changed: str, check: bool = False, **found: Any) -> Run:
    """Run the role on a machine of which other things are known, and which some steps change."""
    known: Any = ALL_IS_WELL["gpufarm.cluster.shared_home_info"]
    answers: dict[str, Any] = {"gpufarm.cluster.shared_home_info": {**known, **found}}
    answers |= {name: {"changed": True} for name in changed}
    one = CASE.with_answers(answers).run("shared_home", variables, check=check)
    assert not one.failed, one.refusal
    return one


def asked(one: Run, name: str) -> list[dict[str, Any]]:
    """Arguments with which a step called its module."""
    return [call.args for call in one.calls if call.name.endswith(name)]


@pytest.mark.parametrize(
    ("variables", "exists", "made"),
    [(FOLDER, False, True), (FOLDER, True, False), (DISK, False, False)],
    ids=["shared_home-new", "shared_home-there", "shared_home-disk"],
)
def test_a_folder_of_homes_is_made_where_there_is_none(
    variables: dict[str, Any], exists: bool, made: bool
) -> None:
    folders = asked(run(variables, exists=exists), "Configure | Make the folder of the homes")
    assert [(one["path"], one["mode"], one["owner"]) for one in folders] == made * [
        ("/srv/home", "0755", "root")
    ]


@pytest.mark.parametrize(
    ("variables", "changed", "check", "looked"),
    [
        (NFS, (INSTALLED,), False, True),
        (NFS, (INSTALLED,), True, True),
        (NFS, (), False, False),
        (OF_A_CLUSTER, (), False, True),
        (OF_A_CLUSTER, (INSTALLED,), True, False),
        (DISK, (INSTALLED,), False, False),
    ],
)
def test_the_file_system_of_a_server_is_looked_at_as_soon_as_it_can_be(
    variables: dict[str, Any], changed: tuple[str, ...], check: bool, looked: bool
) -> None:
    assert bool(asked(run(variables, *changed, check=check), "Validate | Inspect the file system")) == looked


@pytest.mark.parametrize(
    ("mounted", "changed", "check", "recorded"),
    [
        (True, (UNIT,), False, False),
        (True, (), False, True),
        (False, (UNIT,), False, True),
        (True, (), True, False),
    ],
)
def test_a_mount_whose_unit_has_other_options_is_told_of_again(
    mounted: bool, changed: tuple[str, ...], check: bool, recorded: bool
) -> None:
    one = run(NFS, *changed, check=check, mounted=mounted)
    assert bool(asked(one, "Write the record of the role")) == recorded


@pytest.mark.parametrize("exported", [True, False])
def test_nothing_is_asked_of_a_server_that_exports_no_homes(exported: bool) -> None:
    found = {"Remove | Check for the export of the homes": {"stat": {"exists": exported}}}
    one = CASE.with_answers(found).run("shared_home", {"shared_home_state": "absent"})
    assert not one.failed, one.refusal
    steps = [
        f"Remove | {name}" for name in ("Export the homes to no machine", "Have the server read its exports")
    ]
    steps.append("Remove | Stop the server if there are no other exports")
    assert [len(asked(one, name)) for name in steps] == 3 * [int(exported)]


def test_homes_that_other_machines_have_mounted_stay_exported() -> None:
    known: Any = ALL_IS_WELL["gpufarm.cluster.shared_home_info"]
    found = {"gpufarm.cluster.shared_home_info": {**known, "connected": ["10.0.0.2"]}}
    one = CASE.with_answers(found).run("shared_home", {"shared_home_state": "absent"})
    assert "are mounted by 10.0.0.2; remove them there first" in one.refusal
    assert not [call for call in one.calls if not call.asks]
