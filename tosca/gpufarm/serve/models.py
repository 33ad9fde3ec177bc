# SPDX-License-Identifier: GPL-3.0-or-later
"""Bodies of requests, with the names that INDIGO's PaaS Orchestrator has for their fields."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

# Letters of a template; those of the collection have some 20,000.
TEMPLATE = 524_288
_LARGEST = 1_000_000


def _number(value: Any) -> Any:
    """Numbers that a user typed into the dashboard come as texts."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        return int(value)
    return value


def _boolean(value: Any) -> Any:
    """Both clients send keepLastAttempt as a text."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


_TEXT = {"type": "string", "pattern": "^[1-9][0-9]{0,5}$"}
Count = Annotated[
    int,
    BeforeValidator(_number),
    Field(ge=1, le=_LARGEST, strict=True),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": _LARGEST}, _TEXT]}),
]
Flag = Annotated[
    bool,
    BeforeValidator(_boolean),
    Field(strict=True),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]}),
]


class Update(BaseModel):
    """The request for an update."""

    model_config = ConfigDict(extra="forbid")

    template: Annotated[str, Field(min_length=1, max_length=TEMPLATE)]
    parameters: dict[str, Any] | None = None
    callback: Annotated[str, Field(max_length=2048)] | None = None
    timeoutMins: Count | None = None
    providerTimeoutMins: Count | None = None
    maxProvidersRetry: Count | None = None
    keepLastAttempt: Flag | None = None


class Create(Update):
    """The request for a deployment."""

    userGroup: Annotated[str, Field(max_length=256)] | None = None


class Reset(BaseModel):
    """The request to give up a removal."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["DELETE_FAILED"]


class Action(BaseModel):
    """The request to start or stop a machine."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["start", "stop"]
