"""One refusal of a role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.recording import Answer


@dataclass(frozen=True)
class Refused:
    """Variables of a role, results of modules that differ from the default, and words of the refusal."""

    words: str
    variables: Mapping[str, Any]
    answers: Mapping[str, Answer] = field(default_factory=dict)
