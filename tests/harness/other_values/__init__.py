"""For each variable of a role another valid value, and what it needs to have an effect.

Each module of this package has the roles of one subject, in the same mappings by the name of a variable.
"""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from harness.cases import CASES
from harness.certificates import CERTIFICATE, SAME_KEY
from harness.other_values import containers, frameworks, hosts, hub, paas, slurm, storage
from harness.recording import Answer
from harness.specs import defaults, options

_SUBJECTS = (containers, frameworks, hosts, hub, paas, slurm, storage)
# Texts, lists and dicts; numbers get one more, switches and choices something else than they are.
VALUES: ChainMap[str, Any] = ChainMap(*(one.VALUES for one in _SUBJECTS))
# Settings that a variable depends on: set both before it is changed and after.
NEEDS: ChainMap[str, dict[str, Any]] = ChainMap(*(one.NEEDS for one in _SUBJECTS))
# Settings that another value requires.
WITH: ChainMap[str, dict[str, Any]] = ChainMap(*(one.WITH for one in _SUBJECTS))
# Results of modules for which a variable has an effect, both before it is changed and after.
FOUND: ChainMap[str, dict[str, Answer]] = ChainMap(*(one.FOUND for one in _SUBJECTS))
# The variables whose other value the role refuses, which is their effect, and what it then says.
REFUSED: ChainMap[str, str] = ChainMap(*(one.REFUSED for one in _SUBJECTS))


def other(role: str, name: str) -> Any:
    """Return a valid value of a variable that is not the one of the role's case."""
    if name in VALUES:
        return VALUES[name]
    option = options(role)[name]
    now: Any = {**defaults(role), **CASES[role].variables}.get(name)
    if option["type"] == "bool":
        return not now
    if option["type"] in ("int", "float"):
        return now + 1
    if "choices" in option:
        return next(choice for choice in option["choices"] if choice != now)
    for ending, value in _BY_ENDING.items():
        if name.endswith(ending):
            return value
    # Each has another text, so that it is known wherever it gets.
    word = f"other-{name.removeprefix(role).strip('_').replace('_', '-')}"
    if option["type"] == "list":
        return [word]
    if name.endswith("_url"):
        return f"https://{word}.example.org/"
    return f"/srv/{word}" if str(now).startswith("/") or name.endswith(_PATHS) else word


_PATHS = ("_directory", "_tls_certificate", "_tls_key", "_tls_ca", "_libmesos", "_java_home")
_BY_ENDING = {
    "_certificate_key_file": SAME_KEY,
    "_file": CERTIFICATE,
    "_address": "10.0.0.77",
    "_ip": "10.0.0.77",
    "_checksum": f"sha256:{'1' * 64}",
    "_fingerprint": "1" * 40,
}
