"""The record on a machine: what is kept of a role's run, what differs later, and records that are lost."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.entry import (
    Entry,
    LostRecord,
    read,
    write,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.io import store, things
from ansible_collections.gpufarm.cluster.plugins.modules import machine_record
from hypothesis import given
from hypothesis import strategies as st

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lib" / "gpufarm" / "record"


@pytest.fixture
def run(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.setattr(
        machine_record, "Store", lambda: store.Store(folder, tmp_path / "gpufarm-record.lock")
    )

    def call(step: str, *, check: bool = False, owner: str = "ada", **request: Any) -> dict[str, Any]:
        shared = {
            name: request.pop(name) for name in ("take_over", "full_run", "withdraw") if name in request
        }
        arguments = {
            "step": step,
            "owner": owner,
            "version": "c1",
            "operator": "carol",
            "requests": [{"role": "web", "variables": "v1", **request}],
            **shared,
            "_ansible_check_mode": check,
            "_ansible_remote_tmp": str(tmp_path),
        }
        capsys.readouterr()
        with patch_module_args(arguments), pytest.raises(SystemExit):
            machine_record.main()
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def made(tmp_path: Path) -> dict[str, list[str]]:
    (tmp_path / "site" / "below").mkdir(parents=True)
    (tmp_path / "site" / "below" / "page").write_text("hello")
    (tmp_path / "web.conf").write_text("port 80")
    return {"paths": [str(tmp_path / name) for name in ("site", "web.conf", "never")]}


def set_up(run: Run, made: dict[str, list[str]], **other: Any) -> None:
    run("claim", **other)
    run("record", made=made, result={"url": "http://a"}, **other)


def test_a_role_that_ran_has_nothing_to_do(run: Run, made: dict[str, list[str]]) -> None:
    assert run("compare")["run"] == "present"
    set_up(run, made)
    again = run("compare")
    assert (again["run"], again["changed"], again["done"]) == ("", False, {"web": {"url": "http://a"}})
    assert run("probe")["done"] == {"web": {"url": "http://a"}}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda at: (at / "web.conf").write_text("port 81"), "web.conf"),
        (lambda at: (at / "web.conf").chmod(0o600), "web.conf"),
        (lambda at: (at / "web.conf").unlink(), "web.conf"),
        (lambda at: (at / "web.conf").unlink() or (at / "web.conf").symlink_to("/etc/passwd"), "web.conf"),
        (lambda at: (at / "site" / "below" / "page").write_text("hullo"), "site"),
        (lambda at: (at / "site" / "below" / "page").chmod(0o777), "site"),
        (lambda at: (at / "site" / "below" / "more").write_text(""), "site"),
        (lambda at: (at / "site" / "below" / "page").unlink(), "site"),
        (lambda at: (at / "never").mkdir(), "never"),
    ],
)
def test_whatever_somebody_changes_makes_the_role_run(
    run: Run, made: dict[str, list[str]], tmp_path: Path, change: Callable[[Path], None], named: str
) -> None:
    set_up(run, made)
    change(tmp_path)
    compared = run("compare")
    assert compared["run"] == "present"
    assert [f"paths {tmp_path / named}:" in one for one in compared["drift"]] == [True]
    assert run("probe")["done"] == {}


@pytest.mark.parametrize("target", ["web.conf", "site"])
def test_a_link_that_a_role_reads_counts_with_what_it_leads_to(
    run: Run, made: dict[str, list[str]], tmp_path: Path, target: str
) -> None:
    """As a site may keep the file elsewhere that several write, or the folder on a larger disk."""
    link = tmp_path / "link"
    link.symlink_to(target)
    set_up(run, {"reads": [str(link)]})
    assert run("compare")["run"] == ""
    (tmp_path / "web.conf").write_text("port 81")
    (tmp_path / "site" / "below" / "page").write_text("hullo")
    assert run("compare")["run"] == "present"
    set_up(run, {"reads": [str(link)]})
    link.unlink()
    link.symlink_to("nowhere")
    assert run("compare")["run"] == "present"
    set_up(run, {"reads": [str(link)]})
    assert run("compare")["run"] == ""


def test_what_python_compiles_is_no_change(run: Run, made: dict[str, list[str]], tmp_path: Path) -> None:
    set_up(run, made)
    (tmp_path / "site" / "__pycache__").mkdir()
    assert run("compare")["run"] == ""


def test_a_run_that_was_killed_is_repeated(run: Run, made: dict[str, list[str]]) -> None:
    set_up(run, made)
    run("claim", variables="v2")
    assert run("compare", variables="v2")["run"] == "present"
    assert run("compare", variables="v1")["run"] == "present"
    assert run("compare", state="absent")["run"] == "absent"


def test_a_check_writes_nothing(run: Run, made: dict[str, list[str]], folder: Path) -> None:
    for step in ("compare", "claim", "record", "forget"):
        run(step, check=True, **({"made": made} if step == "record" else {}))
    assert not folder.exists()


def test_the_last_record_takes_its_folders_along(run: Run, made: dict[str, list[str]], folder: Path) -> None:
    set_up(run, made)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "web.json").stat().st_mode & 0o777 == 0o600
    run("forget")
    assert not folder.parent.exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"form": 2, "owners": {}}',
        '{"form": 1, "owners": {"ada": {}}}',
        write({"ada": Entry(before={"HOME": 1})}),
        write({"ada": Entry(made={"paths": {"/etc/x": 1}})}),
        write({"ada": Entry(before=[])}),
        pytest.param("[" * 200_000, id="nested too deeply"),
    ],
)
def test_a_lost_record_costs_a_run_and_removes_nothing(
    run: Run, made: dict[str, list[str]], folder: Path, text: str
) -> None:
    set_up(run, made)
    (folder / "web.json").write_text(text)
    assert run("compare")["run"] == "present"
    refused = run("compare", state="absent", made=made)
    assert refused["failed"]
    assert "No record of this machine" in refused["msg"]
    set_up(run, made)
    assert run("compare")["run"] == ""


def test_a_removal_without_record_and_traces_has_nothing_to_do(run: Run, tmp_path: Path) -> None:
    assert run("compare", state="absent", made={"paths": [str(tmp_path / "never")]})["run"] == ""


def test_other_owners_are_refused_or_join(run: Run, made: dict[str, list[str]]) -> None:
    set_up(run, made)
    assert "by ada with other settings" in run("compare", owner="bob", variables="v2")["msg"]
    assert "by ada with other settings" in run("claim", owner="bob", variables="v2")["msg"]
    assert run("compare", owner="bob")["run"] == ""
    stays = run("compare", state="absent")
    assert (stays["run"], stays["note"]) == ("", "All that the role web made stays for bob.")
    assert run("compare", state="absent", owner="bob")["run"] == "absent"


def test_nobody_joins_what_is_being_removed(run: Run, made: dict[str, list[str]]) -> None:
    set_up(run, made)
    assert run("compare", state="absent")["run"] == "absent"
    assert run("compare", owner="bob")["run"] == "present"


def test_an_owner_of_nothing_removes_nothing(run: Run, made: dict[str, list[str]]) -> None:
    set_up(run, made)
    foreign = run("compare", state="absent", owner="bob", made=made)
    assert (foreign["run"], foreign["note"]) == (
        "",
        "The role web was applied to this machine by ada, so nothing is removed.",
    )


def test_an_owner_who_made_nothing_leaves_what_was_there_before_records(
    run: Run, made: dict[str, list[str]], folder: Path
) -> None:
    set_up(run, made)
    assert run("compare", state="absent", made=made, withdraw=True)["run"] == ""
    assert not folder.exists()


def test_a_file_that_the_role_makes_no_longer_goes(
    run: Run, made: dict[str, list[str]], tmp_path: Path
) -> None:
    set_up(run, made)
    new = {"paths": [str(tmp_path / "site")]}
    run("claim", variables="v2")
    recorded = run("record", variables="v2", made=new)
    assert (recorded["changed"], recorded["gone"]) == (True, [str(tmp_path / "web.conf")])
    assert not (tmp_path / "web.conf").exists()
    assert run("record", variables="v2", made=new)["changed"] is False


def test_what_is_only_verified_or_made_by_another_role_stays(
    run: Run, made: dict[str, list[str]], tmp_path: Path
) -> None:
    set_up(run, made)
    assert run("record", made={}, owns=False)["changed"] is False
    set_up(run, made)
    run("claim", role="other")
    run("record", role="other", made={"reads": [str(tmp_path / "web.conf")]})
    assert run("record", made={})["gone"] == []
    assert (tmp_path / "web.conf").exists()


def test_what_is_taken_over_goes_if_it_is_made_no_longer(
    run: Run, made: dict[str, list[str]], tmp_path: Path
) -> None:
    set_up(run, made)
    run("claim", owner="bob", variables="v2", take_over=True)
    assert run("record", owner="bob", variables="v2", made={})["gone"] == [str(tmp_path / "web.conf")]


def test_a_setting_of_the_machine_is_remembered_until_the_role_is_removed(
    run: Run, tmp_path: Path, made: dict[str, list[str]]
) -> None:
    new = {"paths": [str(tmp_path / "new")]}
    assert run("claim", made=new, before={"HOME": "/export"})["before"] == {"HOME": "/export"}
    (tmp_path / "new").write_text("")
    # killed here, and run again with what it has changed
    assert run("claim", made=new, before={"HOME": "/srv"})["before"] == {"HOME": "/export"}
    run("record", made=new)
    assert run("compare")["before"] == {"HOME": "/export"}
    assert run("claim", owner="bob", variables="v2", take_over=True)["before"] == {"HOME": "/export"}
    assert run("compare", owner="bob", state="absent")["before"] == {"HOME": "/export"}
    run("forget", owner="bob")
    assert run("compare")["before"] == {}


def test_a_role_that_was_switched_off_remembers_the_settings_anew(run: Run, tmp_path: Path) -> None:
    new = {"paths": [str(tmp_path / "new")]}
    run("claim", made=new, before={"HOME": "/export"})
    run("record", made=new)
    run("record", variables="v2", owns=False)
    assert run("compare", variables="v2")["before"] == {}
    assert run("claim", made=new, before={"HOME": "/elsewhere"})["before"] == {"HOME": "/elsewhere"}


def test_nothing_is_remembered_of_a_machine_that_the_role_has_changed_already(
    run: Run, made: dict[str, list[str]], folder: Path
) -> None:
    assert run("claim", made=made, before={"HOME": "/srv"})["before"] == {}
    run("record", made=made)
    (folder / "web.json").write_text("lost")
    assert run("claim", made=made, before={"HOME": "/srv"})["before"] == {}
    assert run("compare")["before"] == {}


def test_a_record_of_an_earlier_version_is_read_and_remembers_nothing(
    run: Run, made: dict[str, list[str]], folder: Path
) -> None:
    set_up(run, made)
    document = json.loads((folder / "web.json").read_text())
    del document["owners"]["ada"]["before"]
    (folder / "web.json").write_text(json.dumps(document))
    compared = run("compare")
    assert (compared["run"], compared["before"]) == ("", {})
    assert run("claim", before={"HOME": "/srv"})["before"] == {}


def test_a_check_tells_what_would_be_remembered(run: Run, made: dict[str, list[str]], folder: Path) -> None:
    claimed = run("claim", check=True, before={"HOME": "/export"})
    assert (claimed["changed"], claimed["before"]) == (False, {"HOME": "/export"})
    assert run("claim", check=True, made=made, before={"HOME": "/export"})["before"] == {}
    assert not folder.exists()


@pytest.mark.parametrize("before", [None, 1, True, ["/export"], {"": ""}])
def test_settings_that_are_no_texts_are_refused(run: Run, before: Any, folder: Path) -> None:
    assert "HOME was" in run("claim", before={"HOME": before})["msg"]
    assert not folder.exists()


def test_the_last_of_several_roles_knows_what_was_before_the_first(
    run: Run, made: dict[str, list[str]]
) -> None:
    beside = {"beside": {"munge": ["web", "mail"]}}
    assert run("claim", role="mail", before={"munge": "off"}, **beside)["before"] == {"munge": "off"}
    # killed here, and then the other role comes
    claimed = run("claim", before={"munge": "on", "own": "on"}, **beside)
    assert claimed["before"] == {"munge": "off", "own": "on"}
    run("record", made=made)
    run("forget", role="mail")
    assert run("compare", state="absent")["before"] == {"munge": "off", "own": "on"}


def test_a_setting_of_another_role_without_a_record_of_it_is_not_remembered(run: Run) -> None:
    run("claim", role="mail")
    claimed = run("claim", before={"munge": "on", "own": "on"}, beside={"munge": ["mail"]})
    assert claimed["before"] == {"own": "on"}


@pytest.mark.parametrize("roles", ["mail", 1, None, {"mail": ""}, ["../mail"], [1.5, "a b"]])
def test_roles_beside_are_names_in_a_list(run: Run, roles: Any, folder: Path) -> None:
    refused = run("claim", before={"munge": "on"}, beside={"munge": roles})
    assert refused["failed"]
    assert "give a list" in refused["msg"] or "is no name for a record" in refused["msg"]
    assert not folder.exists()


def test_a_role_that_depends_on_other_machines_always_runs_and_still_has_its_owner(
    run: Run, made: dict[str, list[str]]
) -> None:
    set_up(run, made, alone=False)
    assert run("compare", alone=False)["run"] == "present"
    assert run("probe")["done"] == {}, "the record knows it"
    assert "by ada with other settings" in run("compare", owner="bob", variables="v2", alone=False)["msg"]
    assert run("compare", owner="bob", alone=False)["run"] == "present"
    set_up(run, made, owner="bob", alone=False)
    assert run("compare", state="absent", alone=False)["run"] == ""
    assert run("compare", state="absent", owner="bob", alone=False)["run"] == "absent"


def switched_off(run: Run, owner: str) -> bool:
    """Switch the role off for an owner, as roles do; return whether that removes what the role made."""
    off = {"owner": owner, "owns": False, "variables": "off"}
    removes = run("compare", **off)["made"]
    run("record", **off)
    return bool(removes)


def test_a_role_that_an_owner_switches_off_stays_for_others_who_share_it(
    run: Run, made: dict[str, list[str]]
) -> None:
    for owner in ("ada", "bob"):
        set_up(run, made, owner=owner)
    assert not switched_off(run, "ada")
    assert switched_off(run, "bob"), "its last user"


def test_an_owner_who_has_switched_the_role_off_does_not_keep_that_of_another(
    run: Run, made: dict[str, list[str]]
) -> None:
    set_up(run, made)
    assert not switched_off(run, "bob")
    removal = run("compare", state="absent")
    assert (removal["run"], removal["note"]) == ("absent", "")
    run("forget")
    assert run("compare", state="absent")["run"] == ""


def test_an_owner_who_only_verifies_keeps_what_another_made(run: Run, made: dict[str, list[str]]) -> None:
    set_up(run, made)
    set_up(run, {"reads": made["paths"]}, owner="bob", owns=False, variables="v2")
    removal = run("compare", state="absent")
    assert (removal["run"], removal["note"]) == ("", "All that the role web made stays for bob.")


@pytest.mark.parametrize("name", ["", "../web", "a/b", "a\n", "x" * 201, "web web"])
def test_names_that_are_no_names_of_files_are_refused(run: Run, name: str, folder: Path) -> None:
    assert "is no name for a record" in run("claim", role=name)["msg"]
    assert not folder.exists()


def test_kinds_that_are_unknown_are_refused(run: Run) -> None:
    assert "colours is no kind of thing" in run("record", made={"colours": ["red"]})["msg"]


def test_states_of_units_packages_accounts_and_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        "systemctl": "Id=a.service\nLoadState=loaded\nUnitFileState=enabled\nActiveState=active\n"
        "NeedDaemonReload=no\n\nId=b.timer\nLoadState=not-found\nUnitFileState=\nActiveState=inactive\nNeedDaemonReload=no",
        "dpkg-query": "lib-a\tii 1.0\nlib-b\trc 2.0\nweb\tii 3.0",
    }
    monkeypatch.setattr(things, "_told", lambda command: told[command[0]])
    found = things.states(
        {
            "units": ["a.service", "b.timer"],
            "packages": ["web", "lib-*", "gone"],
            "users": ["root", "nobody-has-this-name"],
            "groups": ["root"],
            "mounts": ["/", "/no/mount"],
            "answers": ["true", "false", "/no/such/program"],
            "outputs": ["echo a b", "seq 2", "seq 3", "true", "/no/such/program"],
        }
    )
    assert found["units"] == {"a.service": "enabled, active", "b.timer": "not-found"}
    assert found["packages"] == {"web": "web ii 3.0", "lib-*": "lib-a ii 1.0, lib-b rc 2.0", "gone": "absent"}
    assert found["users"]["root"].startswith("0:0 /root ")
    assert found["users"]["nobody-has-this-name"] == "absent"
    assert found["groups"] == {"root": "0"}
    assert found["mounts"]["/"] != "absent"
    assert found["mounts"]["/no/mount"] == "absent"
    assert found["answers"] == {
        "true": "0",
        "false": "1",
        "/no/such/program": "cannot be run: No such file or directory",
    }
    assert (found["outputs"]["echo a b"], found["outputs"]["true"]) == ("0 a b", "0")
    assert re.fullmatch("0 [0-9a-f]{64}", found["outputs"]["seq 2"])
    assert found["outputs"]["seq 2"] != found["outputs"]["seq 3"]
    assert found["outputs"]["/no/such/program"] == found["answers"]["/no/such/program"]


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_a_record_or_lost(text: str) -> None:
    with contextlib.suppress(LostRecord):
        assert read(write(read(text))) == read(text)


@given(
    st.dictionaries(
        st.text(),
        st.builds(
            Entry,
            variables=st.text(),
            made=st.dictionaries(st.text(), st.dictionaries(st.text(), st.text())),
            result=st.dictionaries(st.text(), st.integers()),
            before=st.dictionaries(st.text(), st.text()),
        ),
    )
)
def test_a_record_is_read_as_it_was_written(entries: dict[str, Entry]) -> None:
    assert read(write(entries)) == entries
