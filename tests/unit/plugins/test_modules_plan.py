"""Trees of modules: what is refused, what a machine has found, and what machines with one tree compare."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._lmod import declared, lua
from ansible_collections.gpufarm.cluster.plugins.module_utils._lmod.plan import plan
from hypothesis import given
from hypothesis import strategies as st

MACHINE = {
    "name": "m1",
    "silent": [],
    "missing": [],
    "rival": False,
    "tree": {"unsafe": "", "foreign": False, "shared": False, "taken": []},
    "toolkits": [],
    "environments": [],
}


def wanted(*modules: dict[str, Any], **options: Any) -> dict[str, Any]:
    entries = [{"name": "gcc", "version": "13.2", **one} for one in modules]
    return {
        "modules": entries,
        "folder": "/srv/modules",
        "trees": [],
        "cuda": [],
        "shells": ["bash"],
        **options,
    }


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ([{}, {}], "The module gcc/13.2 is declared 2 times; declare it once."),
        (
            [{"name": "a", "version": "b"}, {"name": "a/b", "version": "1"}],
            "a/b is a version of a module and a module of its own",
        ),
        (
            [{"default": True}, {"version": "14", "default": True}],
            "gcc has 2 versions that are the default; keep one",
        ),
        ([{"name": "../etc"}], "A module is called '../etc', which Lmod cannot take"),
        ([{"name": "-gcc"}], "A module is called '-gcc'"),
        ([{"name": ".gcc"}], "A module is called '.gcc'"),
        ([{"name": "a//b"}], "A module is called 'a//b'"),
        ([{"name": "gcc\n"}], r"A module is called 'gcc\n'"),
        ([{"name": "a" * 101}], "A module is called 'aaa"),
        ([{"name": ""}], "A module is called ''"),
        ([{"name": "gcc.lua"}], "A module is called 'gcc.lua'"),
        ([{"version": "13/2"}], "has the version '13/2', which Lmod cannot take"),
        ([{"version": "default"}], "has the version 'default'"),
        ([{"version": "1.lua"}], "has the version '1.lua'"),
        ([{"version": ""}], "has the version ''"),
        ([{"prefix": "opt/gcc"}], "gcc/13.2 has the prefix 'opt/gcc'; give an absolute path"),
        ([{"prefix": "/opt:/usr"}], "has the prefix '/opt:/usr'"),
        ([{"prefix": "/opt\n"}], r"has the prefix '/opt\n'"),
        ([{"paths": {"PATH": ["bin"]}}], "has paths for PATH below a prefix, and has no prefix"),
        ([{"paths": {"PATH": "/bin"}}], "has paths for PATH that are none"),
        ([{"paths": {"PATH": [""]}}], "has paths for PATH that are none"),
        ([{"paths": {"PATH": ["/bin\ntouch /x"]}}], "has paths for PATH that are none"),
        ([{"paths": {"MODULEPATH": ["/m"]}}], "has paths for 'MODULEPATH'"),
        ([{"paths": {"A B": ["/m"]}}], "has paths for 'A B', which is no variable"),
        ([{"environment": {"PATH": "/bin"}}], "sets the variable 'PATH', which it cannot"),
        ([{"environment": {"A=B": "x"}}], "sets the variable 'A=B'"),
        ([{"environment": {"A": "x\ntouch /x"}}], "sets A to a value that shells cannot take"),
        ([{"environment": {"A": 1}}], "sets A to a value that shells cannot take"),
        (
            [{"environment": {"A": "1"}, "paths": {"A": ["/x"]}}],
            "names A in its environment and in its paths",
        ),
        ([{"requires": ["a b"]}], "gcc/13.2 requires 'a b', which cannot be a module"),
        ([{"conflicts": ["-x"]}], "gcc/13.2 conflicts '-x', which cannot be a module"),
        ([{"description": "\x1b]0;title\x07"}], "gcc/13.2 has control characters in its description"),
        ([{"description": "\x9b2J"}], "gcc/13.2 has control characters in its description"),
        ([{"family": "my-family"}], "has the family 'my-family'"),
    ],
)
def test_modules_that_lmod_or_shells_cannot_take_are_refused(
    modules: list[dict[str, Any]], words: str
) -> None:
    problems = plan(wanted(*modules))["problems"]
    assert len(problems) == 1 and words in problems[0], problems


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"folder": "/srv"}, "environment_modules_folder is /srv, which cannot be used"),
        ({"folder": "/srv/../etc"}, "environment_modules_folder is /srv/../etc"),
        ({"folder": "/srv/a:b"}, "environment_modules_folder is /srv/a:b"),
        ({"trees": ["cvmfs"]}, "environment_modules_trees has 'cvmfs', which is no tree"),
        ({"trees": ["/a:/b"]}, "environment_modules_trees has '/a:/b'"),
        ({"trees": ["/a", "/a"]}, "environment_modules_trees has /a, which is searched anyway"),
        ({"trees": ["/srv/modules"]}, "environment_modules_trees has /srv/modules, which is searched anyway"),
        ({"cuda": ["usr/*"]}, "environment_modules_cuda has 'usr/*'"),
    ],
)
def test_folders_that_cannot_be_used_are_refused(options: dict[str, Any], words: str) -> None:
    problems = plan(wanted(**options))["problems"]
    assert len(problems) == 1 and words in problems[0], problems


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ({"rival": True}, "m1 has Environment Modules"),
        ({"silent": ["/net/gcc"]}, "/net/gcc does not answer on m1"),
        ({"missing": ["/opt/gcc"]}, "The module gcc/13.2 has the prefix /opt/gcc, which m1 does not have"),
        ({"tree": {**MACHINE["tree"], "unsafe": "/srv"}}, "/srv does not belong to root alone"),
        (
            {"tree": {**MACHINE["tree"], "foreign": True}},
            "/srv/modules on m1 holds files that this role has not made",
        ),
        (
            {"tree": {**MACHINE["tree"], "taken": ["gcc/13.2.lua"]}},
            "/srv/modules/gcc/13.2.lua on m1 is not of this role",
        ),
    ],
)
def test_what_does_not_fit_a_machine_is_refused(machine: dict[str, Any], words: str) -> None:
    problems = plan(wanted({"prefix": "/opt/gcc"}), {**MACHINE, **machine})["problems"]
    assert len(problems) == 1 and words in problems[0], problems


def test_a_folder_that_does_not_answer_is_refused_alone() -> None:
    problems = plan(wanted({}), {**MACHINE, "tree": {}, "silent": ["/srv/modules"]})["problems"]
    assert problems == ["/srv/modules does not answer on m1; see to its file system, and run again."]


NAMES = st.from_regex(declared.NAME, fullmatch=True).filter(lambda name: len(name) < 60)


@given(st.lists(st.tuples(NAMES, st.sampled_from(["1", "2.0", "3-rc1"])), max_size=6), st.data())
def test_a_tree_has_a_file_for_each_module_below_its_folder(
    pairs: list[tuple[str, str]], data: st.DataObject
) -> None:
    made = plan(wanted(*({"name": name, "version": version} for name, version in pairs)))
    if made["problems"]:
        return
    assert set(made["files"]) == {f"{name}/{version}.lua" for name, version in pairs}
    assert all(text.startswith(lua.HEADER + "\n") for text in made["files"].values())
    # The order in which a site names its modules makes no other tree.
    other = data.draw(st.permutations(pairs))
    again = plan(wanted(*({"name": name, "version": version} for name, version in other)))
    assert again["told"] == made["told"]


def told(*modules: dict[str, Any], shared: bool, folder: str = "/srv/modules") -> dict[str, Any]:
    return {**plan(wanted(*modules, folder=folder))["told"], "shared": shared}


@pytest.mark.parametrize(
    ("here", "there", "refused"),
    [
        (False, told({"version": "14"}, shared=False), False),
        (True, told({"version": "14"}, shared=False), True),
        (False, told({"version": "14"}, shared=True), True),
        (True, told({}, shared=True), False),
        (True, told({"version": "14"}, shared=True, folder="/srv/other"), False),
    ],
)
def test_machines_with_one_tree_have_to_declare_the_same(
    here: bool, there: dict[str, Any], refused: bool
) -> None:
    machine = {**MACHINE, "tree": {**MACHINE["tree"], "shared": here}}
    problems = plan(wanted({}), machine, {"m2": there})["problems"]
    assert (problems != []) == refused
    assert not problems or "m1 and m2 share /srv/modules and declare other modules for it" in problems[0]


def test_toolkits_and_environments_are_in_a_tree_of_the_machine() -> None:
    folder = "/opt/gpufarm/environments/pytorch/0123"
    machine = {
        **MACHINE,
        "toolkits": ["/usr/local/cuda-12.4", "/usr/local/cuda-13", "/usr/local/cuda-next"],
        "environments": [{"name": "pytorch", "title": "Py\x1bTorch", "version": "0123", "folder": folder}],
    }
    # A toolkit that the site declares is the site's.
    made = plan(wanted({}, {"name": "cuda", "version": "13"}), machine)
    assert made["names"] == ["gcc/13.2", "cuda/13", "cuda/12.4", "ml/pytorch/0123"]
    assert list(made["found"]) == ["cuda/12.4.lua", "ml/pytorch/0123.lua"]
    assert list(made["files"]) == ["cuda/13.lua", "gcc/13.2.lua"]
    assert 'help("Py Torch")' in made["found"]["ml/pytorch/0123.lua"]
    assert f'setenv("VIRTUAL_ENV", "{folder}")' in made["found"]["ml/pytorch/0123.lua"]
    assert 'setenv("CUDA_HOME", "/usr/local/cuda-12.4")' in made["found"]["cuda/12.4.lua"]


def test_trees_are_searched_in_the_order_of_the_settings() -> None:
    made = plan(wanted(trees=["/cvmfs/b", "/cvmfs/a"]), MACHINE)
    assert json.loads(made["shells"])["trees"] == [
        "/srv/modules",
        "/opt/gpufarm/modules/found",
        "/cvmfs/b",
        "/cvmfs/a",
    ]
