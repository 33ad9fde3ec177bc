"""One refusal of a role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.recording import Answer, Call


@dataclass(frozen=True)
class Refused:
    """Variables of a role, results of modules that differ from the default, and words of the refusal."""

    words: str
    variables: Mapping[str, Any]
    answers: Mapping[str, Answer] = field(default_factory=dict)


def _no_key(call: Call) -> Mapping[str, Any]:
    settings = f"{call.args['url_setting']} or {call.args['fingerprint_setting']}"
    return {"failed": True, "msg": f"The key at {call.args['url']} is refused; correct {settings}."}


# A package source is signed with a key that is missing or unknown.
NO_KEY: dict[str, Answer] = {"gpufarm.cluster.openpgp_key_info": _no_key}
