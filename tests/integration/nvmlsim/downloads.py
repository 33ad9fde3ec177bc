# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that verify the simulator, fetched when a test asks for them and kept outside the repository.

``nvidia-smi`` is not free software: it comes from Debian's section non-free, through apt and its signatures,
to this machine alone. The bindings come from the Python package index, with the checksums below."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from lab.recipe import KEYRING
from lab.rootfs import recipe_for

CACHE = Path(__file__).resolve().parents[3] / ".work" / "nvmlsim-oracles"

# Releases of nvidia-ml-py: the oldest that the product supports, one of 12, the one that the product pins.
BINDINGS = {
    "11.525.112": "c64e473953b65ec0ccc76cf3601c3130a0ac8060bbcaea912cc00fa8e4c9868d",
    "12.575.51": "eb8641800d98ce40a22f479873f34b482e214a7e80349c63be51c3919845446e",
    "13.615.71": "959bf4adf6fe1308e4bd739e722236b0d1ec8392e2cefad33ff70c311380b9b6",
}


class Unavailable(Exception):
    """Why an oracle cannot be had, in one sentence."""


def nvidia_smi(suite: str) -> Path:
    """Return the program as a Debian release ships it.

    :param suite: name of the release
    :raises Unavailable: its mirror cannot be reached or lacks the package
    """
    directory = CACHE / suite
    program = directory / "root/usr/lib/nvidia/current/nvidia-smi"
    if program.exists():
        return program
    for name in ("lists/partial", "archives/partial"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    sources = directory / "sources.list"
    sources.write_text(
        f"deb [signed-by={KEYRING}] {recipe_for(suite, kernel=False).mirror} {suite} non-free\n"
    )
    options = {
        "Dir::State": directory,
        "Dir::State::lists": directory / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": directory,
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "",
    }
    apt = ["apt-get", "-qq", *(f"--option={name}={value}" for name, value in options.items())]
    for words in ([*apt, "update", "--error-on=any"], [*apt, "download", "nvidia-smi"]):
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"nvidia-smi of {suite} cannot be had: {done.stderr.strip()}")
    package = next(directory.glob("nvidia-smi_*.deb"))
    unfinished = directory / "root.new"
    subprocess.run(["dpkg-deb", "--extract", package, unfinished], check=True)
    unfinished.rename(directory / "root")
    return program


def binding(version: str) -> Path:
    """Return a directory that holds one release of nvidia-ml-py, for PYTHONPATH.

    :raises Unavailable: the package index cannot be reached or has another file of that name
    """
    directory = CACHE / f"nvidia-ml-py-{version}"
    if (directory / "pynvml.py").exists():
        return directory
    CACHE.mkdir(parents=True, exist_ok=True)
    wanted = CACHE / f"nvidia-ml-py-{version}.txt"
    wanted.write_text(f"nvidia-ml-py=={version} --hash=sha256:{BINDINGS[version]}\n")
    command = [
        "uv",
        "pip",
        "install",
        "--quiet",
        "--require-hashes",
        "--target",
        directory,
        "--requirement",
        wanted,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode:
        raise Unavailable(f"nvidia-ml-py {version} cannot be had: {done.stderr.strip()}")
    return directory
