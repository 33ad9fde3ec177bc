# SPDX-License-Identifier: GPL-3.0-or-later
"""The shared environments of this notebook server, and the program that looks after the user's packages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT = 900  # seconds for the packages of one file
KERNEL = ["-I", "-m", "gpufarm_environment.kernel"]
OF_IMAGE = "{resource_dir}/../../start.py"  # starts the kernel of an image


@dataclass(frozen=True)
class Shared:
    """A shared environment: the name of its kernel, its name for people, and its ``gpufarm-environment``."""

    name: str
    title: str
    program: tuple[str, ...]


def environments(path: str) -> Iterator[Shared]:
    """Return the shared environments of this notebook server, in its order.

    Args:
        path: value of ``JUPYTER_PATH``, which the hub sets.
    """
    for folder in filter(None, path.split(":")):
        for file in sorted(Path(folder).glob("kernels/*/kernel.json")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                told: Any = json.loads(file.read_text(encoding="utf-8"))
                name, title, argv = file.parent.name, told["display_name"], told["argv"]
                if argv[1:4] == KERNEL:
                    yield Shared(name, title, (argv[0], "-I", "-m", "gpufarm_environment.command"))
                elif argv[2:3] == [OF_IMAGE]:
                    start = argv[2].replace("{resource_dir}", str(file.parent))
                    yield Shared(name, title, (sys.executable, "-I", start, "command"))


def offered() -> list[Shared]:
    """Return the shared environments of this notebook server."""
    return list(environments(os.environ.get("JUPYTER_PATH", "")))


async def run(shared: Shared, *words: str) -> tuple[bool, str]:
    """Run ``gpufarm-environment`` of an environment; return whether it worked, and what it said."""
    process = await asyncio.create_subprocess_exec(
        *(*shared.program, *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _nothing = await asyncio.wait_for(process.communicate(), TIMEOUT)
    except TimeoutError:
        # With pip, which it has started: none may go on while the next request changes the same packages.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        return (
            False,
            f"It took longer than {TIMEOUT // 60} minutes and was ended; import fewer packages at once.",
        )
    return process.returncode == 0, said.decode("utf-8", errors="replace")
