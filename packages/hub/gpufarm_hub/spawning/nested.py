# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers that users start in their notebooks, where the site allows them: what differs then. No I/O.

Podman runs without root and without `newuidmap`, whose rights `NoNewPrivileges=` takes: a container has one
user, who is root in there and the notebook's user outside. It has namespaces of users and mounts of its own
and shares all others with the notebook, so walls, limits and devices of the notebook hold in it. `sealed`
starts such a notebook.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

FOLDER = Path("/tmp/.gpufarm-containers")  # noqa: S108 - the notebook's own /tmp
SETTINGS = FOLDER / "containers.conf"
STORAGE = FOLDER / "storage.conf"
RUNTIME = FOLDER / "runtime"

# systemd.exec(5). The filter in `sealed` says which namespaces may be made: that of systemd would refuse
# setns(2) without a type, by which Podman and crun join namespaces that they have made. The kernel refuses
# mounts outside of such a namespace. Images have files with the bit of set-user-ID, which has no effect under
# NoNewPrivileges=.
LOOSENED: dict[str, str] = {
    "RestrictNamespaces": "no",
    "RestrictSUIDSGID": "no",
    "SystemCallFilter": "~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap",
}
# Empty in the notebook: for a user who has numbers there (subuid(5)), Podman would look for newuidmap.
EMPTIED = ("/etc/subuid", "/etc/subgid")

# Where NVIDIA's images of CUDA expect libraries of the driver.
LIBRARIES = "/usr/local/nvidia/lib64"
LIBRARY = re.compile(r"lib(cuda|cudadebugger|nvcuvid|nvidia-[a-z0-9-]+|nvoptix)\.so\.1")
PROGRAM = "/usr/bin/nvidia-smi"

# Where a container has no process table of its own, Podman has all processes of the control group ended, and
# asks again when they have. Here the group is the notebook's, so only the container's first process is ended.
RUNTIME_TEXT = """\
#!/bin/sh
for one; do
  shift
  if [ "$one" = --all ]; then exec 2> /dev/null; else set -- "$@" "$one"; fi
done
exec /usr/bin/crun "$@"
"""


def environment() -> dict[str, str]:
    """Return the variables by which Podman finds its settings in a notebook."""
    return {
        "CONTAINERS_CONF": str(SETTINGS),
        "CONTAINERS_STORAGE_CONF": str(STORAGE),
    }


def libraries(cache: str) -> dict[str, str]:
    """Return the driver's libraries: the path of each by its name; the linker's first choice counts.

    Args:
        cache: output of ``ldconfig -p``.
    """
    found: dict[str, str] = {}
    for name, kind, path in re.findall(r"^\s*(\S+) \(([^)]*)\) => (\S+)$", cache, re.MULTILINE):
        if kind.startswith("libc6,") and LIBRARY.fullmatch(name):  # libc6 alone is for 32 bits
            found.setdefault(name, path)
    return found


def settings(nodes: Iterable[str], driver: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """Return the settings of Podman (containers.conf(5)).

    Args:
        nodes: paths of the device nodes that the notebook has.
        driver: paths of files of the driver, by their paths in a container.
        variables: environment variables of each container.
    """
    shared = {f"{name}ns": "host" for name in ("cgroup", "ipc", "net", "pid", "user", "uts")}
    containers = {
        **shared,
        "default_sysctls": [],
        "devices": list(nodes),
        "env": [f"{name}={value}" for name, value in variables.items()],
        "log_driver": "k8s-file",
        "volumes": [f"{source}:{target}:ro" for target, source in driver.items()],
    }
    engine = {"cgroup_manager": "cgroupfs", "events_logger": "file", "runtime": "notebook"}
    return _tables(
        {
            "containers": containers,
            "engine": engine,
            "engine.runtimes": {"notebook": [str(RUNTIME)]},
        }
    )


def storage(home: str, driver: str) -> str:
    """Return the settings of the storage of images (containers-storage.conf(5)).

    Args:
        home: the user's.
        driver: ``overlay``, or ``vfs``, which copies each image for each container.
    """
    return _tables(
        {
            "storage": {
                "driver": driver,
                "graphroot": f"{home}/.local/share/containers/storage",
                "runroot": str(FOLDER / "run"),
            },
            # The files of an image are all the user's.
            "storage.options": {"ignore_chown_errors": "true"},
        }
    )


def _tables(tables: Mapping[str, Mapping[str, object]]) -> str:
    """Return a file of TOML; its texts and lists of texts are written as in JSON."""
    return "\n".join(
        "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()), ""])
        for name, table in tables.items()
    )
