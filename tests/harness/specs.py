"""Declarations of roles: the argument specs and the defaults of their variables."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROLES = Path(__file__).resolve().parents[2] / "roles"


def roles() -> list[str]:
    """Return the names of the roles that are used by themselves."""
    return sorted(path.name for path in ROLES.iterdir() if path.is_dir() and not path.name.startswith("_"))


@cache
def options(role: str) -> dict[str, Any]:
    """Return the argument spec of a role's variables."""
    specs = yaml.safe_load((ROLES / role / "meta" / "argument_specs.yml").read_text())
    found: dict[str, Any] = specs["argument_specs"]["main"]["options"]
    return found


@cache
def defaults(role: str) -> dict[str, Any]:
    """Return the values that a role's variables have where nobody sets them."""
    found: dict[str, Any] = yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text())
    return found
