"""The GPU models of the simulator as the NVML binding tells them, and the flavors that a form offers."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pynvml

from lab.mig_oracle import Oracle, Request
from lab.nvmlsim import build
from lab.nvmlsim.install import GUEST
from lab.stage import ROOT

# `make setup` links the checkout there under its name in Ansible.
sys.path.insert(0, str(ROOT / ".work" / "collections"))

from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session

MODELS = ROOT / "lab" / "nvmlsim" / "src" / "models.c"
KEYS = tuple(re.findall(r'\.key = "([^"]+)"', MODELS.read_text()))


def read() -> tuple[Any, ...]:
    """Read one GPU of each model through NVML, as the roles do."""
    with machine(), session.session() as nvml:
        return nvml.gpus()


@contextmanager
def machine() -> Iterator[None]:
    """Let NVML find one GPU of each model."""
    library = build(ROOT / ".work" / "nvmlsim")
    with tempfile.TemporaryDirectory() as state:
        environment = {"NVMLSIM_STATE": state, "NVMLSIM_LIBRARY": str(library), "NVMLSIM_UID": "0"}
        with (
            mock.patch.dict(os.environ, environment),
            mock.patch.object(pynvml, "nvmlLib", ctypes.CDLL(str(library))),
            mock.patch.object(pynvml, "_nvmlGetFunctionPointer_cache", {}),
        ):
            subprocess.run([sys.executable, str(Path(GUEST, "simgpu.py")), "init", *KEYS], check=True)
            yield


def flavors(profiles: tuple[Any, ...]) -> list[str]:
    """The flavors that a form offers for a GPU, found by brute force and not by the planner.

    Of each profile as many as fit, and every mix that leaves no compute slice unused. Of profiles of the same
    width a mix takes the one with the least memory; profiles with special engines are left out.

    Args:
        profiles: of the GPU, as the collection's NVML adapter tells them.

    Returns:
        In the words of INFN Cloud's form, such as "7x 1g.10gb MIG GPUs", small slices first.
    """
    plain = tuple(one for one in profiles if re.fullmatch(r"\dg\.\d+gb", one.name))
    if not plain:
        return []
    oracle = Oracle.of_profiles(plain)
    by_id = {one.id: one for one in plain}
    sizes = {one.id: one.placements[0].size for one in plain}
    least = {
        min((sizes[one.id], one.id) for one in plain if one.slices == width)[1] for width in _widths(plain)
    }
    whole = max(one.slices for one in plain)
    chosen: set[Request] = set()
    for one in plain:
        count = max(
            request[0][1] for request in oracle.by_request if len(request) == 1 and request[0][0] == one.id
        )
        chosen.add(((one.id, count),))
    for request in oracle.by_request:
        used = sum(by_id[profile].slices * count for profile, count in request)
        if len(request) > 1 and used == whole and {profile for profile, _count in request} <= least:
            chosen.add(request)
    order = sorted(
        chosen,
        key=lambda request: (len(request) > 1, [-count for _id, count in _large_first(request, sizes)]),
    )
    return [
        ", ".join(f"{count}x {by_id[profile].name}" for profile, count in _large_first(request, sizes))
        + " MIG GPUs"
        for request in order
    ]


def _widths(profiles: tuple[Any, ...]) -> set[int]:
    return {one.slices for one in profiles}


def _large_first(request: Request, sizes: dict[int, int]) -> list[tuple[int, int]]:
    return sorted(request, key=lambda pair: (-sizes[pair[0]], pair[0]))
