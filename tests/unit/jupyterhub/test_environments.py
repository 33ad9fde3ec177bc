"""Environments of notebooks: who is offered which, and what the notebook server is told."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from gpufarm_hub.spawning import environments, form
from gpufarm_hub.spawning.environments import Environment, EnvironmentsError
from gpufarm_hub.spawning.systemd_spawner import SystemdSliceSpawner

ALL = Environment("scientific", "Scientific Python", (), "/opt/e/scientific/1/jupyter")
FEW = Environment("course", "Course 2026", ("course", "staff"), "/opt/e/course/2/jupyter", "12.8")


def index(folder: Path, text: str) -> Path:
    file = folder / "environments.json"
    file.write_text(text)
    return file


def test_they_are_read_in_their_order(tmp_path: Path) -> None:
    told = [vars(one) | {"groups": list(one.groups)} for one in (FEW, ALL)]
    assert environments.read(index(tmp_path, json.dumps({"environments": told}))) == [FEW, ALL]


def test_a_file_of_an_earlier_version_of_the_role_is_read(tmp_path: Path) -> None:
    told = {name: value for name, value in vars(ALL).items() if name != "cuda"}
    assert environments.read(index(tmp_path, json.dumps({"environments": [told | {"groups": []}]}))) == [ALL]


def test_users_see_the_version_of_cuda() -> None:
    assert [one.label for one in (FEW, ALL)] == ["Course 2026 (CUDA 12.8)", "Scientific Python"]


def test_a_machine_without_the_role_has_none(tmp_path: Path) -> None:
    assert environments.read(tmp_path / "missing.json") == []


@pytest.mark.parametrize("text", ["", "[]", '{"environments": [{"name": "x"}]}', '{"environments": 1}'])
def test_a_damaged_file_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(EnvironmentsError, match="cannot be used"):
        environments.read(index(tmp_path, text))


def test_members_of_a_group_see_more() -> None:
    assert environments.seen_by([FEW, ALL], []) == [ALL]
    assert environments.seen_by([FEW, ALL], ["staff", "others"]) == [FEW, ALL]


def test_the_server_finds_those_that_the_user_sees_and_begins_with_the_chosen_one() -> None:
    assert environments.variables([FEW, ALL]) == {"JUPYTER_PATH": f"{FEW.path}:{ALL.path}"}
    assert "--MultiKernelManager.default_kernel_name=course" in environments.arguments(FEW)


@pytest.mark.parametrize("name", [None, 0, [], {"name": "course"}])
def test_an_environment_is_given_by_its_name(name: object) -> None:
    spawner = SystemdSliceSpawner.__new__(SystemdSliceSpawner)
    with pytest.raises(form.ChoiceError, match="must be given by its name"):
        spawner.apply_more({"environment": name})


def test_without_environments_nothing_changes() -> None:
    assert (environments.variables([]), environments.arguments(None)) == ({}, [])


def test_the_form_asks_where_there_is_a_choice() -> None:
    assert form.environment_fields([("scientific", "Scientific Python")]) == ""
    page = BeautifulSoup(form.environment_fields([("a", "<b>A"), ("b", "B")]), "html.parser")
    options = page.select("select[name=environment] option")
    assert [(one["value"], one.text) for one in options] == [("a", "<b>A"), ("b", "B")]
    assert form.parse({"environment": ["a"]}) == {"environment": "a"}
