# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees of module files that result from the settings of the role environment_modules. No I/O."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from . import declared, lua

FOLDER = re.compile(r"(/[A-Za-z0-9._-]+)+")
# Toolkits and environments have a tree of their own, as other machines that share the site's may lack them.
FOUND = "/opt/gpufarm/modules/found"
TOOLKIT = re.compile(r"cuda-(\d+(?:\.\d+)*)")
_EMPTY: Mapping[str, Any] = {
    "description": "",
    "prefix": "",
    "paths": {},
    "environment": {},
    "requires": [],
    "conflicts": [],
    "family": "",
    "default": False,
}


def plan(
    settings: Mapping[str, Any],
    machine: Mapping[str, Any] | None = None,
    others: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the trees of modules that settings result in.

    Args:
        settings: the variables of the role without its name.
        machine: result of the module ``environment_modules_info``, and ``name``, that of the machine; without
            it, only settings are checked.
        others: ``told`` of the other machines of the play by their names; empty of those without the role.

    Returns:
        ``problems``, one sentence each. If there are none, ``files``, the texts of the site's tree by paths
        below it, and without the machine ``prefixes``, the installations to look for, and ``told``, what
        machines that share the tree compare; with it ``found``, the files of the machine's own tree,
        ``names``, all modules with their versions, and ``shells``, the settings of the program that finds
        trees at logins, and tells what the machine has.
    """
    modules = [
        {**_EMPTY, **{key: one for key, one in entry.items() if one is not None}}
        for entry in settings["modules"]
    ]
    problems = [*_setting_problems(settings), *declared.problems(modules)]
    files = {} if problems else _files(modules)
    if machine is not None and not problems:
        problems = [*_machine_problems(settings, modules, files, machine, others or {})]
    if problems:
        return {"problems": problems}
    prefixes = sorted({one["prefix"] for one in modules if one["prefix"]})
    if machine is None:
        return {"problems": [], "files": files, "told": _told(settings, files), "prefixes": prefixes}
    own = [one for one in _found(machine) if lua.full_name(one) not in map(lua.full_name, modules)]
    trees = [settings["folder"], FOUND, *settings["trees"]]
    asked = {"prefixes": prefixes, "toolkits": settings["cuda"]}
    return {
        "problems": [],
        "files": files,
        "found": _files(own),
        "names": [lua.full_name(one) for one in [*modules, *own]],
        "shells": json.dumps({"trees": trees, **asked}, indent=2) + "\n",
    }


def _files(modules: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the files of modules by their paths below the tree, sorted, as machines compare them."""
    files = {f"{lua.full_name(one)}.lua": lua.module_file(one) for one in modules}
    files.update({f"{one['name']}/.modulerc.lua": lua.default_file(one) for one in modules if one["default"]})
    return dict(sorted(files.items()))


def _told(settings: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, str]:
    return {
        "folder": settings["folder"],
        "digest": hashlib.sha256(json.dumps(files).encode()).hexdigest(),
    }


def _setting_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    folder, trees = settings["folder"], settings["trees"]
    if not FOLDER.fullmatch(folder) or len(folder.split("/")) < 3 or {".", ".."} & {*folder.split("/")}:
        yield (
            f"environment_modules_folder is {folder:.80}, which cannot be used; give an absolute path of at"
            " least two folders, of letters, digits, dots, hyphens and underscores."
        )
    for tree in trees:
        if not tree.startswith("/") or ":" in tree or declared.CONTROL.search(tree):
            yield (
                f"environment_modules_trees has {tree!r:.80}, which is no tree; give an absolute path without"
                " colons and control characters."
            )
    for tree in sorted({tree for tree in trees if trees.count(tree) > 1 or tree in (folder, FOUND)}):
        yield f"environment_modules_trees has {tree:.80}, which is searched anyway; name it once."
    for pattern in settings["cuda"]:
        if not pattern.startswith("/"):
            yield f"environment_modules_cuda has {pattern!r:.80}; give a path such as /usr/local/cuda-*."


def _machine_problems(
    settings: Mapping[str, Any],
    modules: Sequence[Mapping[str, Any]],
    files: Mapping[str, str],
    machine: Mapping[str, Any],
    others: Mapping[str, Mapping[str, Any]],
) -> Iterator[str]:
    name, folder, tree = machine["name"], settings["folder"], machine["tree"]
    if machine["rival"]:
        yield (
            f"{name} has Environment Modules, which its packages do not allow beside Lmod; remove the package"
            " environment-modules first."
        )
    for path in machine["silent"]:
        yield f"{path} does not answer on {name}; see to its file system, and run again."
    missing = set(machine["missing"])
    for one in modules:
        if one["prefix"] in missing:
            yield (
                f"The module {lua.full_name(one)} has the prefix {one['prefix']}, which {name} does not have;"
                " install it there first, or correct the prefix."
            )
    if not tree:
        return
    if tree["unsafe"]:
        yield (
            f"{tree['unsafe']} does not belong to root alone, so users could change modules in {folder} on"
            f" {name}; choose another environment_modules_folder."
        )
    if tree["foreign"]:
        yield (
            f"{folder} on {name} holds files that this role has not made; choose an empty"
            " environment_modules_folder, and add this one to environment_modules_trees."
        )
    for path in sorted(files.keys() & {*tree["taken"]}):
        yield (
            f"{folder}/{path} on {name} is not of this role; remove it, or take the module out of"
            " environment_modules_modules."
        )
    told = _told(settings, files)
    for other, others_told in sorted(others.items()):
        shared = tree["shared"] or others_told.get("shared")
        if shared and others_told["folder"] == folder and others_told["digest"] != told["digest"]:
            yield (
                f"{name} and {other} share {folder} and declare other modules for it; give both the same"
                " environment_modules_modules, or another environment_modules_folder."
            )


def _found(machine: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the toolkits and environments of a machine as modules."""
    versions: dict[str, str] = {}
    for path in machine["toolkits"]:
        match = TOOLKIT.fullmatch(PurePosixPath(path).name)
        if match:
            versions.setdefault(match[1], path)
    for version, path in versions.items():
        yield {
            **_EMPTY,
            "name": "cuda",
            "version": version,
            "description": f"CUDA Toolkit {version}",
            "prefix": path,
            "environment": {"CUDA_HOME": path},
        }
    for one in machine["environments"]:
        yield {
            **_EMPTY,
            "name": f"ml/{one['name']}",
            "version": one["version"],
            "description": declared.TERMINAL.sub(" ", one["title"]),
            "prefix": one["folder"],
            "paths": {"PATH": ["bin"]},
            "environment": {"VIRTUAL_ENV": one["folder"]},
            "family": "ml",
        }
