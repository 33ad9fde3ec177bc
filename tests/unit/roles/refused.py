"""One refusal of a role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.recording import Answer


@dataclass(frozen=True)
class Refused:
    """What a role is given, what modules answer it beside what they always do, and words of its refusal."""

    words: str
    variables: Mapping[str, Any]
    answers: Mapping[str, Answer] = field(default_factory=dict)
