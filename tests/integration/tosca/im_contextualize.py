# SPDX-License-Identifier: GPL-3.0-or-later
"""Run by Infrastructure Manager's Python: what it makes of a TOSCA template, as JSON. Nothing is started.

usage: im_contextualize.py TEMPLATE
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

logging.disable(logging.CRITICAL)

from IM.tosca.Tosca import Tosca  # noqa: E402

template = Tosca(Path(sys.argv[1]).read_text(encoding="utf-8"))
_infrastructure, radl = template.to_radl()
items = (
    sorted(radl.contextualize.items.values(), key=lambda item: item.num) if radl.contextualize.items else []
)
json.dump(
    {
        "systems": {system.name: str(system) for system in radl.systems},
        "steps": [[item.system, item.configure, item.num] for item in items],
        "recipes": {configure.name: configure.recipes for configure in radl.configures},
        "outputs": {name: str(value) for name, value in template.get_outputs(None).items()},
    },
    sys.stdout,
)
