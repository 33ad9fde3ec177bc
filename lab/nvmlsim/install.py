# SPDX-License-Identifier: GPL-3.0-or-later
"""Put the simulated GPU into the root of a host."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from lab.nvmlsim.build import LIBRARY, build

GUEST = Path(__file__).parent / "guest"
PROGRAMS = "usr/local/lib/nvmlsim"
COMMANDS = {"simgpu": "simgpu.py", "nvidia-modprobe": "nvidia_modprobe.py"}
STATE = "var/lib/nvmlsim"
UNIT = "nvmlsim.service"


def _library_directory() -> str:
    """A local directory that Debian's ld.so.conf.d names first: it wins over the one of libnvidia-ml1."""
    done = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True)
    return f"usr/local/lib/{done.stdout.strip()}"


def _link(link: Path, target: str) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def install(root: Path, gpus: list[str], cache_dir: Path) -> None:
    """Give a host that is not running yet its GPUs: library, commands, a unit that plays the driver at boot.

    A host that has GPUs already keeps them with their state.

    :param root: the mounted root of the host
    :param gpus: ``MODEL`` or ``MODEL:COUNT``, such as ``a100-80gb:1``
    :param cache_dir: where the compiled library is kept
    :raises RuntimeError: the library cannot be built, or there is no such model; the message says which
        models there are
    """
    built = build(cache_dir)
    programs = root / PROGRAMS
    programs.mkdir(parents=True, exist_ok=True)
    for source in GUEST.glob("*.py"):
        shutil.copyfile(source, programs / source.name)
    for command, program in COMMANDS.items():
        (programs / program).chmod(0o755)
        _link(root / "usr/local/bin" / command, f"../lib/nvmlsim/{program}")

    library = root / _library_directory() / LIBRARY
    library.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(built, library)
    _link(
        library.with_name("libnvidia-ml.so"), LIBRARY
    )  # as programs were linked with it, slurmd 22.05 among them
    subprocess.run(["ldconfig", "-r", str(root)], check=True)

    units = root / "etc/systemd/system"
    shutil.copyfile(GUEST / UNIT, units / UNIT)
    _link(units / "sysinit.target.wants" / UNIT, f"/etc/systemd/system/{UNIT}")

    if (root / STATE / "state").exists():
        return
    environment = os.environ | {"NVMLSIM_STATE": str(root / STATE), "NVMLSIM_LIBRARY": str(built)}
    arguments = ["init", "--dev", "/dev", "--run", "/run/nvmlsim", *gpus]
    initialise = [sys.executable, str(GUEST / "simgpu.py"), *arguments]
    done = subprocess.run(initialise, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().removeprefix("simgpu: "))
