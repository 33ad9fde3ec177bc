# SPDX-License-Identifier: GPL-3.0-or-later
"""Run by puccini's Python: what it has against a TOSCA template, as JSON.

usage: puccini_compile.py TEMPLATE INPUTS
"""

from __future__ import annotations

import json
import sys

import puccini.tosca

# It wants an entry schema for every map and list. TOSCA does not (1.3, section 3.6.9), and there is none for
# those with entries of several kinds, such as the definition of an app.
TOLERATED = ("missing entry schema for map definition", "missing entry schema for list definition")

problems: list[str] = []
try:
    puccini.tosca.compile(sys.argv[1], json.loads(sys.argv[2]))
except puccini.tosca.Problems as found:
    problems = [str(problem["message"]) for problem in found.problems if problem["message"] not in TOLERATED]
json.dump(problems, sys.stdout)
