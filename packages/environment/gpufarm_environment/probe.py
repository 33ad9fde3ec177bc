# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a cell in a kernel of the environment, as a new user would.

usage: python -I -m gpufarm_environment.probe [NAME ...]    (packages that the cell imports)
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from . import shared

START, RUN = 60, 300  # seconds, for a machine that is busy
CELL = "import {names}, os\nassert os.environ['GPUFARM_ENVIRONMENT'] == {name!r}"


async def problem_of(common: shared.Shared, imports: list[str]) -> str:
    """Return in a sentence why a kernel does not run the cell, empty if it does.

    Args:
        common: the environment.
        imports: packages.
    """
    specs = KernelSpecManager(kernel_dirs=[str(common.folder / "jupyter" / "kernels")])
    manager = AsyncKernelManager(kernel_name=common.name, kernel_spec_manager=specs)
    await manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=START)
        cell = CELL.format(names=", ".join(imports or ["sys"]), name=common.name)
        reply = await client.execute_interactive(cell, timeout=RUN, output_hook=lambda _message: None)
    except (RuntimeError, TimeoutError) as error:
        return f"the kernel does not answer ({error})"
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)
    found = reply["content"]
    return "" if found["status"] == "ok" else f"{found['ename']}: {found['evalue']}"


def main() -> int:
    """Run the cell in a home of its own.

    Returns:
        0 if it worked, else 1.
    """
    common = shared.read()
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(
            {"HOME": home, "JUPYTER_RUNTIME_DIR": f"{home}/runtime", "IPYTHONDIR": f"{home}/ipython"}
        )
        os.chdir(home)
        problem = asyncio.run(problem_of(common, sys.argv[1:]))
    if problem:
        print(f"The environment {common.title} does not work: {problem}.", file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    raise SystemExit(main())
