# SPDX-License-Identifier: GPL-3.0-or-later
"""Python environments that notebooks have as kernels (role notebook_environments)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INDEX = Path("/etc/gpufarm/environments.json")
# Of the package gpufarm-notices, which every notebook server has beside it.
KERNELS = "gpufarm_notices.kernels.SharedKernels"


class EnvironmentsError(Exception):
    """It cannot be found out which environments there are."""


@dataclass(frozen=True)
class Environment:
    """An environment.

    Attributes:
        name: of its kernel.
        title: for people.
        groups: those that it is offered to; empty for all.
        path: folder in which Jupyter finds its kernel (``JUPYTER_PATH``).
        cuda: version of CUDA that it brings along; empty without.
    """

    name: str
    title: str
    groups: tuple[str, ...]
    path: str
    cuda: str = ""

    @property
    def label(self) -> str:
        """The title with the version of CUDA."""
        return f"{self.title} (CUDA {self.cuda})" if self.cuda else self.title


def read(index: Path = INDEX) -> list[Environment]:
    """Return the environments of this machine, that of the first choice first.

    Raises:
        EnvironmentsError: the file that names them is damaged.
    """
    try:
        told: Any = json.loads(index.read_text(encoding="utf-8"))
        return [
            Environment(one["name"], one["title"], tuple(one["groups"]), one["path"], one.get("cuda", ""))
            for one in told["environments"]
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EnvironmentsError(f"{index} cannot be used: {error!r}") from error


def seen_by(environments: Iterable[Environment], groups: Sequence[str]) -> list[Environment]:
    """Return the environments that are offered to members of these groups."""
    return [one for one in environments if not one.groups or {*one.groups} & {*groups}]


def variables(environments: Sequence[Environment]) -> dict[str, str]:
    """Return the variables with which a notebook server finds the kernels."""
    return {"JUPYTER_PATH": ":".join(one.path for one in environments)} if environments else {}


def arguments(chosen: Environment | None) -> list[str]:
    """Return the arguments with which a notebook server has the kernels of environments, and one at first."""
    if chosen is None:
        return []
    return [
        f"--ServerApp.kernel_spec_manager_class={KERNELS}",
        f"--MultiKernelManager.default_kernel_name={chosen.name}",
    ]
