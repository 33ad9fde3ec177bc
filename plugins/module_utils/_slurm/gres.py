# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs and slices of a machine as Slurm's generic resources. No I/O."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class Ambiguous(ValueError):
    """Slurm would take one GPU for another; the text is one sentence for a user."""


def system_name(model: str, profile: str = "") -> str:
    """Return the name by which Slurm detects a GPU or a slice.

    It is the model of NVML in lower case, with underscores; of a slice the model as far as its first hyphen,
    and the profile (src/plugins/gpu/nvml/gpu_nvml.c of Slurm 24.11.5, _get_system_gpu_list_nvml).
    """
    name = model.lower().replace(" ", "_")
    return f"{name.split('-', 1)[0]}_{profile}" if profile else name


def model_type(model: str) -> str:
    """Return the type of a whole GPU: the first word of its model that has a digit, such as `a100`.

    A type may be any part of the name that Slurm detects. This one is shorter than the name of any profile,
    and longer types are matched first, so that no slice is taken for a whole GPU.
    """
    words = re.split(r"[^a-z0-9]+", model.lower())
    return next((word for word in words if re.search(r"\d", word)), words[-1])


def matched(detected: Sequence[str], configured: Sequence[str]) -> list[str]:
    """Return the type that each detected GPU gets; empty if none is left for it.

    Slurm takes detected names and configured types in turn, longest first, and gives each name the first type
    that is a part of it and is not given yet (src/plugins/gres/gpu/gres_gpu.c, _normalize_sys_gres_types).
    """
    left = sorted(configured, key=lambda one: (-len(one), one))
    given = [""] * len(detected)
    for number in sorted(range(len(detected)), key=lambda one: (-len(detected[one]), detected[one])):
        given[number] = next((one for one in left if one.lower() in detected[number]), "")
        if given[number]:
            left.remove(given[number])
    return given


def offered(devices: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many GPUs and slices of each type a machine offers.

    Args:
        devices: the GPUs, each with `model`, `mig` and `slices`, the names of the profiles of its slices. A
            GPU in MIG mode without slices offers nothing.

    Raises:
        Ambiguous: if Slurm would give a type to another GPU than is meant.
    """
    expected: list[tuple[str, str]] = []
    for one in devices:
        if one["mig"] and one["slices"]:
            expected += [(system_name(one["model"], profile), profile) for profile in one["slices"]]
        else:
            expected.append((system_name(one["model"]), "" if one["mig"] else model_type(one["model"])))
    types = [kind for _name, kind in expected if kind]
    names = [name for name, _kind in expected]
    for (name, wanted), given in zip(expected, matched(names, types)):
        # Of GPUs with one name, it is not known which of them Slurm takes first.
        if given != wanted or any(kind != wanted for other, kind in expected if other == name):
            raise Ambiguous(
                f"Slurm cannot tell the GPUs of this machine apart, as it detects one as {name}, to which the"
                " type of another GPU fits as well; give all GPUs of a model slices, or none."
            )
    return dict(sorted(Counter(types).items()))


def line(types: Mapping[str, int]) -> str:
    """Return the value of `Gres` of a node (slurm.conf(5)); empty without GPUs."""
    return ",".join(f"gpu:{kind}:{count}" for kind, count in sorted(types.items()))
