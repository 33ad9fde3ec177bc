"""References in each file of the repository, by its kind."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import posixpath
import re

import yaml

from proof import python_references, yaml_references
from proof.names import Names, Reference

COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
# Files in which paths and names of plugins are looked for; files of other kinds name none.
TEXT = (".j2", ".sh", "")


def references(path: str, names: Names) -> frozenset[Reference]:
    """Find what a file names; nothing for a file of a kind that names none.

    Args:
        path: path of the file.
        names: what names mean.
    """
    if "/" not in path:
        return frozenset()  # settings of tools; they say of all what to do with it
    text = names.tree.texts[path]
    ending = posixpath.splitext(path)[1]
    try:
        if ending == ".py" or text.startswith("#!/usr/bin/env python3"):
            return frozenset(python_references.references(path, text, names))
        if ending in (".yml", ".yaml"):
            return frozenset(yaml_references.references(path, text, names))
    except (SyntaxError, ValueError, yaml.YAMLError):
        ending = ""  # linters check what is wrong with it; its text still names files
    return frozenset(names.text(COMMENT.sub("", text), path)) if ending in TEXT else frozenset()
